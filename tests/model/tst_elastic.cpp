// A model that gives VRAM back and takes it again while it speaks says the same words, whatever fails on the way.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include <QTest>

#include "core/base/bytes.h"
#include "core/model/cpu_runner.h"
#include "core/model/family.h"
#include "core/model/gpu/gpu_runner.h"
#include "tests/model/elastic_talk.h"
#include "tests/simgpu/fixture.h"

using namespace headroom;
using namespace headroom::model;
using namespace headroom::test;

namespace {

constexpr std::int64_t kContext = 1024;

SyntheticModel dense() { return {.family = "qwen3", .layers = 4, .embedding = 64, .head_dim = 32, .feed_forward = 512, .qk_norm = true}; }
SyntheticModel mixture() {
    return {.family = "qwen3moe", .layers = 3, .embedding = 64, .head_dim = 32, .feed_forward = 64, .experts = 16, .experts_used = 3, .qk_norm = true};
}

}  // namespace

Q_DECLARE_METATYPE(cpu::KvType)

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
        const OpenedModel opened(mixture());
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
            QVERIFY(report.held_after + 4 * kSegment > budget);  // a segment, or one of each layer for conversations
            QCOMPARE(report.free_after - report.free_before, report.held_before - report.held_after);
            QVERIFY(report.blocks_resident <= before);
            before = report.blocks_resident;
        }
        const auto back = must(runner->resize(0, full.held_bytes()));
        QVERIFY(back.met && back.limited_by.empty());
        QCOMPARE(back.blocks_resident, std::int64_t{48});
        QVERIFY(back.held_after <= full.held_bytes());  // conversations take what they need when they need it
        // More than the model can use changes nothing.
        QCOMPARE(must(runner->resize(0, 4 * full.held_bytes())).held_after, back.held_after);
    }

    // A dense model gives layer by layer, in the end the context too; the words stay the same with every share of it, and it all comes back.
    void gives_layers_and_parks_data() {
        QTest::addColumn<cpu::KvType>("kv_type");
        QTest::newRow("f16") << cpu::KvType::f16;
        QTest::newRow("q8_0") << cpu::KvType::q8_0;
    }
    void gives_layers_and_parks() {
        QFETCH(const cpu::KvType, kv_type);
        const OpenedModel opened(dense(), kv_type);
        ThreadPool pool(1);
        CpuRunner cpu(opened.transformer, pool);
        const auto prompt = random_tokens(250, 5);
        const auto right_sequence = must(cpu.create_sequence()), other_right = must(cpu.create_sequence());
        const auto runner = place(opened);
        const auto sequence = must(runner->create_sequence()), other = must(runner->create_sequence());
        QCOMPARE(words(*runner, *sequence, prompt, 5), words(cpu, *right_sequence, prompt, 5));
        const residency::Usage full = runner->usage(0);
        QCOMPARE(full.blocks_total, std::int64_t{4});
        QCOMPARE(full.blocks_resident, std::int64_t{4});
        QVERIFY(!full.blocks_are_experts);
        std::int64_t least = 4;
        for (std::uint64_t budget = full.held_bytes(); least > 0; budget -= std::min<std::uint64_t>(budget, 200 * KiB)) {
            const auto report = must(runner->resize(0, budget));
            QVERIFY2(report.limited_by.empty(), report.limited_by.c_str());
            QVERIFY(report.held_after <= budget);
            const auto more = random_tokens(3, budget);
            QCOMPARE(words(*runner, *sequence, more, 3), words(cpu, *right_sequence, more, 3));
            QVERIFY(report.blocks_resident <= least);
            least = report.blocks_resident;
        }
        QVERIFY(runner->usage(0).parked);
        QCOMPARE(simulator_.counters().contexts, std::uint64_t{0});
        QCOMPARE(words(*runner, *other, prompt, 3), words(cpu, *other_right, prompt, 3));
        for (const std::uint64_t budget : {full.held_bytes() * 3 / 4, full.full_bytes + 1 * MiB}) {
            const auto report = must(runner->resize(0, budget));
            QVERIFY2(report.limited_by.empty(), report.limited_by.c_str());
            QVERIFY(!report.parked);
            QVERIFY(report.held_after <= budget);
            const auto more = random_tokens(3, budget);
            QCOMPARE(words(*runner, *sequence, more, 3), words(cpu, *right_sequence, more, 3));
            QCOMPARE(words(*runner, *other, more, 3), words(cpu, *other_right, more, 3));
        }
        QCOMPARE(runner->usage(0).blocks_resident, std::int64_t{4});
    }

    // Missing experts are computed by the processor, by the device from the host's memory, or by both, with the same words.
    void missing_experts_are_read_by_the_device() {
        const Words right = right_words(mixture());
        for (const double share : {0.0, 0.5, 1.0}) {
            const OpenedModel opened(mixture());
            const auto runner = place(opened, elastic(), 0, share);
            std::uint64_t budget = runner->usage(0).held_bytes();
            while (runner->usage(0).blocks_resident > 10) (void)must(runner->resize(0, budget -= 50 * KiB));
            std::uint64_t changes = 0;
            const auto said = talk(*runner, [&] {
                if (++changes % 8 == 4) (void)must(runner->resize(0, budget += 500 * KiB));  // some experts come
            });
            QVERIFY(runner->usage(0).blocks_resident > 10);
            QVERIFY(runner->usage(0).blocks_resident < 48);
            QCOMPARE(said, right);
            const auto missing = runner->missing_choices(0);
            // Of three missing ones none, two, or all: then the processor is not asked at all.
            if (share == 0) QCOMPARE(missing.by_device, std::uint64_t{0});
            if (share == 0.5) QVERIFY(missing.by_device > missing.by_processor);
            if (share < 1) QVERIFY(missing.by_processor > 100);
            else QCOMPARE(missing.by_processor, std::uint64_t{0});
        }
    }

    // Conversations take memory as they grow, from experts where the budget is full, and give it back when they end.
    void conversations_come_and_go() {
        const OpenedModel opened(mixture());
        ThreadPool pool(1);
        CpuRunner cpu(opened.transformer, pool);
        const auto runner = place(opened);
        const residency::Usage start = runner->usage(0);
        (void)must(runner->resize(0, start.held_bytes()));
        const std::uint64_t page = 3 * 64 * KiB;  // of all layers
        QCOMPARE(start.kv_bytes, page);
        auto sequence = must(runner->create_sequence());
        const auto right_sequence = must(cpu.create_sequence());
        for (int i = 0; i < 4; ++i) {
            const auto prompt = random_tokens(200, 70 + static_cast<std::uint64_t>(i));
            QCOMPARE(words(*runner, *sequence, prompt, 20), words(cpu, *right_sequence, prompt, 20));
        }
        QCOMPARE(sequence->length(), std::int64_t{880});
        QCOMPARE(runner->usage(0).kv_bytes, 4 * page);
        QVERIFY(runner->usage(0).held_bytes() <= start.held_bytes());
        QVERIFY(runner->usage(0).blocks_resident < 48);
        // Two more, of which the first ends: the gap it leaves is closed.
        auto second = must(runner->create_sequence());
        const auto third = must(runner->create_sequence()), right_third = must(cpu.create_sequence());
        const auto prompt = random_tokens(30, 80);
        (void)words(*runner, *second, prompt, 3);
        QCOMPARE(words(*runner, *third, prompt, 3), words(cpu, *right_third, prompt, 3));
        sequence.reset();
        second.reset();
        const std::uint64_t none = runner->usage(0).held_bytes() - runner->usage(0).weights_bytes - 5 * page;
        const auto small = must(runner->resize(0, none + 2 * page));
        QVERIFY2(small.limited_by.empty(), small.limited_by.c_str());
        QVERIFY(small.kv_bytes <= page);
        QCOMPARE(words(*runner, *third, prompt, 3), words(cpu, *right_third, prompt, 3));
        const auto back = must(runner->resize(0, start.full_bytes + page));
        QCOMPARE(back.blocks_resident, std::int64_t{48});
        QCOMPARE(words(*runner, *third, prompt, 3), words(cpu, *right_third, prompt, 3));
    }

    // While it is parked more conversations may begin on the processor than the device has pages for: it stays parked, and says so, until one ends.
    void more_conversations_than_pages() {
        const OpenedModel opened(mixture());
        const auto runner = place(opened);
        const residency::Usage full = runner->usage(0);
        QVERIFY(must(runner->resize(0, 0)).parked);
        constexpr std::size_t most = kMostSessions * kContext / cpu::kPagePositions;
        const std::int32_t token = 5;
        std::vector<std::unique_ptr<Sequence>> sequences;
        for (std::size_t i = 0; i <= most; ++i) {
            sequences.push_back(must(runner->create_sequence()));
            must(static_cast<Runner&>(*runner).run({.sequence = *sequences.back(), .tokens = std::span(&token, 1), .rows = {}}, [](auto, auto) {}));
        }
        const auto refused = must(runner->resize(0, full.full_bytes + 8 * MiB));
        QVERIFY2(refused.parked && refused.limited_by.find("memory for conversations is full: it holds 8192 tokens") != std::string::npos, refused.limited_by.c_str());
        QCOMPARE(refused.bytes_copied, std::uint64_t{0});  // nothing was loaded for it
        sequences.pop_back();
        const auto back = must(runner->resize(0, full.full_bytes + 8 * MiB));
        QVERIFY2(!back.parked && back.limited_by.empty(), back.limited_by.c_str());
    }

    // The page that a conversation soon needs is there before, from experts where the budget is full: no step waits for it. Layers do not leave
    // for what may never be needed.
    void pages_are_made_ahead() {
        const OpenedModel opened(mixture());
        ThreadPool pool(1);
        CpuRunner cpu(opened.transformer, pool);
        const auto prompt = random_tokens(100, 7);
        auto runner = place(opened);
        const residency::Usage start = runner->usage(0);
        (void)must(runner->resize(0, start.held_bytes()));
        auto sequence = must(runner->create_sequence());
        const auto right_sequence = must(cpu.create_sequence());
        must(static_cast<Runner&>(*runner).run({.sequence = *sequence, .tokens = prompt, .rows = {}}, [](auto, auto) {}));
        Words chosen;
        must(static_cast<Runner&>(*runner).decode_greedily(*sequence, 65, 200, [&](std::int32_t token) {
            chosen.push_back(token);
            // The page is asked for half a page before, by the step behind this one; it comes while there are steps.
            const auto begin = std::chrono::steady_clock::now();
            while (chosen.size() == 60 && runner->usage(0).kv_bytes == start.kv_bytes && std::chrono::steady_clock::now() - begin < std::chrono::seconds(60)) {
                std::this_thread::yield();
            }
            return chosen.size() != 60 || runner->usage(0).kv_bytes == 2 * start.kv_bytes;
        }));
        QCOMPARE(chosen, words(cpu, *right_sequence, prompt, 200));
        QVERIFY(runner->usage(0).held_bytes() <= start.held_bytes());
        QVERIFY(runner->usage(0).blocks_resident < 48);

        const OpenedModel without(dense());
        sequence.reset();
        runner.reset();
        runner = place(without);
        (void)must(runner->resize(0, runner->usage(0).held_bytes()));
        const auto other = must(runner->create_sequence());
        (void)words(*runner, *other, prompt, 150);
        QCOMPARE(runner->usage(0).blocks_resident, std::int64_t{4});
        (void)words(*runner, *other, prompt, 20);
        QCOMPARE(runner->usage(0).blocks_resident, std::int64_t{3});
    }

    // A long prompt's missing experts are streamed through the device: the logits behind it have the bits of the unshrunk model's.
    void prompts_stream_what_is_missing() {
        SyntheticModel model = mixture();
        model.type = gguf::TensorType::q8_0;
        const OpenedModel opened(model);
        const auto runner = place(opened);
        const auto prompt = random_tokens(400, 91);
        const auto last = static_cast<std::int32_t>(prompt.size()) - 1;
        const auto behind = [&] {
            std::vector<float> seen;
            const auto sequence = must(runner->create_sequence());
            must(static_cast<Runner&>(*runner).run({.sequence = *sequence, .tokens = prompt, .rows = std::span(&last, 1)},
                                                   [&](auto, std::span<float> logits) { seen.assign(logits.begin(), logits.end()); }));
            return seen;
        };
        const auto right = behind();
        const std::uint64_t full = runner->usage(0).held_bytes();
        for (int some = 1; some <= 3; ++some) {  // behind the six segments of keys and values that nobody uses
            const auto report = must(runner->resize(0, full - static_cast<std::uint64_t>(6 + 2 * some) * kSegment));
            QVERIFY2(report.limited_by.empty(), report.limited_by.c_str());
            QVERIFY(report.blocks_resident < 48 && !report.parked);
            const std::size_t calls = simulator_.trace().size();
            QVERIFY(behind() == right);
            const auto trace = simulator_.trace();
            QVERIFY(std::find(trace.begin() + static_cast<std::ptrdiff_t>(calls), trace.end(), "cuStreamWaitEvent") != trace.end());
        }
        // A call that fails ends the prompt with its error, and the next one is right again.
        for (const std::string function : {"cuStreamWaitEvent", "cuEventRecord", "cuLaunchKernel"}) {
            const auto trace = simulator_.trace();
            simulator_.fail(function, static_cast<std::uint64_t>(std::ranges::count(trace, function)) + 9, 1);
            const auto sequence = must(runner->create_sequence());
            const auto failed = static_cast<Runner&>(*runner).run({.sequence = *sequence, .tokens = prompt, .rows = {}}, [](auto, auto) {});
            simulator_.clear_rules();
            QVERIFY2(!failed && failed.error().message.find(function) != std::string::npos, function.c_str());
            QVERIFY2(behind() == right, function.c_str());
        }
    }

    // 512 words with the budget changed at random every 20, in two sessions by turns, prompts between.
    void the_words_stay_the_same() {
        for (const SyntheticModel& model : {mixture(), dense()}) {
            const Words all = right_words(model);
            for (const bool asynchronous : {false, true}) {
                const std::size_t count = asynchronous ? 160 : all.size();
                const Words right(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
                close_and_open(asynchronous);
                const OpenedModel opened(model);
                const auto runner = place(opened);
                const std::uint64_t full = runner->usage(0).held_bytes();
                std::mt19937 random(7);
                std::atomic<int> parked = 0;
                int changes = 0;
                // By another thread, while the answer goes on: the one that steps has the turn, and may not wait for a change here.
                const auto change = [&] {
                    const std::uint64_t budget = ++changes % 6 == 0 ? 0 : full - random() % (full / 2);
                    std::thread changer([&, budget] {
                        const auto report = must(runner->resize(0, budget));
                        if (!report.limited_by.empty()) qFatal("%s", report.limited_by.c_str());
                        parked += report.parked ? 1 : 0;
                    });
                    changers.push_back(std::move(changer));
                };
                QCOMPARE(talk(*runner, change, count), right);
                join();
                QVERIFY(parked >= 1);
            }
        }
    }

    // The same with another thread that changes all the time.
    void the_words_stay_the_same_beside_a_thread() {
        Words right = right_words(mixture());
        right.resize(100);
        const OpenedModel opened(mixture());
        const auto runner = place(opened);
        const std::uint64_t full = runner->usage(0).held_bytes();
        std::atomic<int> changes = 0;
        std::jthread changer([&](const std::stop_token& stop) {
            std::mt19937 random(8);
            while (!stop.stop_requested()) {
                if (runner->resize(0, random() % 8 == 0 ? 0 : full - random() % (full / 2))) ++changes;
            }
        });
        do {
            QCOMPARE(talk(*runner, [] {}, right.size()), right);
        } while (changes <= 5);
        changer = {};
    }

    // 10,000 changes at random, every 200th a parking, while answers are made: the words stay, and at the end nothing is missing or left over
    // (cleanup() looks for what leaked).
    void ten_thousand_changes() {
        for (const SyntheticModel& model : {mixture(), dense()}) {
            Words right = right_words(model);
            right.resize(60);
            const OpenedModel opened(model);
            const auto runner = place(opened);
            const residency::Usage start = runner->usage(0);
            const std::uint64_t full = start.held_bytes();
            std::atomic<int> changes = 0;
            std::jthread changer([&] {
                std::mt19937 random(9);
                for (; changes < 10'000; ++changes) {
                    const auto report = must(runner->resize(0, random() % 200 == 0 ? 0 : full - random() % (full / 2)));
                    if (!report.limited_by.empty() || !report.met) qFatal("change %d: %s", changes.load(), report.limited_by.c_str());
                }
            });
            do {
                QCOMPARE(talk(*runner, [] {}, right.size()), right);
            } while (changes < 10'000);
            changer.join();
            (void)must(runner->resize(0, runner->usage(0).full_bytes + 1 * MiB));
            QCOMPARE(runner->usage(0).blocks_resident, start.blocks_total);
            QCOMPARE(talk(*runner, [] {}, right.size()), right);
        }
    }

    // Every driver call of a shrink and of the growing back fails once: the words stay right, the report names it, what can be reached is
    // reached by the next call, and nothing is left at the end.
    void every_call_may_fail() {
        const OpenedModel opened(mixture());
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
            QVERIFY2(grown.blocks_resident == 48 && grown.held_after <= full, where.constData());
        }
    }

    // Devices whose memory cannot come and go say so, and place less where less is allowed.
    void others_say_why_not_data() {
        QTest::addColumn<int>("kind");
        QTest::newRow("off") << static_cast<int>(vmm::VerdictKind::off);
        QTest::newRow("fixed") << static_cast<int>(vmm::VerdictKind::fixed);
    }
    void others_say_why_not() {
        QFETCH(const int, kind);
        const OpenedModel opened(mixture());
        vmm::Verdict verdict = elastic();
        verdict.kind = static_cast<vmm::VerdictKind>(kind);
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
        simulator_.reset({{"cuda", nlohmann::json::array({nlohmann::json{{"granularity_min", kSegment}, {"granularity_rec", kSegment}}})},
                          {"asynchronous", asynchronous}});
        driver_ = must(gpu::Driver::load(gpu::Backend::cuda, simulator_.path()));
    }
    void close_and_open(bool asynchronous) {
        driver_.reset();
        QVERIFY2(leaks(simulator_.counters()).empty(), leaks(simulator_.counters()).c_str());
        open(asynchronous);
    }
    std::unique_ptr<GpuRunner> place(const OpenedModel& opened, const vmm::Verdict& verdict = elastic(), std::uint64_t cap = 0,
                                     std::optional<double> over_bus = std::nullopt) {
        const GpuTarget target{.driver = driver_.get(), .device = driver_->devices()[0], .reserve_bytes = 0, .cap_bytes = cap, .verdict = verdict};
        auto runner = must(GpuRunner::create({.transformer = opened.transformer, .pool = pool_, .targets = std::span(&target, 1), .context = kContext,
                                              .over_bus = over_bus}));
        runner->settle();
        return runner;
    }
    void join() {
        for (std::thread& thread : changers) thread.join();
        changers.clear();
    }
    SimGpu simulator_;
    std::unique_ptr<gpu::Driver> driver_;
    ThreadPool pool_{2};
    std::vector<std::thread> changers;
};

QTEST_GUILESS_MAIN(TstElastic)
#include "tst_elastic.moc"
