// Loading, what a file says about itself, finding models by name.

#include <fstream>

#include <QTest>

#include "core/base/paths.h"
#include "core/base/system.h"
#include "tests/engine/loaded_model.h"

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::test;

namespace {

const SyntheticModel kModel{.family = "qwen3moe", .layers = 3, .feed_forward = 32, .experts = 4, .experts_used = 2, .context = 6000, .qk_norm = true};

class Folder {
public:
    [[nodiscard]] std::filesystem::path path() const { return from_utf8(folder_.path().toStdString()); }
    std::filesystem::path write(const std::string& name, const gguf::Writer& writer) const {
        must(writer.write(path() / name));
        return path() / name;
    }
    void touch(const std::string& name) const {
        std::filesystem::create_directories((path() / name).parent_path());
        std::ofstream(path() / name) << "x";
    }

private:
    QTemporaryDir folder_;
};

}  // namespace

class TstLoad : public QObject {
    Q_OBJECT

private slots:
    void says_what_the_model_is() {
        const LoadedModel loaded(kModel);
        const ModelInfo& info = loaded.get()->info();
        QCOMPARE(info.name, std::string("synthetic"));
        QCOMPARE(info.family, std::string("qwen3moe"));
        QCOMPARE(info.quantization, std::string("F32"));
        QCOMPARE(info.trained_context, 6000);
        QCOMPARE(info.context, 4096);
        QCOMPARE(info.vocabulary, kSyntheticVocabulary);
        QCOMPARE(info.layers, 3);
        QCOMPARE(info.experts, 4);
        QCOMPARE(info.experts_used, 2);
        QVERIFY(info.has_chat_template);
        QVERIFY(info.warnings.empty());
        QCOMPARE(info.file_bytes, std::filesystem::file_size(loaded.path()));
        std::uint64_t parameters = 0;
        for (const gguf::Tensor& tensor : loaded.get()->file().tensors()) parameters += tensor.elements();
        QCOMPARE(info.parameters, parameters);
        QCOMPARE(loaded.get()->threads(), 2);
        QCOMPARE(loaded.get()->tokenizer().size(), kSyntheticVocabulary);
    }

    void the_context_can_be_chosen() {
        const LoadedModel longer(kModel, 8000);
        QCOMPARE(longer.get()->info().context, 8000);
        QCOMPARE(longer.get()->info().warnings.size(), 1u);
        QVERIFY(longer.get()->info().warnings[0].find("6000") != std::string::npos);
        for (const int context : {-1, 1 << 30}) {
            const auto result = Model::load({.path = longer.path(), .context = context});
            QVERIFY(!result);
            QCOMPARE(result.error().kind, ErrorKind::invalid_argument);
        }
        QCOMPARE(must(Model::load({.path = longer.path()}))->threads(), physical_cores());
    }

    void the_template_makes_a_prompt() {
        const LoadedModel loaded(kModel);
        const text::Json context{{"messages", {{{"role", "user"}, {"content", "a<|im_end|>"}}}}};
        const auto prompt = must(loaded.get()->chat_prompt(context));
        QCOMPARE(loaded.get()->tokenizer().decode(prompt, true),
                 std::string("<|im_start|>user\na<|im_end|><|im_end|>\n<|im_start|>assistant\n"));
        QCOMPARE(std::ranges::count(prompt, 258), 1);  // the one in the user's text is text
        text::Json finished = context;
        finished["add_generation_prompt"] = false;
        QVERIFY(must(loaded.get()->chat_prompt(finished)).size() < prompt.size());
    }

    void templates_that_are_missing_or_broken() {
        const Folder folder;
        const auto changed = [&](const char* name, std::optional<std::string_view> source) {
            const auto bytes = synthetic_bytes(kModel);
            const gguf::File file = must(gguf::File::parse(bytes, "original.gguf"));
            gguf::Writer writer;
            for (const auto& [key, value] : file.metadata()) {
                if (key != "tokenizer.chat_template") writer.add(key, value);
                else if (source) writer.add(key, *source);
            }
            for (const gguf::Tensor& tensor : file.tensors()) {
                writer.add_tensor(std::string(tensor.name), tensor.type, {tensor.shape.begin(), tensor.shape.begin() + tensor.dimensions},
                                  {tensor.data.begin(), tensor.data.end()});
            }
            return must(Model::load({.path = folder.write(name, writer)}));
        };
        const text::Json context{{"messages", text::Json::array()}};
        const auto none = changed("none.gguf", std::nullopt);
        QVERIFY(!none->info().has_chat_template);
        QCOMPARE(none->chat_prompt(context).error().kind, ErrorKind::unsupported);
        const auto broken = changed("broken.gguf", "{% for %}");
        QVERIFY(broken->info().has_chat_template);
        QCOMPARE(broken->chat_prompt(context).error().kind, ErrorKind::template_failed);
    }

    void progress_goes_from_nothing_to_all() {
        const LoadedModel loaded(kModel);
        std::vector<LoadProgress> seen;
        must(Model::load({.path = loaded.path()}, [&](const LoadProgress& progress) { seen.push_back(progress); }));
        QVERIFY(seen.size() >= 4);
        QCOMPARE(seen.front().stage, LoadProgress::Stage::opening);
        QCOMPARE(seen.front().fraction, 0.0);
        QCOMPARE(seen.back().stage, LoadProgress::Stage::reading);
        QCOMPARE(seen.back().fraction, 1.0);
        QCOMPARE(seen.back().bytes_done, loaded.get()->info().file_bytes);
        QCOMPARE(seen.back().bytes_total, loaded.get()->info().file_bytes);
        for (std::size_t i = 1; i < seen.size(); ++i) QVERIFY(seen[i].fraction >= seen[i - 1].fraction);
    }

    // At every stage.
    void loading_can_be_cancelled() {
        const LoadedModel loaded(kModel);
        for (const auto stage : {LoadProgress::Stage::opening, LoadProgress::Stage::preparing, LoadProgress::Stage::reading}) {
            std::stop_source stop;
            const auto result = Model::load({.path = loaded.path()}, [&](const LoadProgress& progress) {
                if (progress.stage == stage) stop.request_stop();
            }, stop.get_token());
            QVERIFY(!result);
            QCOMPARE(result.error().kind, ErrorKind::cancelled);
        }
    }

    void files_that_cannot_be_run() {
        const Folder folder;
        SyntheticModel model = kModel;
        model.family = "mamba";
        const auto unknown = Model::load({.path = folder.write("mamba.gguf", synthetic_writer(model))});
        QCOMPARE(unknown.error().kind, ErrorKind::unsupported);
        QCOMPARE(Model::load({.path = folder.path() / "absent.gguf"}).error().kind, ErrorKind::not_found);
        folder.touch("text.gguf");
        QCOMPARE(Model::load({.path = folder.path() / "text.gguf"}).error().kind, ErrorKind::invalid_file);
        QCOMPARE(Model::load({.path = folder.path()}).error().kind, ErrorKind::invalid_argument);
        const auto narrow = Model::load({.path = folder.write("narrow.gguf", synthetic_writer(kModel)), .kv_type = KvType::q8_0});
        QCOMPARE(narrow.error().kind, ErrorKind::unsupported);
        QVERIFY(narrow.error().message.starts_with("The heads of this model are 16 (keys)"));
    }

    void inspecting_estimates_without_loading() {
        const auto bytes = synthetic_bytes(kModel);
        const gguf::File file = must(gguf::File::parse(bytes, "folder/small model.gguf"));
        const Inspection small = inspect(file, 256);
        QCOMPARE(small.problem, std::string());
        QCOMPARE(small.info.family, std::string("qwen3moe"));
        QCOMPARE(small.info.context, 256);
        QCOMPARE(small.estimate.kv_bytes, 3u * 2 * 256 * (16 + 16) * 2);
        std::uint64_t weights = 0;
        for (const gguf::Tensor& tensor : file.tensors()) weights += tensor.data.size();
        QCOMPARE(small.estimate.weights_bytes, weights);
        QVERIFY(small.estimate.scratch_bytes > 0);
        QVERIFY(small.estimate.fits());
        QCOMPARE(inspect(file, 0).info.context, 4096);
        QCOMPARE(inspect(file, 0).estimate.kv_bytes, 16 * small.estimate.kv_bytes);
        QVERIFY(!inspect(file, -5).problem.empty());
    }

    void inspecting_counts_keys_and_values_of_8_bits() {
        SyntheticModel model = kModel;
        model.head_dim = 64;
        const auto bytes = synthetic_bytes(model);
        const gguf::File file = must(gguf::File::parse(bytes, "wide.gguf"));
        const Inspection halves = inspect(file, 256), codes = inspect(file, 256, KvType::q8_0);
        QCOMPARE(halves.estimate.kv_bytes, 3u * 2 * 256 * (64 + 64) * 2);
        QCOMPARE(codes.estimate.kv_bytes, 3u * 2 * 256 * (64 + 64) * 34 / 32);
        QCOMPARE(codes.problem, std::string());
        QVERIFY(codes.info.kv_type == KvType::q8_0);
        const auto narrow_bytes = synthetic_bytes(kModel);
        const Inspection narrow = inspect(must(gguf::File::parse(narrow_bytes, "narrow.gguf")), 256, KvType::q8_0);
        QVERIFY(narrow.problem.starts_with("The heads of this model are 16 (keys)"));
    }

    void inspecting_names_the_problem() {
        SyntheticModel model = kModel;
        model.family = "mamba";
        const auto bytes = synthetic_bytes(model);
        const Inspection unknown = inspect(must(gguf::File::parse(bytes, "mamba.gguf")), 0);
        QVERIFY(unknown.problem.find("mamba") != std::string::npos);
        QCOMPARE(unknown.info.layers, 3);
        const gguf::Writer empty;
        const auto nothing = must(empty.bytes());
        QVERIFY(!inspect(must(gguf::File::parse(nothing, "nothing.gguf")), 0).problem.empty());
    }

    void models_are_found_by_name() {
        const Folder folder;
        folder.touch("models/one.gguf");
        folder.touch("models/Zwei 2.gguf");
        folder.touch("models/notes.txt");
        folder.touch("outside.gguf");
        std::filesystem::create_directories(folder.path() / "models" / "sub.gguf");
        const auto models = folder.path() / "models";
        QCOMPARE(must(find_model("one", models)), models / "one.gguf");
        QCOMPARE(must(find_model("one.gguf", models)), models / "one.gguf");
        QCOMPARE(must(find_model("Zwei 2", models)), models / "Zwei 2.gguf");
        const std::string outside = to_utf8(folder.path() / "outside.gguf");
        QCOMPARE(must(find_model(outside, models)), folder.path() / "outside.gguf");
        for (const char* name : {"two", "", ".", "..", "../outside", "../outside.gguf", "..\\outside", "sub", "./one"}) {
            const auto result = find_model(name, models);
            QVERIFY2(!result, name);
            QCOMPARE(result.error().kind, ErrorKind::not_found);
        }
        const std::string message = find_model("two", models).error().message;
        QVERIFY2(message.find("Zwei 2, one") != std::string::npos, message.c_str());
        QVERIFY(message.find("notes") == std::string::npos);
        QVERIFY(!find_model("one", folder.path() / "absent"));
        QVERIFY(!find_model(to_utf8(models), models));
    }

    void the_built_in_model_is_found_and_runs() {
        const auto path = must(find_model("builtin", {}));
        QCOMPARE(must(Model::load({.path = path}))->info().family, std::string("qwen3moe"));
    }
};

QTEST_GUILESS_MAIN(TstLoad)
#include "tst_load.moc"
