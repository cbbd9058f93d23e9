// A model that gives VRAM back and takes it again while it speaks says the same words, whatever fails on the way.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include <QTest>

#include "core/base/bytes.h"
#include "core/model/cpu_runner.h"
#include "core/model/family.h"
#include "core/model/gpu/gpu_runner.h"
#include "tests/model/model_runner.h"
#include "tests/model/synthetic_model.h"
#include "tests/simgpu/fixture.h"

using namespace headroom;
using namespace headroom::model;
using namespace headroom::test;

namespace {

constexpr std::int64_t kContext = 1024;
constexpr std::uint64_t kSegment = 64 * KiB;  // some experts each

SyntheticModel mixture() {
    return {.family = "qwen3moe", .layers = 3, .embedding = 64, .head_dim = 32, .feed_forward = 64, .experts = 16, .experts_used = 3, .qk_norm = true};
}

struct Opened {
    explicit Opened(const SyntheticModel& model)
        : bytes(synthetic_bytes(model)), file(must(gguf::File::parse(bytes, "synthetic.gguf"))), transformer(must(bind_transformer(file))) {}
    std::vector<std::byte> bytes;
    gguf::File file;
    Transformer transformer;
};

vmm::Verdict elastic() {
    return {.kind = vmm::VerdictKind::on, .reason = {}, .granularity_min = 4 * KiB, .granularity_recommended = 4 * KiB, .segment_bytes = kSegment,
            .largest_reservation = 1 * GiB, .observations = {}, .uuid = {}, .driver = {}, .runtime = {}, .os = {}, .tested_at = {}};
}

using Words = std::vector<std::int32_t>;

}  // namespace

class TstElastic : public QObject {
    Q_OBJECT

private slots:
    void init() { open(false); }
    void cleanup() {
        driver_.reset();
        QVERIFY2(leaks(simulator_.counters()).empty(), leaks(simulator_.counters()).c_str());
    }

    // Down in steps to nothing and up again: what is held never exceeds the budget, and the driver sees every byte come and go.
    void gives_and_takes() {
        const Opened opened(mixture());
        const auto runner = place(opened);
        QVERIFY(runner->usage(0).elastic);
        const residency::Usage full = runner->usage(0);
        QCOMPARE(full.blocks_resident, std::int64_t{48});
        QCOMPARE(full.blocks_total, std::int64_t{48});
        QCOMPARE(full.held_bytes(), full.full_bytes);
        std::int64_t before = 48;
        for (std::uint64_t budget = full.held_bytes(); before > 2; budget -= 100 * KiB) {
            const auto report = must(runner->resize(0, budget));
            QVERIFY2(report.limited_by.empty(), report.limited_by.c_str());
            QVERIFY(report.met);
            QVERIFY(report.held_after <= budget);
            QVERIFY(report.held_after + kSegment > budget);
            QCOMPARE(report.free_after - report.free_before, report.held_before - report.held_after);
            QVERIFY(report.blocks_resident <= before);
            before = report.blocks_resident;
        }
        const auto back = must(runner->resize(0, full.held_bytes()));
        QVERIFY(back.met && back.limited_by.empty());
        QCOMPARE(back.blocks_resident, std::int64_t{48});
        QCOMPARE(back.held_after, full.held_bytes());
        // More than the model can use changes nothing.
        QCOMPARE(must(runner->resize(0, 4 * full.held_bytes())).held_after, full.held_bytes());
    }

    // 512 words with the budget changed at random every 20, in two sessions by turns, prompts between.
    void the_words_stay_the_same() {
        const Words right = right_words();
        for (const bool asynchronous : {false, true}) {
            close_and_open(asynchronous);
            const Opened opened(mixture());
            const auto runner = place(opened);
            const std::uint64_t full = runner->usage(0).held_bytes();
            std::mt19937 random(7);
            const auto change = [&] {
                const auto report = must(runner->resize(0, full - random() % (full / 2)));
                if (!report.limited_by.empty()) QVERIFY2(report.held_after > report.budget_bytes, report.limited_by.c_str());
            };
            QCOMPARE(talk(*runner, change), right);
        }
    }

    // The same with another thread that changes all the time.
    void the_words_stay_the_same_beside_a_thread() {
        Words right = right_words();
        right.resize(160);
        const Opened opened(mixture());
        const auto runner = place(opened);
        const std::uint64_t full = runner->usage(0).held_bytes();
        std::atomic<int> changes = 0;
        std::jthread changer([&](const std::stop_token& stop) {
            std::mt19937 random(8);
            while (!stop.stop_requested()) {
                if (runner->resize(0, full - random() % (full / 2))) ++changes;
            }
        });
        QCOMPARE(talk(*runner, [] {}, right.size()), right);
        changer = {};
        QVERIFY(changes > 20);
    }

    // Every driver call of a shrink and of the growing back fails once: the words stay right, the report names it, what can be reached is
    // reached by the next call, and nothing is left at the end.
    void every_call_may_fail() {
        const Opened opened(mixture());
        ThreadPool pool(1);
        CpuRunner cpu(opened.transformer, pool);
        const auto prompt = random_tokens(30, 5);
        const Words right = words(cpu, *must(cpu.create_sequence()), prompt, 6);
        const auto shrink_and_grow = [](GpuRunner& runner, std::uint64_t full, std::vector<std::string>& limits) {
            limits.push_back(must(runner.resize(0, full - 6 * kSegment)).limited_by);
            limits.push_back(must(runner.resize(0, full)).limited_by);
        };
        // Which calls there are.
        std::vector<std::pair<std::string, std::uint64_t>> calls;
        {
            const auto runner = place(opened);
            must(runner->create_sequence());
            const std::uint64_t full = runner->usage(0).held_bytes();
            const auto before = simulator_.trace();
            std::vector<std::string> limits;
            shrink_and_grow(*runner, full, limits);
            const auto after = simulator_.trace();
            for (std::size_t i = before.size(); i < after.size(); ++i) {
                calls.emplace_back(after[i], static_cast<std::uint64_t>(std::count(after.begin(), after.begin() + static_cast<std::ptrdiff_t>(i) + 1, after[i])));
            }
        }
        QVERIFY(calls.size() > 30);
        for (const auto& [function, number] : calls) {
            if (function == "cuMemGetInfo_v2" || function == "cuCtxSetCurrent") continue;  // figures; the thread's own state
            close_and_open(false);
            const auto runner = place(opened);
            const std::uint64_t full = runner->usage(0).held_bytes();
            simulator_.fail(function, number, function == "cuMemCreate" ? 2 : 1);
            std::vector<std::string> limits;
            shrink_and_grow(*runner, full, limits);
            simulator_.clear_rules();
            const QByteArray where = QByteArray::fromStdString(fmt::format("{} {}", function, number));
            const auto named = std::ranges::any_of(limits, [&](const std::string& text) { return text.find(function.substr(0, function.find("_v"))) != std::string::npos; });
            // Tried twice, or the stream is waited for instead, or the counts of what was used are read next time.
            constexpr std::string_view absorbed_calls[] = {"cuEventRecord", "cuEventDestroy_v2", "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize"};
            const bool absorbed = std::ranges::find(absorbed_calls, function) != std::end(absorbed_calls);
            QVERIFY2(named || absorbed, where.constData());
            QVERIFY2(words(*runner, *must(runner->create_sequence()), prompt, 6) == right, where.constData());
            const auto again = must(runner->resize(0, full - 6 * kSegment));
            QVERIFY2(again.met && again.limited_by.empty(), where.constData());
            QVERIFY2(words(*runner, *must(runner->create_sequence()), prompt, 6) == right, where.constData());
            const auto grown = must(runner->resize(0, full));
            QVERIFY2(grown.blocks_resident == 48 && grown.held_after == full, where.constData());
        }
    }

    // Devices whose memory cannot come and go say so, and place less where less is allowed.
    void others_say_why_not() {
        const Opened opened(mixture());
        vmm::Verdict verdict = elastic();
        verdict.kind = vmm::VerdictKind::off;
        verdict.reason = "the recommended allocation granularity is 4 KiB";
        const auto runner = place(opened, verdict);
        QVERIFY(!runner->usage(0).elastic);
        QCOMPARE(runner->usage(0).reason, verdict.reason);
        const auto refused = runner->resize(0, 0);
        QVERIFY(!refused && refused.error().kind == ErrorKind::unsupported);
        QVERIFY(refused.error().message.find(verdict.reason) != std::string::npos);
        const std::uint64_t all = runner->usage(0).held_bytes();
        std::int64_t blocks = 48;
        for (std::uint64_t cap = all; blocks == 48 && cap > all / 64; cap -= all / 32) {
            const auto less = place(opened, verdict, cap);
            QVERIFY(less->usage(0).held_bytes() <= cap);
            blocks = less->usage(0).blocks_resident;
        }
        QVERIFY(blocks < 48);
    }

private:
    void open(bool asynchronous) {
        simulator_.reset({{"cuda", nlohmann::json::array({nlohmann::json{{"granularity_min", 4 * KiB}, {"granularity_rec", 4 * KiB}}})},
                          {"asynchronous", asynchronous}});
        driver_ = must(gpu::Driver::load(gpu::Backend::cuda, simulator_.path()));
    }
    void close_and_open(bool asynchronous) {
        driver_.reset();
        QVERIFY2(leaks(simulator_.counters()).empty(), leaks(simulator_.counters()).c_str());
        open(asynchronous);
    }
    std::unique_ptr<GpuRunner> place(const Opened& opened, const vmm::Verdict& verdict = elastic(), std::uint64_t cap = 0) {
        const GpuTarget target{.driver = driver_.get(), .device = driver_->devices()[0], .reserve_bytes = 0, .cap_bytes = cap, .verdict = verdict};
        auto runner = must(GpuRunner::create({.transformer = opened.transformer, .pool = pool_, .targets = std::span(&target, 1), .context = kContext}));
        runner->settle();
        return runner;
    }
    static Words right_words() {
        const Opened opened(mixture());
        ThreadPool pool(1);
        CpuRunner cpu(opened.transformer, pool);
        return talk(cpu, [] {});
    }
    static Words words(Runner& runner, Sequence& sequence, std::span<const std::int32_t> prompt, std::int64_t count) {
        must(runner.run({.sequence = sequence, .tokens = prompt, .rows = {}}, [](auto, auto) {}));
        Words chosen;
        must(runner.decode_greedily(sequence, 65, count, [&](std::int32_t token) {
            chosen.push_back(token);
            return true;
        }));
        return chosen;
    }
    // 512 words of two sessions by turns, with a change after each 20.
    template <class Change>
    static Words talk(Runner& runner, Change change, std::size_t count = 512) {
        Words all;
        const auto a = must(runner.create_sequence()), b = must(runner.create_sequence());
        for (std::size_t round = 0; all.size() < count; ++round) {
            Sequence& sequence = round % 2 == 0 ? *a : *b;
            const auto prompt = random_tokens(round % 5 == 0 ? 40 : 3, 50 + round);
            must(runner.run({.sequence = sequence, .tokens = prompt, .rows = {}}, [](auto, auto) {}));
            must(runner.decode_greedily(sequence, 65, 20, [&](std::int32_t token) {
                all.push_back(token);
                if (all.size() % 20 == 10) change();
                return true;
            }));
        }
        return all;
    }

    SimGpu simulator_;
    std::unique_ptr<gpu::Driver> driver_;
    ThreadPool pool_{2};
};

QTEST_GUILESS_MAIN(TstElastic)
#include "tst_elastic.moc"
