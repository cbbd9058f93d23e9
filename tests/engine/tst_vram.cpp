// A loaded model on a simulated card beside other programs: reserve and cap of a real engine, with real words.

#include <atomic>
#include <random>
#include <thread>

#include <QTemporaryDir>
#include <QTest>

#include "core/base/bytes.h"
#include "core/base/paths.h"
#include "core/base/system.h"
#include "core/engine/choose_devices.h"
#include "core/engine/engine.h"
#include "core/engine/vram_control.h"
#include "core/gpu/memory_counter.h"
#include "core/model/cpu_runner.h"
#include "core/model/family.h"
#include "core/vmm/verdict_store.h"
#include "tests/model/model_runner.h"
#include "tests/simgpu/fixture.h"

using namespace headroom;
using namespace headroom::test;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kCard = 8 * GiB;
constexpr std::uint64_t kSegment = 256 * KiB;

}  // namespace

class TstVram : public QObject {
    Q_OBJECT

private slots:
    void init() {
        simulator_.reset({{"cuda", nlohmann::json::array({{{"total_mib", kCard / MiB}, {"granularity_min", 65536}, {"granularity_rec", 65536}}})}});
        folder_ = std::make_unique<QTemporaryDir>();
        keep_verdict(vmm::VerdictKind::on, "");
    }
    void cleanup() { QVERIFY2(leaks(simulator_.counters()).empty(), leaks(simulator_.counters()).c_str()); }

    void a_loaded_model_tells_what_it_holds() {
        const auto model = load();
        QVERIFY(model->vram() != nullptr);
        const auto devices = model->vram()->devices();
        QCOMPARE(devices.size(), std::size_t{1});
        const engine::VramDevice& device = devices.front();
        QCOMPARE(device.id, std::string("cuda:0"));
        QCOMPARE(device.verdict, std::string("on"));
        QVERIFY(device.elastic);
        QCOMPARE(device.total_bytes, kCard);
        QCOMPARE(device.blocks_resident, device.blocks_total);
        QCOMPARE(device.block_name, std::string_view("experts"));
        QCOMPARE(device.own_bytes(), device.full_bytes);
        QCOMPARE(device.reserve_bytes, 1 * GiB);
    }

    void the_processor_alone_has_none() {
        auto options = load_options();
        options.device = "cpu";
        QVERIFY(must(engine::Model::load(options))->vram() == nullptr);
    }

    // Random reserves while an answer is made: the words stay.
    void the_words_stay_whatever_the_reserve() {
        const auto model = load();
        const std::string right = answer(model, 120);
        const auto vram = model->vram();
        const std::uint64_t full = vram->devices().front().full_bytes;
        std::atomic<bool> done = false;
        std::atomic<int> changes = 0;
        std::jthread hand([&] {
            std::minstd_rand random(5);  // NOLINT: the same changes each time
            while (!done) {
                const std::uint64_t kept = random() % 5 == 0 ? 0 : random() % full;  // for the model
                const auto report = vram->set_and_wait("cuda:0", {.reserve_bytes = kCard - kept, .cap_bytes = {}});
                if (!report || !report->met) return;
                ++changes;
            }
        });
        QVERIFY(vram->devices().front().speeds.size() == 1);  // with everything there
        for (int i = 0; i < 3; ++i) QCOMPARE(answer(model, 120), right);
        done = true;
        hand.join();
        QVERIFY2(changes > 5, std::to_string(changes).c_str());
        const auto back = must(vram->set_and_wait("cuda:0", {}));
        QVERIFY2(back.met, engine::describe(back).c_str());
        QCOMPARE(vram->devices().front().blocks_resident, vram->devices().front().blocks_total);
        QCOMPARE(answer(model, 120), right);
    }

    void park_leaves_nothing_and_the_model_answers_on() {
        const auto model = load();
        const std::string right = answer(model, 40);
        const auto report = must(model->vram()->set_and_wait("cuda:0", {.reserve_bytes = kCard, .cap_bytes = {}}));
        QVERIFY2(report.met && report.parked, engine::describe(report).c_str());
        QCOMPARE(report.own_after, std::uint64_t{0});
        QCOMPARE(report.free_after, kCard);
        QCOMPARE(answer(model, 40), right);
        QCOMPARE(model->vram()->devices().front().own_bytes(), std::uint64_t{0});
        QVERIFY(must(model->vram()->set_and_wait("cuda:0", {})).met);
        QCOMPARE(answer(model, 40), right);
    }

    void wishes_hold_for_the_next_load() {
        std::uint64_t cap = 0;
        {
            const auto model = load();
            cap = model->vram()->devices().front().full_bytes - 6 * MiB;
            QVERIFY(must(model->vram()->set_and_wait("cuda:0", {.reserve_bytes = {}, .cap_bytes = cap})).met);
        }
        const auto model = load();
        const auto device = model->vram()->devices().front();
        QCOMPARE(device.wish.cap_bytes, std::optional(cap));
        QVERIFY(device.own_bytes() <= cap);
        // A reserve of the command line is for this load alone.
        auto options = load_options();
        options.reserve_bytes = 2 * GiB;
        {
            const auto other = must(engine::Model::load(options));
            QCOMPARE(other->vram()->devices().front().reserve_bytes, 2 * GiB);
            QVERIFY(must(other->vram()->set_and_wait("cuda:0", {.reserve_bytes = 3 * GiB, .cap_bytes = {}})).met);
        }
        const auto kept = load()->vram()->devices().front().wish;
        QVERIFY(!kept.reserve_bytes && kept.cap_bytes);
    }

    // Ten minutes of other programs beside one model, by a clock of the test's: they ramp, jump and spike, and are never refused while the model
    // has something to give; the model takes back what they leave, and says the same words all along.
    void other_programs_come_and_go() {
        const gguf::File file = must(gguf::File::open(must(engine::find_model("builtin", {}))));
        const model::Transformer transformer = must(model::bind_transformer(file));
        ThreadPool pool(2);
        auto options = load_options();
        options.reserve_bytes = 1 * GiB;
        auto chosen = must(engine::choose_devices(options, {}));
        const auto runner = must(model::GpuRunner::create({.transformer = transformer, .pool = pool, .targets = chosen.targets, .context = 256}));
        engine::VramTarget target = std::move(chosen.watched.front());
        target.usage = [&] { return runner->usage(0); };
        target.resize = [&](std::uint64_t budget, const std::stop_token& stop) { return runner->resize(0, budget, stop); };
        const auto counter = gpu::MemoryCounter::open(chosen.targets.front().device, simulator_.path());
        target.read_free = [&]() -> Result<std::uint64_t> {
            HR_TRY(const gpu::MemoryReading reading, counter->read());
            return reading.free;
        };
        std::vector<engine::VramTarget> targets;
        targets.push_back(std::move(target));
        engine::VramControl control(std::move(targets), engine::VramWishes({}));
        int reports = 0, turns = 0;
        bool grew = false;
        const auto listening = control.listen([&](const engine::VramReport& report) {
            ++reports;
            if (report.own_after > report.own_before) grew = true;
            if (report.own_after < report.own_before) turns += std::exchange(grew, false) ? 1 : 0;
        });
        model::CpuRunner plain(transformer, pool);
        const auto right = greedy(plain);
        const std::uint64_t full = runner->usage(0).full_bytes;
        QCOMPARE(runner->usage(0).held_bytes(), full);

        auto now = engine::VramControl::Clock::now();
        std::uint64_t others = 0, least = full;
        int refused = 0, seconds = 0;
        // In quarters of seconds.
        const auto run = [&](int quarters, const std::function<std::uint64_t(int quarter)>& wanted) {
            for (int quarter = 0; quarter < quarters; ++quarter) {
                const std::uint64_t bytes = wanted(quarter);
                if (bytes > others && bytes - others > must(counter->read()).free) {
                    ++refused;
                } else {
                    others = bytes;
                    simulator_.set_other(gpu::Backend::cuda, 0, others);
                }
                control.step(now += 250ms);
                least = std::min(least, runner->usage(0).held_bytes());
                if (++seconds % 200 == 0) QCOMPARE(greedy(*runner), right);
            }
        };
        // A game that loads at 2 GiB a second, up to the whole card; it stays and ends.
        run(120, [&](int quarter) { return std::min(static_cast<std::uint64_t>(quarter) * 512 * MiB, kCard - 64 * MiB); });
        QVERIFY2(least < full, "the model never gave anything");
        QCOMPARE(greedy(*runner), right);
        run(60, [](int) { return 0; });
        QCOMPARE(runner->usage(0).held_bytes(), full);
        // Steps.
        run(400, [](int quarter) { return static_cast<std::uint64_t>(quarter / 50 % 8) * 1000 * MiB; });
        // Spikes, for half a second, every four; then for two seconds, every twenty.
        const int before = turns;
        run(800, [](int quarter) { return 7000 * MiB + (quarter % 16 < 2 ? 900 * MiB : 0); });
        run(1000, [](int quarter) { return 7000 * MiB + (quarter % 80 < 8 ? 1000 * MiB : 0); });
        QVERIFY2(turns - before <= 8, std::to_string(turns - before).c_str());
        run(300, [](int) { return 0; });
        QCOMPARE(refused, 0);
        QCOMPARE(runner->usage(0).held_bytes(), full);
        QCOMPARE(greedy(*runner), right);
        control.close();
    }

    // A thousand changes at random while the built-in model answers, most of experts, some of layers, some a parking: the words stay, and nothing is
    // lost or left over.
    void a_thousand_changes() {
        const gguf::File file = must(gguf::File::open(must(engine::find_model("builtin", {}))));
        const model::Transformer transformer = must(model::bind_transformer(file));
        ThreadPool pool(2);
        model::CpuRunner plain(transformer, pool);
        const auto right = greedy(plain);
        const auto chosen = must(engine::choose_devices(load_options(), {}));
        const auto runner = must(model::GpuRunner::create({.transformer = transformer, .pool = pool, .targets = chosen.targets, .context = 256}));
        const std::uint64_t full = runner->usage(0).full_bytes;
        std::atomic<int> changes = 0;
        std::jthread hand([&] {
            std::mt19937 random(6);
            for (; changes < 1000; ++changes) {
                const std::uint64_t most = changes % 40 == 0 ? full : full / 3;
                const auto report = must(runner->resize(0, changes % 100 == 99 ? 0 : full - random() % most));
                if (report.limited_by.empty() && report.met) continue;
                qFatal("%s: %s of %s", report.limited_by.c_str(), format_bytes(report.held_after).c_str(), format_bytes(report.budget_bytes).c_str());
            }
        });
        do {
            QCOMPARE(greedy(*runner), right);
        } while (changes < 1000);
        hand.join();
        (void)must(runner->resize(0, 2 * full));
        QCOMPARE(runner->usage(0).blocks_resident, runner->usage(0).blocks_total);
        QCOMPARE(greedy(*runner), right);
    }

    void a_device_that_is_not_elastic_says_why_data() {
        QTest::addColumn<int>("kind");
        QTest::addColumn<QString>("name");
        QTest::newRow("off") << static_cast<int>(vmm::VerdictKind::off) << "off";
        QTest::newRow("fixed") << static_cast<int>(vmm::VerdictKind::fixed) << "fixed";
    }
    void a_device_that_is_not_elastic_says_why() {
        QFETCH(const int, kind);
        QFETCH(const QString, name);
        keep_verdict(static_cast<vmm::VerdictKind>(kind), "the free VRAM fell by 32 MiB for 32 MiB mapped and rose by 0 MiB after its release");
        auto model = load();
        const auto device = model->vram()->devices().front();
        QVERIFY(!device.elastic);
        QCOMPARE(device.verdict, name.toStdString());
        const auto refused = model->vram()->set_and_wait("cuda:0", {.reserve_bytes = 2 * GiB, .cap_bytes = {}});
        QVERIFY(!refused && refused.error().kind == ErrorKind::unsupported);
        QVERIFY2(refused.error().message.find("rose by 0 MiB") != std::string::npos, refused.error().message.c_str());
        // At load it works, by placing less.
        model.reset();
        auto options = load_options();
        options.reserve_bytes = device.free_bytes - 88 * MiB;  // the driver gets a share of 96 MiB when a model is loaded
        const auto loaded = must(engine::Model::load(options));
        QVERIFY(loaded->vram() != nullptr);
        const auto less = loaded->vram()->devices().front();
        QVERIFY(less.own_bytes() <= device.own_bytes() - 8 * MiB);
    }

private:
    std::filesystem::path data_folder() const { return from_utf8(folder_->path().toStdString()); }

    void keep_verdict(vmm::VerdictKind kind, const std::string& reason) const {
        const auto driver = must(gpu::Driver::load(gpu::Backend::cuda, simulator_.path()));
        const gpu::DeviceInfo& device = driver->devices().front();
        vmm::Verdict verdict;
        verdict.kind = kind;
        verdict.reason = reason;
        verdict.granularity_min = verdict.granularity_recommended = 64 * KiB;
        verdict.segment_bytes = kSegment;
        verdict.largest_reservation = kCard;
        verdict.uuid = device.uuid;
        verdict.driver = device.driver;
        verdict.runtime = device.runtime;
        verdict.os = os_name();
        QVERIFY(vmm::VerdictStore(data_folder() / "verdicts.json").keep(verdict).has_value());
    }
    engine::LoadOptions load_options() const {
        engine::LoadOptions options;
        options.path = must(engine::find_model("builtin", {}));
        options.threads = 2;
        options.device = "cuda:0";
        options.data_folder = data_folder();
        options.drivers = simulator_.path();
        return options;
    }
    std::shared_ptr<engine::Model> load() const {
        auto model = must(engine::Model::load(load_options()));
        for (const std::string& warning : model->info().warnings) qFatal("%s", warning.c_str());
        return model;
    }
    static std::vector<std::int32_t> greedy(model::Runner& runner) {
        const auto sequence = must(runner.create_sequence());
        std::vector<std::int32_t> words;
        const std::vector<std::int32_t> prompt{1, 5, 9, 200, 31};
        const std::int32_t last = static_cast<std::int32_t>(prompt.size()) - 1;
        std::int32_t next = 0;
        must(runner.run({.sequence = *sequence, .tokens = prompt, .rows = std::span(&last, 1)}, [&](std::int32_t, std::span<float> logits) {
            next = static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
        }, {}));
        must(runner.decode_greedily(*sequence, next, 12, [&](std::int32_t word) {
            words.push_back(word);
            return true;
        }, {}));
        return words;
    }
    static std::string answer(const std::shared_ptr<engine::Model>& model, int tokens) {
        engine::GenerateRequest request;
        request.prompt = must(model->chat_prompt({{"messages", {{{"role", "user"}, {"content", "What is the reserve?"}}}}}));
        request.sampling.temperature = 0;
        request.ignore_end = true;
        request.max_tokens = tokens;
        return must(must(engine::Session::create(model))->generate(request)).text;
    }

    SimGpu simulator_;
    std::unique_ptr<QTemporaryDir> folder_;
};

QTEST_GUILESS_MAIN(TstVram)
#include "tst_vram.moc"
