// What a file must say, and what is refused.

#include <cmath>
#include <cstring>
#include <limits>

#include <QTest>

#include "core/model/family.h"
#include "core/model/forward.h"
#include "tests/model/model_runner.h"
#include "tests/model/synthetic_model.h"

using namespace headroom;
using namespace headroom::test;

namespace {

const SyntheticModel kDense{.family = "qwen3", .layers = 1, .qk_norm = true};
const SyntheticModel kMixture{.family = "qwen3moe", .layers = 1, .feed_forward = 32, .experts = 4, .experts_used = 2, .qk_norm = true};

// The model written again, through what `change` makes of each value and tensor: it returns false to leave one out.
struct Rewrite {
    std::function<bool(std::string_view key, gguf::Value& value)> value = [](auto, auto&) { return true; };
    std::function<bool(std::string& name, gguf::TensorType& type, std::vector<std::uint64_t>& shape)> tensor = [](auto&, auto&, auto&) {
        return true;
    };

    [[nodiscard]] std::vector<std::byte> operator()(const SyntheticModel& model) const {
        const auto bytes = synthetic_bytes(model);
        const gguf::File file = must(gguf::File::parse(bytes, "original.gguf"));
        gguf::Writer writer;
        for (auto [key, changed] : file.metadata()) {
            if (value(key, changed)) writer.add(key, changed);
        }
        for (const gguf::Tensor& original : file.tensors()) {
            std::string name(original.name);
            gguf::TensorType type = original.type;
            std::vector<std::uint64_t> shape(original.shape.begin(), original.shape.begin() + original.dimensions);
            if (tensor(name, type, shape)) writer.add_tensor(name, type, shape, {original.data.begin(), original.data.end()});
        }
        return must(writer.bytes());
    }
};

Result<model::Transformer> bind_bytes(const std::vector<std::byte>& bytes) {
    // The file must outlive the transformer; here only the outcome matters.
    const gguf::File file = must(gguf::File::parse(bytes, "changed.gguf"));
    return model::bind_transformer(file);
}

std::string refusal(const std::vector<std::byte>& bytes, ErrorKind kind) {
    const auto result = bind_bytes(bytes);
    if (result) return "was accepted";
    if (result.error().kind != kind) return std::string("is of the kind ") + to_string(result.error().kind);
    return result.error().message;
}

Rewrite set(std::string wanted, gguf::Value changed) {
    return {.value = [=](std::string_view key, gguf::Value& value) {
        if (key == wanted) value = changed;
        return true;
    }};
}

gguf::Value unsigned_value(std::uint64_t number) { return {gguf::ValueType::u64, number}; }
gguf::Value float_value(double number) { return {gguf::ValueType::f64, number}; }
gguf::Value text_value(std::string_view text) { return {gguf::ValueType::string, text}; }

}  // namespace

class TstFamily : public QObject {
    Q_OBJECT

private slots:
    void knows_its_families() {
        std::vector<std::string_view> names;
        for (const model::Family& family : model::families()) names.push_back(family.name);
        const std::vector<std::string_view> expected{"llama", "qwen2", "qwen3", "qwen3moe"};
        QCOMPARE(names, expected);
    }

    void reads_the_hyperparameters() {
        SyntheticModel model = kMixture;
        model.window = 77;
        const auto transformer = bind_bytes(synthetic_bytes(model));
        QVERIFY2(transformer, transformer ? "" : transformer.error().message.c_str());
        const model::Hyperparameters& read = transformer->hyperparameters;
        QCOMPARE(read.family, std::string("qwen3moe"));
        QCOMPARE(read.layers, 1);
        QCOMPARE(read.embedding, 32);
        QCOMPARE(read.context, 1024);
        QCOMPARE(read.heads, 4);
        QCOMPARE(read.kv_heads, 2);
        QCOMPARE(read.head_dim, 16);
        QCOMPARE(read.head_dim_v, 16);
        QCOMPARE(read.experts, 4);
        QCOMPARE(read.experts_used, 2);
        QCOMPARE(read.expert_feed_forward, 32);
        QCOMPARE(read.window, 77);
        QCOMPARE(read.epsilon, 1e-6f);
        QCOMPARE(read.attention_scale, 0.25f);
        QCOMPARE(read.rope.dimensions, 16);
        QCOMPARE(read.rope.base, 1000.0);
        QCOMPARE(transformer->vocabulary, kSyntheticVocabulary);
    }

    void old_linear_scaling_and_zero_factor() {
        SyntheticModel model = kDense;
        model.scaling = "linear";
        const Rewrite no_type{.value = [](std::string_view key, gguf::Value&) { return key != "qwen3.rope.scaling.type"; }};
        const auto transformer = bind_bytes(no_type(model));
        QVERIFY(transformer);
        QCOMPARE(transformer->hyperparameters.rope.scaling, model::RopeScaling::linear);
        QCOMPARE(transformer->hyperparameters.rope.factor, 4.0);
        const auto zero = bind_bytes(set("qwen3.rope.scaling.factor", float_value(0))(model));
        QVERIFY(zero);
        QCOMPARE(zero->hyperparameters.rope.factor, 1.0);
    }

    void unknown_family_is_refused_by_name() {
        const std::string message = refusal(set("general.architecture", text_value("mamba"))(kDense), ErrorKind::unsupported);
        QCOMPARE(message, std::string("changed.gguf: models of the family \"mamba\" are not supported; supported are llama, qwen2, qwen3, "
                                      "qwen3moe"));
        const Rewrite none{.value = [](std::string_view key, gguf::Value&) { return key != "general.architecture"; }};
        QVERIFY(refusal(none(kDense), ErrorKind::invalid_file).find("general.architecture") != std::string::npos);
    }

    void unknown_scaling_is_refused_by_name() {
        SyntheticModel model = kDense;
        model.scaling = "longrope";
        QVERIFY(refusal(synthetic_bytes(model), ErrorKind::unsupported).find("\"longrope\"") != std::string::npos);
    }

    void missing_tensors_are_named_data() {
        QTest::addColumn<bool>("mixture");
        QTest::addColumn<QString>("name");
        for (const bool mixture : {false, true}) {
            const auto bytes = synthetic_bytes(mixture ? kMixture : kDense);
            const gguf::File file = must(gguf::File::parse(bytes, "original.gguf"));
            for (const gguf::Tensor& tensor : file.tensors()) {
                if (tensor.name == "output.weight") continue;  // the embedding takes its place
                const auto name = QString::fromUtf8(tensor.name.data(), static_cast<qsizetype>(tensor.name.size()));
                QTest::addRow("%s %s", mixture ? "mixture" : "dense", qPrintable(name)) << mixture << name;
            }
        }
    }

    void missing_tensors_are_named() {
        QFETCH(bool, mixture);
        QFETCH(QString, name);
        const std::string wanted = name.toStdString();
        const SyntheticModel& model = mixture ? kMixture : kDense;
        const Rewrite left_out{.tensor = [&](std::string& tensor, auto&, auto&) { return tensor != wanted; }};
        QVERIFY(refusal(left_out(model), ErrorKind::invalid_file).find("\"" + wanted + "\" is missing") != std::string::npos);

        // The same number of elements in another shape.
        const Rewrite reshaped{.tensor = [&](std::string& tensor, auto&, std::vector<std::uint64_t>& shape) {
            if (tensor != wanted) return true;
            if (shape.size() == 1) shape.insert(shape.begin(), 1);
            else shape[0] /= 2, shape[1] *= 2;
            return true;
        }};
        QVERIFY(refusal(reshaped(model), ErrorKind::invalid_file).find("\"" + wanted + "\" has the shape") != std::string::npos);
    }

    void a_type_the_engine_lacks_is_refused_by_name() {
        const Rewrite integers{.tensor = [](std::string& name, gguf::TensorType& type, auto&) {
            if (name == "output_norm.weight") type = gguf::TensorType::i32;
            return true;
        }};
        const std::string message = refusal(integers(kDense), ErrorKind::unsupported);
        QVERIFY(message.find("\"output_norm.weight\"") != std::string::npos);
        QVERIFY(message.find("I32") != std::string::npos);
    }

    void a_tensor_without_a_place_is_refused() {
        const SyntheticModel llama{.layers = 1, .qk_norm = true};  // llama has no norms of q and k
        QVERIFY(refusal(synthetic_bytes(llama), ErrorKind::unsupported).find("\"blk.0.attn_q_norm.weight\"") != std::string::npos);
    }

    // Every number of the metadata at values that no model has: an error, or a model that runs.
    void hostile_numbers_data() {
        QTest::addColumn<QString>("key");
        SyntheticModel model = kMixture;
        model.scaling = "yarn";
        model.window = 5;
        const auto bytes = synthetic_bytes(model);
        const gguf::File file = must(gguf::File::parse(bytes, "original.gguf"));
        for (const auto& [key, value] : file.metadata()) {
            if (key.starts_with("qwen3moe.")) QTest::newRow(std::string(key).c_str()) << QString::fromStdString(std::string(key));
        }
    }

    void hostile_numbers() {
        QFETCH(QString, key);
        SyntheticModel model = kMixture;
        model.scaling = "yarn";
        model.window = 5;
        const double nan = std::numeric_limits<double>::quiet_NaN();
        const gguf::Value values[] = {unsigned_value(0), unsigned_value(1), unsigned_value(3), unsigned_value(INT32_MAX),
                                      unsigned_value(UINT32_MAX), unsigned_value(INT64_MAX), unsigned_value(UINT64_MAX),
                                      {gguf::ValueType::i64, std::int64_t{-1}}, float_value(nan), float_value(INFINITY),
                                      float_value(-INFINITY), float_value(0), float_value(-1), float_value(1e300), float_value(1e-300),
                                      text_value("yarn"), text_value(""), {gguf::ValueType::boolean, true}, {gguf::ValueType::array, gguf::Array{}}};
        for (const gguf::Value& value : values) {
            const auto bytes = set(key.toStdString(), value)(model);
            const gguf::File file = must(gguf::File::parse(bytes, "changed.gguf"));
            const auto transformer = model::bind_transformer(file);
            if (!transformer) {
                QVERIFY(!transformer.error().message.empty());
                continue;
            }
            ThreadPool pool(1);
            model::Forward forward(*transformer, pool);
            model::KvCache cache(transformer->kv_shape());
            const auto tokens = random_tokens(3, 1);
            const std::int32_t row = 2;
            const auto result = forward.run({.cache = cache, .tokens = tokens, .rows = std::span(&row, 1)}, [](auto, auto) {});
            QVERIFY2(result, result ? "" : result.error().message.c_str());
        }
    }

    // Bytes of the header changed at random.
    void hostile_bytes() {
        const auto original = synthetic_bytes({.family = "qwen3moe", .layers = 1, .embedding = 8, .heads = 2, .kv_heads = 1, .head_dim = 4,
                                               .feed_forward = 8, .experts = 2, .experts_used = 1, .qk_norm = true});
        const gguf::File file = must(gguf::File::parse(original, "original.gguf"));
        const auto header = static_cast<std::uint64_t>(file.tensors()[0].data.data() - original.data());
        RandomNumbers random(11);
        int accepted = 0;
        for (int round = 0; round < 3000; ++round) {
            auto bytes = original;
            const std::uint64_t changes = 1 + random.below(3);
            for (std::uint64_t i = 0; i < changes; ++i) bytes[random.below(header)] = static_cast<std::byte>(random.below(256));
            const auto opened = gguf::File::parse(bytes, "changed.gguf");
            if (!opened) continue;
            const auto transformer = model::bind_transformer(*opened);
            if (!transformer) continue;
            ++accepted;
            ThreadPool pool(1);
            model::Forward forward(*transformer, pool);
            model::KvCache cache(transformer->kv_shape());
            const std::int32_t tokens[] = {0, static_cast<std::int32_t>(transformer->vocabulary - 1)};
            const std::int32_t row = 1;
            QVERIFY(forward.run({.cache = cache, .tokens = tokens, .rows = std::span(&row, 1)}, [](auto, auto) {}));
        }
        QVERIFY(accepted > 0);  // changed names of tokens and the like
    }

    // Weights that are no numbers give logits that are none, and nothing worse.
    void weights_of_nan_do_no_harm() {
        auto bytes = synthetic_bytes(kMixture);
        const gguf::File file = must(gguf::File::parse(bytes, "nan.gguf"));
        const float nan = std::numeric_limits<float>::quiet_NaN();
        for (const char* name : {"blk.0.ffn_gate_inp.weight", "blk.0.attn_k.weight"}) {
            const auto at = static_cast<std::size_t>(file.find_tensor(name)->data.data() - bytes.data());
            for (std::size_t i = 0; i < file.find_tensor(name)->data.size(); i += sizeof nan) std::memcpy(bytes.data() + at + i, &nan, sizeof nan);
        }
        ModelRunner runner(must(gguf::File::parse(bytes, "nan.gguf")));
        const std::vector<int> last{19};
        QCOMPARE(runner.read(random_tokens(20, 1), last).size(), 1u);
    }
};

QTEST_GUILESS_MAIN(TstFamily)
#include "tst_family.moc"
