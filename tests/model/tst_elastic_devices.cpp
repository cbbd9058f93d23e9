// A model on several devices: each one gives VRAM back and takes it again by itself, and the words stay the same.

#include <algorithm>
#include <atomic>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include <QTest>

#include "core/base/bytes.h"
#include "core/model/gpu/gpu_runner.h"
#include "tests/model/elastic_talk.h"
#include "tests/simgpu/fixture.h"

using namespace headroom;
using namespace headroom::model;
using namespace headroom::test;

namespace {

constexpr std::int64_t kContext = 1024;

SyntheticModel dense() { return {.family = "qwen3", .layers = 8, .embedding = 64, .head_dim = 32, .feed_forward = 256, .qk_norm = true}; }
SyntheticModel mixture() {
    return {.family = "qwen3moe", .layers = 6, .embedding = 64, .head_dim = 32, .feed_forward = 64, .experts = 16, .experts_used = 3, .qk_norm = true};
}
SyntheticModel tied() {
    SyntheticModel model = dense();
    model.tied = true;
    return model;
}

struct Setup {
    gpu::Backend backend = gpu::Backend::cuda;
    bool asynchronous = false;
    bool wants_quiet = false;
};

std::string mark(const char* model, bool asynchronous) { return std::string(model) + (asynchronous ? ", asynchronous" : ""); }

}  // namespace

Q_DECLARE_METATYPE(SyntheticModel)

class TstElasticDevices : public QObject {
    Q_OBJECT

private slots:
    void init() { open({}); }
    void cleanup() { close(); }

    // One device after the other goes down to nothing and up again: the other one keeps what it has, to the byte.
    void each_device_by_itself_data() { models(); }
    void each_device_by_itself() {
        QFETCH(const SyntheticModel, model);
        const OpenedModel opened(model);
        ThreadPool pool(1);
        CpuRunner cpu(opened.transformer, pool);
        const auto runner = place(opened);
        const auto& parts = runner->placement().parts;
        QCOMPARE(parts.size(), std::size_t{2});
        QVERIFY(parts[0].last - parts[0].first > parts[1].last - parts[1].first);  // the first card is larger
        const auto sequence = must(runner->create_sequence()), other = must(runner->create_sequence());
        const auto right = must(cpu.create_sequence()), other_right = must(cpu.create_sequence());
        const auto prompt = random_tokens(20, 5);  // no conversation needs a second page
        QCOMPARE(words(*runner, *sequence, prompt, 5), words(cpu, *right, prompt, 5));
        for (const std::size_t device : {std::size_t{0}, std::size_t{1}}) {
            const residency::Usage full = runner->usage(device), beside = runner->usage(1 - device);
            QVERIFY(full.elastic && beside.elastic);
            QCOMPARE(full.blocks_resident, full.blocks_total);
            std::int64_t least = full.blocks_total;
            std::set<std::int64_t> seen;
            const std::uint64_t step = full.held_bytes() / 12;
            for (std::uint64_t budget = full.held_bytes(); !runner->usage(device).parked; budget -= std::min(budget, step)) {
                const auto report = must(runner->resize(device, budget));
                QVERIFY2(report.limited_by.empty(), report.limited_by.c_str());
                QVERIFY(report.met && report.held_after <= budget);
                QVERIFY(report.blocks_resident <= least);
                least = report.blocks_resident;
                seen.insert(least);
                QCOMPARE(runner->usage(1 - device).held_bytes(), beside.held_bytes());
                QCOMPARE(runner->usage(1 - device).blocks_resident, beside.blocks_resident);
                const auto more = random_tokens(3, budget);
                QCOMPARE(words(*runner, *sequence, more, 3), words(cpu, *right, more, 3));
            }
            QVERIFY(seen.size() >= 3);
            QCOMPARE(simulator_.counters().contexts, std::uint64_t{1});
            QCOMPARE(words(*runner, *other, prompt, 3), words(cpu, *other_right, prompt, 3));
            const residency::Usage grown = runner->usage(1 - device);  // by the pages of the second conversation
            for (const std::uint64_t budget : {full.held_bytes() * 3 / 4, full.full_bytes + 1 * MiB}) {
                const auto report = must(runner->resize(device, budget));
                QVERIFY2(report.limited_by.empty(), report.limited_by.c_str());
                QVERIFY(!report.parked && report.held_after <= budget);
                QCOMPARE(runner->usage(1 - device).held_bytes(), grown.held_bytes());
                const auto more = random_tokens(3, budget);
                QCOMPARE(words(*runner, *sequence, more, 3), words(cpu, *right, more, 3));
                QCOMPARE(words(*runner, *other, more, 3), words(cpu, *other_right, more, 3));
            }
            QCOMPARE(runner->usage(device).blocks_resident, full.blocks_total);
        }
    }

    // Both parked, in either order, and back in either order: in between the processor says everything.
    void all_may_be_parked() {
        const OpenedModel opened(mixture());
        ThreadPool pool(1);
        CpuRunner cpu(opened.transformer, pool);
        const auto right = must(cpu.create_sequence());
        const auto runner = place(opened);
        const auto sequence = must(runner->create_sequence());
        const std::uint64_t full[] = {runner->usage(0).held_bytes() + 1 * MiB, runner->usage(1).held_bytes() + 1 * MiB};
        std::uint64_t seed = 30;
        const auto same = [&] {
            const auto more = random_tokens(40, ++seed);
            return words(*runner, *sequence, more, 4) == words(cpu, *right, more, 4);
        };
        QVERIFY(same());
        for (const auto& order : {std::array<std::size_t, 4>{0, 1, 0, 1}, {0, 1, 1, 0}, {1, 0, 0, 1}, {1, 0, 1, 0}}) {
            for (std::size_t i = 0; i < order.size(); ++i) {
                const auto report = must(runner->resize(order[i], i < 2 ? 0 : full[order[i]]));
                QVERIFY2(report.limited_by.empty(), report.limited_by.c_str());
                QCOMPARE(report.parked, i < 2);
                QCOMPARE(simulator_.counters().contexts, std::uint64_t(std::array<int, 4>{1, 0, 1, 2}[i]));
                QVERIFY(same());
            }
            for (const std::size_t device : {0, 1}) QCOMPARE(runner->usage(device).blocks_resident, runner->usage(device).blocks_total);
        }
    }

    // Conversations take pages on every device, from experts where one is full, and the gaps that they leave are closed on all.
    void conversations_come_and_go() {
        const OpenedModel opened(mixture());
        ThreadPool pool(1);
        CpuRunner cpu(opened.transformer, pool);
        const auto runner = place(opened);
        const residency::Usage start = runner->usage(1);
        (void)must(runner->resize(1, start.held_bytes()));  // the second device is full, the first one is not
        auto sequence = must(runner->create_sequence());
        const auto right = must(cpu.create_sequence());
        for (std::uint64_t i = 0; i < 4; ++i) {
            const auto prompt = random_tokens(200, 70 + i);
            QCOMPARE(words(*runner, *sequence, prompt, 20), words(cpu, *right, prompt, 20));
        }
        QCOMPARE(runner->usage(1).kv_bytes, 4 * start.kv_bytes);
        QVERIFY(runner->usage(1).held_bytes() <= start.held_bytes());
        QVERIFY(runner->usage(1).blocks_resident < runner->usage(1).blocks_total);
        QCOMPARE(runner->usage(0).blocks_resident, runner->usage(0).blocks_total);
        auto second = must(runner->create_sequence());
        const auto third = must(runner->create_sequence()), right_third = must(cpu.create_sequence());
        const auto prompt = random_tokens(30, 80);
        (void)words(*runner, *second, prompt, 3);
        QCOMPARE(words(*runner, *third, prompt, 3), words(cpu, *right_third, prompt, 3));
        sequence.reset();
        second.reset();
        const residency::Usage before = runner->usage(1);
        const auto small = must(runner->resize(1, before.scratch_bytes + before.weights_bytes / 3));
        QVERIFY2(small.limited_by.empty(), small.limited_by.c_str());
        QVERIFY(small.kv_bytes <= start.kv_bytes);
        QVERIFY(runner->usage(0).kv_bytes > runner->usage(1).kv_bytes);  // its own budget is large enough
        QCOMPARE(words(*runner, *third, prompt, 3), words(cpu, *right_third, prompt, 3));
        const auto copy = must(runner->copy_sequence(*third, 20)), right_copy = must(cpu.copy_sequence(*right_third, 20));
        QCOMPARE(words(*runner, *copy, prompt, 3), words(cpu, *right_copy, prompt, 3));
        (void)must(runner->resize(1, start.full_bytes + 1 * MiB));
        QCOMPARE(runner->usage(1).blocks_resident, runner->usage(1).blocks_total);
        QCOMPARE(words(*runner, *third, prompt, 3), words(cpu, *right_third, prompt, 3));
    }

    // Words of two sessions by turns while another thread changes both devices at random, parking one or both now and then. On drivers that
    // want no work beside unmapping too: there the driver sees none.
    void the_words_stay_the_same_data() {
        QTest::addColumn<SyntheticModel>("model");
        QTest::addColumn<bool>("asynchronous");
        QTest::addColumn<bool>("wants_quiet");
        for (const bool asynchronous : {false, true}) {
            QTest::newRow(mark("mixture", asynchronous).c_str()) << mixture() << asynchronous << false;
            QTest::newRow(mark("dense", asynchronous).c_str()) << dense() << asynchronous << false;
            QTest::newRow(mark("mixture, quiet", asynchronous).c_str()) << mixture() << asynchronous << true;
            QTest::newRow(mark("dense, quiet", asynchronous).c_str()) << dense() << asynchronous << true;
        }
    }
    void the_words_stay_the_same() {
        QFETCH(const SyntheticModel, model);
        QFETCH(const bool, asynchronous);
        QFETCH(const bool, wants_quiet);
        close();
        open({.backend = wants_quiet ? gpu::Backend::hip : gpu::Backend::cuda, .asynchronous = asynchronous, .wants_quiet = wants_quiet});
        const std::size_t count = asynchronous ? 100 : 300;
        const Words right = right_words(model, count);
        const OpenedModel opened(model);
        const auto runner = place(opened);
        Changer changer(*runner, 7, wants_quiet);
        // A CUDA device goes on meanwhile: it is talked on until something was unmapped beside its work (parking waits for the work).
        const bool goes_on = !wants_quiet && asynchronous && model.experts > 0;
        do {
            QCOMPARE(talk(*runner, [] {}, count), right);
        } while (changer.changes < 60 || changer.parked < 3 || (goes_on && simulator_.counters().unmaps_beside_work == 0));
        changer.stop();
        if (wants_quiet) QCOMPARE(simulator_.counters().unmaps_beside_work, std::uint64_t{0});
    }

    // The same beside prompts of several steps: the logits behind each.
    void prompts_stay_the_same_data() { models(); }
    void prompts_stay_the_same() {
        QFETCH(const SyntheticModel, model);
        const OpenedModel opened(model);
        ThreadPool pool(1);
        CpuRunner cpu(opened.transformer, pool);
        const auto runner = place(opened);
        const auto behind = [](Runner& of, std::span<const std::int32_t> prompt) {
            std::vector<float> seen;
            const auto sequence = must(of.create_sequence());
            for (std::size_t begin = 0; begin < prompt.size(); begin += 250) {
                const auto some = prompt.subspan(begin, std::min<std::size_t>(250, prompt.size() - begin));
                const auto last = static_cast<std::int32_t>(some.size()) - 1;
                must(of.run({.sequence = *sequence, .tokens = some, .rows = std::span(&last, 1)},
                            [&](auto, std::span<float> logits) { seen.assign(logits.begin(), logits.end()); }));
            }
            return seen;
        };
        const auto prompt = random_tokens(300, 91);
        const auto right = behind(cpu, prompt);
        Changer changer(*runner, 8, false);
        do {
            QVERIFY(behind(*runner, prompt) == right);
        } while (changer.changes < 15);
    }

    // Sessions that step together, and greedy ones, with layers of both devices on the processor.
    void sessions_step_together() {
        const OpenedModel opened(dense());
        ThreadPool pool(1);
        CpuRunner cpu(opened.transformer, pool);
        const auto runner = place(opened);
        const std::uint64_t full[] = {runner->usage(0).held_bytes(), runner->usage(1).held_bytes()};
        for (const auto& [first, second] : {std::pair<std::uint64_t, std::uint64_t>{full[0], full[1]}, {full[0] * 3 / 4, full[1] * 3 / 4}, {full[0], 0}, {0, full[1]}}) {
            (void)must(runner->resize(0, first));
            (void)must(runner->resize(1, second));
            std::vector<std::unique_ptr<Sequence>> here, right;
            std::vector<Runner::Step> steps, right_steps;
            for (std::uint64_t s = 0; s < 3; ++s) {
                const auto prompt = random_tokens(10 + 90 * s, 40 + s);
                here.push_back(must(runner->create_sequence()));
                right.push_back(must(cpu.create_sequence()));
                (void)words(*runner, *here.back(), prompt, 1);
                (void)words(cpu, *right.back(), prompt, 1);
                steps.push_back({.sequence = *here.back(), .token = static_cast<std::int32_t>(60 + s)});
                right_steps.push_back({.sequence = *right.back(), .token = static_cast<std::int32_t>(60 + s)});
            }
            const auto logits = [](Runner& of, std::span<const Runner::Step> all) {
                std::vector<std::vector<float>> seen(all.size());
                must(of.run_together(all, [&](std::int32_t i, std::span<float> row) { seen[static_cast<std::size_t>(i)].assign(row.begin(), row.end()); }));
                return seen;
            };
            QVERIFY(logits(*runner, steps) == logits(cpu, right_steps));
            for (std::size_t s = 0; s < here.size(); ++s) QCOMPARE(here[s]->length(), right[s]->length());
        }
    }

    // Every driver call of the second device's changes fails once: the words stay right, the report names it, the next change reaches what
    // was asked, the first device has what it had, and nothing is left at the end.
    void every_call_of_the_second_may_fail_data() {
        QTest::addColumn<SyntheticModel>("model");
        QTest::addColumn<bool>("parks");
        QTest::newRow("experts") << mixture() << false;
        QTest::newRow("layers") << dense() << false;
        QTest::newRow("parking") << dense() << true;
    }
    void every_call_of_the_second_may_fail() {
        QFETCH(const SyntheticModel, model);
        QFETCH(const bool, parks);
        const OpenedModel opened(model);
        ThreadPool pool(1);
        CpuRunner cpu(opened.transformer, pool);
        const auto prompt = random_tokens(30, 5);
        const auto right_sequence = must(cpu.create_sequence());
        const Words right = words(cpu, *right_sequence, prompt, 4), right_more = words(cpu, *right_sequence, prompt, 2);
        const std::uint64_t less = parks ? 0 : 8 * kSegment;  // what is left; or less
        const auto lower = [&](std::uint64_t full) { return parks ? 0 : full - less; };
        const auto change = [&](GpuRunner& runner, std::uint64_t full) {
            std::string limits = must(runner.resize(1, lower(full))).limited_by;
            return limits + must(runner.resize(1, full)).limited_by;
        };
        // Which calls there are.
        std::vector<std::pair<std::string, std::uint64_t>> calls;
        {
            const auto runner = place(opened);
            const auto sequence = must(runner->create_sequence());
            (void)words(*runner, *sequence, prompt, 4);
            const std::uint64_t full = runner->usage(1).held_bytes();
            const std::size_t before = simulator_.trace().size();
            QCOMPARE(change(*runner, full), std::string());
            QCOMPARE(runner->usage(1).blocks_resident, runner->usage(1).blocks_total);
            const auto trace = simulator_.trace();
            std::map<std::string, std::uint64_t> counts;
            std::map<std::string, int> in_change;
            for (std::size_t i = 0; i < trace.size(); ++i) {
                const std::uint64_t number = ++counts[trace[i]];
                // Coming back makes much anew: of calls that repeat, some.
                if (i >= before && (!parks || ++in_change[trace[i]] <= 3 || in_change[trace[i]] % 16 == 0)) calls.emplace_back(trace[i], number);
            }
        }
        QVERIFY(calls.size() > 20);
        for (const auto& [function, number] : calls) {
            // Figures; the thread's own state; which kernels an image has.
            if (function == "cuMemGetInfo_v2" || function == "cuCtxSetCurrent" || function == "cuModuleGetFunction") continue;
            close();
            open({});
            const auto runner = place(opened);
            const auto sequence = must(runner->create_sequence());
            const QByteArray where = QByteArray::fromStdString(fmt::format("{} {}", function, number));
            QVERIFY2(words(*runner, *sequence, prompt, 4) == right, where.constData());
            const std::uint64_t full = runner->usage(1).held_bytes(), first = runner->usage(0).held_bytes();
            simulator_.fail(function, number, function == "cuMemCreate" ? 2 : 1);
            const std::string limits = change(*runner, full);
            simulator_.clear_rules();
            // Tried twice, or something else is done instead, or it is read or prepared the next time.
            constexpr std::string_view absorbed_calls[] = {"cuEventRecord", "cuEventDestroy_v2", "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize", "cuStreamDestroy_v2",
                                                           "cuMemFree_v2", "cuMemFreeHost", "cuModuleUnload", "cuGraphExecDestroy", "cuMemHostRegister_v2",
                                                           "cuMemHostUnregister", "cuMemUnmap", "cuMemRelease", "cuMemAddressFree"};
            const bool absorbed = std::ranges::find(absorbed_calls, function) != std::end(absorbed_calls);
            QVERIFY2(limits.find(function.substr(0, function.find("_v"))) != std::string::npos || absorbed, (where + ": " + limits.c_str()).constData());
            QCOMPARE(runner->usage(0).held_bytes(), first);
            QVERIFY2(words(*runner, *sequence, prompt, 2) == right_more, where.constData());
            QVERIFY2(words(*runner, *must(runner->create_sequence()), prompt, 4) == right, where.constData());
            const auto again = must(runner->resize(1, lower(full)));
            QVERIFY2(again.met && again.limited_by.empty(), (where + ": " + again.limited_by.c_str()).constData());
            const auto grown = must(runner->resize(1, full + 1 * MiB));
            QVERIFY2(grown.blocks_resident == grown.blocks_total && grown.limited_by.empty(), (where + ": " + grown.limited_by.c_str()).constData());
            QVERIFY2(words(*runner, *must(runner->create_sequence()), prompt, 4) == right, where.constData());
        }
    }

    // One device whose memory cannot come and go, beside one that is elastic: in either order.
    void one_of_them_may_be_fixed() {
        for (const std::size_t fixed : {std::size_t{0}, std::size_t{1}}) {
            for (const SyntheticModel& model : {mixture(), dense()}) {
                const OpenedModel opened(model);
                std::vector<vmm::Verdict> verdicts(2, elastic());
                verdicts[fixed].kind = vmm::VerdictKind::off;
                verdicts[fixed].reason = "the recommended allocation granularity is 4 KiB";
                const auto runner = place(opened, verdicts);
                const Words right = right_words(model, 60);
                const std::uint64_t full = runner->usage(1 - fixed).held_bytes(), beside = runner->usage(fixed).held_bytes();
                QCOMPARE(talk(*runner, [] {}, 60), right);
                for (const std::uint64_t budget : {full * 3 / 4, full / 3, std::uint64_t{0}, full + 1 * MiB}) {
                    const auto report = must(runner->resize(1 - fixed, budget));
                    QVERIFY2(report.limited_by.empty() && report.met, report.limited_by.c_str());
                    QCOMPARE(talk(*runner, [] {}, 60), right);
                }
                QCOMPARE(runner->usage(1 - fixed).blocks_resident, runner->usage(1 - fixed).blocks_total);
                QCOMPARE(runner->usage(fixed).held_bytes(), beside);
                const auto refused = runner->resize(fixed, 0);
                QVERIFY(!refused && refused.error().message.find(verdicts[fixed].reason) != std::string::npos);
            }
        }
    }

    // Where not even both hold everything the first layers are the processor's, and the first device takes them when it may use more.
    void takes_layers_that_never_fitted() {
        const OpenedModel opened(dense());
        std::uint64_t all[2];
        {
            const auto runner = place(opened);
            for (const std::size_t device : {0, 1}) all[device] = runner->usage(device).held_bytes();
        }
        std::unique_ptr<GpuRunner> runner;
        for (std::uint64_t eighths = 7; !runner || runner->placement().cpu_layers == 0; --eighths) {
            QVERIFY(eighths > 0);
            runner.reset();
            runner = place(opened, {elastic(), elastic()}, {all[0] * eighths / 8, all[1] * eighths / 8});
        }
        const Words right = right_words(dense(), 40);
        QCOMPARE(talk(*runner, [] {}, 40), right);
        QVERIFY(runner->usage(0).blocks_resident < runner->usage(0).blocks_total);
        const auto report = must(runner->resize(0, 8 * all[0]));
        QVERIFY(report.limited_by.empty());
        QCOMPARE(report.blocks_resident, report.blocks_total);
        QCOMPARE(talk(*runner, [] {}, 40), right);
    }

private:
    // Changes both devices at random in a thread of its own.
    class Changer {
    public:
        Changer(GpuRunner& runner, unsigned seed, bool keeps_context) {
            const std::uint64_t full[] = {runner.usage(0).held_bytes(), runner.usage(1).held_bytes()};
            thread_ = std::jthread([this, &runner, seed, keeps_context, full = std::to_array(full)](const std::stop_token& stop) {
                std::mt19937 random(seed);
                while (!stop.stop_requested()) {
                    const std::size_t device = random() % 2;
                    const bool parks = random() % 8 == 0;
                    const auto report = must(runner.resize(device, parks ? 0 : full[device] + full[device] / 8 - random() % (full[device] / 2)));
                    if (!report.met || (!report.limited_by.empty() && !(keeps_context && report.parked))) qFatal("%s", report.limited_by.c_str());
                    parked += report.parked ? 1 : 0;
                    ++changes;
                }
            });
        }
        void stop() { thread_ = {}; }

        std::atomic<int> changes = 0, parked = 0;

    private:
        std::jthread thread_;
    };

    static void models() {
        QTest::addColumn<SyntheticModel>("model");
        QTest::newRow("mixture") << mixture();
        QTest::newRow("dense") << dense();
        QTest::newRow("dense, tied") << tied();
    }
    void open(const Setup& setup) {
        const auto card = [](int mib) { return nlohmann::json{{"granularity_min", kSegment}, {"granularity_rec", kSegment}, {"total_mib", mib}}; };
        simulator_.reset({{std::string(gpu::to_string(setup.backend)), nlohmann::json::array({card(512), card(256)})},
                          {"asynchronous", setup.asynchronous}, {"faults", {{"unmap_wants_quiet", setup.wants_quiet}}}});
        driver_ = must(gpu::Driver::load(setup.backend, simulator_.path()));
    }
    void close() {
        driver_.reset();
        QVERIFY2(leaks(simulator_.counters()).empty(), leaks(simulator_.counters()).c_str());
    }
    std::unique_ptr<GpuRunner> place(const OpenedModel& opened, const std::vector<vmm::Verdict>& verdicts = {elastic(), elastic()},
                                     const std::vector<std::uint64_t>& caps = {0, 0}) {
        std::vector<GpuTarget> targets;
        for (std::size_t i = 0; i < verdicts.size(); ++i) {
            targets.push_back({.driver = driver_.get(), .device = driver_->devices()[i], .reserve_bytes = 0, .cap_bytes = caps[i], .verdict = verdicts[i]});
        }
        auto runner = must(GpuRunner::create({.transformer = opened.transformer, .pool = pool_, .targets = targets, .context = kContext}));
        runner->settle();
        return runner;
    }

    SimGpu simulator_;
    std::unique_ptr<gpu::Driver> driver_;
    ThreadPool pool_{2};
};

QTEST_GUILESS_MAIN(TstElasticDevices)
#include "tst_elastic_devices.moc"
