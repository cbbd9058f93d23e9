// Measures on a real card how a loaded model gives VRAM back and takes it again while it speaks (docs/elastic.md).
//   bench_elastic MODEL.gguf [threads=N] [bus=P] [PART]…       parts; all where none is named. bus: per cent of a layer's missing experts that the
//                                                           card reads from memory itself; by what steps show where it is not named
//     give    20 times: 8 GiB back and again, while tokens are decoded: times, rates, and the longest step meanwhile
//     words   2,000 greedy tokens with 20 changes, against the same without
//     curve   decode speed with 100, 90, 75, 50, 25, 10 and 0 % of the experts on the card: of greedy words (which go round in circles with
//             random weights, so that few experts are used) and of random ones
//     short   the same with 50, 25 and 10 %
//     prompts read with 100, 75, 50, 25 and 0 % of the experts on the card
//     static  75, 50, 25 and 0 % with experts that stay where they are placed: all of the last layers, none of the first ones
//     none    the last of these alone
//     park    everything given back in the middle of an answer, the context too, and taken again
//     devices with two cards or more: the layers dealt to all of them; decode speed, and what each card gives and takes by itself

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/system.h"
#include "core/gguf/file.h"
#include "core/gpu/memory_counter.h"
#include "core/model/family.h"
#include "core/model/gpu/gpu_runner.h"

using namespace headroom;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::uint64_t kShare = 8 * GiB;
constexpr std::int64_t kContext = 4096;

double ms_between(Clock::time_point a, Clock::time_point b) { return std::chrono::duration<double, std::milli>(b - a).count(); }
double gib(std::uint64_t bytes) { return static_cast<double>(bytes) / static_cast<double>(GiB); }

double quantile(std::vector<double> values, double q) {
    if (values.empty()) return 0;
    std::ranges::sort(values);
    return values[std::min(values.size() - 1, static_cast<std::size_t>(q * static_cast<double>(values.size())))];
}

template <class T>
T must(Result<T> result) {
    if (!result) {
        std::printf("%s\n", result.error().message.c_str());
        std::exit(1);
    }
    return std::move(*result);
}
void must(const Result<>& result) {
    if (!result) {
        std::printf("%s\n", result.error().message.c_str());
        std::exit(1);
    }
}

// A conversation that goes on and on in a thread of its own, and remembers when each token came.
class Speaker {
public:
    explicit Speaker(model::GpuRunner& runner) : runner_(runner) {
        thread_ = std::jthread([this](const std::stop_token& stop) { speak(stop); });
    }
    [[nodiscard]] std::size_t tokens() {
        const std::scoped_lock lock(mutex_);
        return times_.size();
    }
    void wait_for(std::size_t more) {
        const std::size_t wanted = tokens() + more;
        while (tokens() < wanted) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    // The steps that ended between two moments, in ms.
    [[nodiscard]] std::vector<double> steps(Clock::time_point from, Clock::time_point to) {
        const std::scoped_lock lock(mutex_);
        std::vector<double> found;
        for (std::size_t i = 1; i < times_.size(); ++i) {
            if (times_[i] >= from && times_[i - 1] <= to && !begins_[i]) found.push_back(ms_between(times_[i - 1], times_[i]));
        }
        return found;
    }

private:
    void speak(const std::stop_token& stop) {
        std::mt19937 random(3);
        while (!stop.stop_requested()) {
            const auto sequence = must(runner_.create_sequence());
            std::vector<std::int32_t> prompt(16);
            for (auto& id : prompt) id = static_cast<std::int32_t>(random() % 30000);
            must(static_cast<model::Runner&>(runner_).run({.sequence = *sequence, .tokens = prompt, .rows = {}}, [](auto, auto) {}));
            bool begins = true;
            const Result<> said = runner_.decode_greedily(*sequence, prompt[0], kContext - 64, [&](std::int32_t) {
                const std::scoped_lock lock(mutex_);
                times_.push_back(Clock::now());
                begins_.push_back(begins);
                begins = false;
                return !stop.stop_requested();
            }, stop);
            if (!said && said.error().kind == ErrorKind::cancelled) return;  // between two layers of the processor's
            must(said);
        }
    }
    model::GpuRunner& runner_;
    std::mutex mutex_;
    std::vector<Clock::time_point> times_;
    std::vector<bool> begins_;
    std::jthread thread_;
};

// Bytes a second of one large pinned copy.
double pinned_speed(gpu::Driver& driver) {
    const std::uint64_t bytes = 1 * GiB;
    auto host = must(gpu::PinnedBuffer::create(driver, bytes));
    auto device = must(gpu::Buffer::create(driver, bytes));
    std::memset(host.as<>(), 1, bytes);
    double best = 0;
    for (int i = 0; i < 4; ++i) {
        const auto start = Clock::now();
        must(driver.copy_to_device(device.address(), host.as<>(), bytes));
        must(driver.synchronize());
        best = std::max(best, static_cast<double>(bytes) / ms_between(start, Clock::now()) * 1000);
    }
    return best;
}

struct Bench {
    gpu::Driver& driver;
    gpu::MemoryCounter* counter;
    model::GpuRunner& runner;
    std::uint64_t full;
    std::uint64_t share = std::min(kShare, full / 2);  // given and taken
    std::uint64_t free_at_start = 0;  // on the card, before this process had anything there

    std::uint64_t free_now() { return counter != nullptr ? must(counter->read()).free : 0; }
    void tell(const char* what, const residency::ResizeReport& report) {
        std::printf("%s: %.2f GiB in %.1f ms (waiting %.1f, moving %.1f, releasing or mapping %.1f), copied %.2f GiB, %lld of %lld %s%s%s\n", what,
                    gib(report.held_before > report.held_after ? report.held_before - report.held_after : report.held_after - report.held_before),
                    report.total_ms, report.waiting_ms, report.moving_ms, report.releasing_ms, gib(report.bytes_copied),
                    static_cast<long long>(report.blocks_resident), static_cast<long long>(report.blocks_total),
                    runner.usage(0).blocks_are_experts ? "experts" : "layers", report.limited_by.empty() ? "" : "; ", report.limited_by.c_str());
    }

    void give() {
        const double bus = pinned_speed(driver);
        std::printf("a pinned copy: %.1f GB/s\n", bus / 1e9);
        Speaker speaker(runner);
        speaker.wait_for(300);
        const auto quiet_begin = Clock::now();
        speaker.wait_for(400);
        const double median = quantile(speaker.steps(quiet_begin, Clock::now()), 0.5);
        std::printf("step with everything on the card: median %.2f ms\n", median);
        std::vector<double> give_ms, grow_gbps, give_worst, grow_worst, seen_ms, less_median;
        std::vector<double> growing_steps, calm_steps;  // of all rounds: while it grows; with as little on the card, while nothing changes
        for (int round = 0; round < 20; ++round) {
            const std::uint64_t free_before = free_now();
            auto from = Clock::now();
            const auto given = must(runner.resize(0, full - share));
            auto to = Clock::now();
            while (counter != nullptr && free_now() < free_before + share - 64 * MiB && ms_between(to, Clock::now()) < 1000) {}
            seen_ms.push_back(ms_between(from, Clock::now()));
            std::this_thread::sleep_for(std::chrono::milliseconds(30));
            give_ms.push_back(given.total_ms);
            const auto during = speaker.steps(from, to);
            give_worst.push_back(quantile(during, 1));
            if (round < 3) tell("gave", given);
            if (round < 3) std::printf("  steps while giving: longest %.2f ms\n", give_worst.back());
            const auto calm = Clock::now();
            speaker.wait_for(100);
            const auto as_little = speaker.steps(calm, Clock::now());
            less_median.push_back(quantile(as_little, 0.5));
            calm_steps.insert(calm_steps.end(), as_little.begin(), as_little.end());
            from = Clock::now();
            const auto grown = must(runner.resize(0, full));
            to = Clock::now();
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            const auto growing = speaker.steps(from, to);
            grow_worst.push_back(quantile(growing, 1));
            growing_steps.insert(growing_steps.end(), growing.begin(), growing.end());
            grow_gbps.push_back(static_cast<double>(grown.bytes_copied) / grown.total_ms * 1000);
            if (round < 3) tell("grew", grown);
            if (round < 3) std::printf("  steps while growing: median %.2f, longest %.2f ms\n", quantile(growing, 0.5), grow_worst.back());
            speaker.wait_for(50);
        }
        std::printf("giving 8 GiB: median %.1f ms, worst %.1f ms; seen by the driver's counter after median %.1f, worst %.1f ms\n", quantile(give_ms, 0.5),
                    quantile(give_ms, 1), quantile(seen_ms, 0.5), quantile(seen_ms, 1));
        std::printf("  longest step meanwhile: median %.2f, worst %.2f ms (step with everything %.2f, with 8 GiB less %.2f)\n", quantile(give_worst, 0.5),
                    quantile(give_worst, 1), median, quantile(less_median, 0.5));
        std::printf("growing 8 GiB: median %.1f GB/s, slowest %.1f (%.0f and %.0f %% of the pinned copy)\n", quantile(grow_gbps, 0.5) / 1e9,
                    quantile(grow_gbps, 0) / 1e9, 100 * quantile(grow_gbps, 0.5) / bus, 100 * quantile(grow_gbps, 0) / bus);
        std::printf("  longest step meanwhile: median %.2f, worst %.2f ms\n", quantile(grow_worst, 0.5), quantile(grow_worst, 1));
        const double limit = quantile(less_median, 0.5) + 5;
        const auto tell_steps = [limit](const char* what, const std::vector<double>& steps) {
            std::printf("  %s: %zu steps, median %.2f, 99 %% %.2f, longest %.2f ms, %td over %.2f\n", what, steps.size(), quantile(steps, 0.5),
                        quantile(steps, 0.99), quantile(steps, 1), std::ranges::count_if(steps, [limit](double step) { return step > limit; }), limit);
        };
        tell_steps("all of them", growing_steps);
        tell_steps("with 8 GiB less and nothing changing", calm_steps);
    }

    std::vector<std::int32_t> answer(std::size_t count, const std::function<void(std::size_t)>& at) {
        const auto sequence = must(runner.create_sequence());
        const std::vector<std::int32_t> prompt = {11, 222, 3333, 4444, 5, 66, 777, 8888};
        must(static_cast<model::Runner&>(runner).run({.sequence = *sequence, .tokens = prompt, .rows = {}}, [](auto, auto) {}));
        std::vector<std::int32_t> chosen;
        must(static_cast<model::Runner&>(runner).decode_greedily(*sequence, 9, static_cast<std::int64_t>(count), [&](std::int32_t token) {
            chosen.push_back(token);
            at(chosen.size());
            return true;
        }));
        return chosen;
    }

    void words() {
        const auto right = answer(2000, [](auto) {});
        std::mt19937 random(5);
        std::jthread changer;
        const auto changed = answer(2000, [&](std::size_t n) {
            if (n % 100 != 50) return;
            changer = std::jthread([this, budget = full - random() % (full * 3 / 4)] { (void)must(runner.resize(0, budget)); });
        });
        changer = {};
        (void)must(runner.resize(0, full));
        std::printf("2,000 words with 20 changes: %s\n", right == changed ? "the same" : "DIFFERENT");
    }

    // Words that are read whatever the model says: every step waits for the host.
    double random_speed(int count) {
        const auto sequence = must(runner.create_sequence());
        std::mt19937 random(9);
        const auto read = [&](std::int32_t token) {
            const model::Runner::Step step{.sequence = *sequence, .token = token};
            must(static_cast<model::Runner&>(runner).run_together(std::span(&step, 1), [](auto, auto) {}));
        };
        for (int i = 0; i < 16; ++i) read(static_cast<std::int32_t>(random() % 30000));
        const auto start = Clock::now();
        for (int i = 0; i < count; ++i) read(static_cast<std::int32_t>(random() % 30000));
        return count / ms_between(start, Clock::now()) * 1000;
    }

    void park() {
        Speaker speaker(runner);
        speaker.wait_for(500);
        const auto free_before = free_now();
        const auto parked = must(runner.resize(0, 0));
        tell("parked", parked);
        const auto reading = counter != nullptr ? must(counter->read()) : gpu::MemoryReading{};
        std::printf("  free by the driver's counter: %.2f GiB more, %.1f MiB less than before this process began; it holds %s there\n",
                    gib(reading.free) - gib(free_before), (static_cast<double>(free_at_start) - static_cast<double>(reading.free)) / static_cast<double>(MiB),
                    reading.own ? fmt::format("{:.1f} MiB", static_cast<double>(*reading.own) / static_cast<double>(MiB)).c_str() : "nothing that the driver names");
        const auto calm = Clock::now();
        speaker.wait_for(20);
        std::printf("  the answer goes on on the processor: step median %.1f ms\n", quantile(speaker.steps(calm, Clock::now()), 0.5));
        const auto from = Clock::now();
        const auto back = must(runner.resize(0, full));
        const auto to = Clock::now();
        speaker.wait_for(100);
        tell("back", back);
        std::printf("  longest step meanwhile %.0f ms\n", quantile(speaker.steps(from, to), 1));
        runner.settle();
    }

    // Prompts of several lengths with three quarters, half, a quarter and none of the experts on the card.
    void prompts() {
        const std::uint64_t base = must(runner.resize(0, 1)).held_after;
        for (const int percent : {100, 75, 50, 25, 0}) {
            (void)must(runner.resize(0, std::max<std::uint64_t>(base, full - (full - base) * static_cast<std::uint64_t>(100 - percent) / 100)));
            std::printf("%3d %% of the experts: prompts of", percent);
            for (const std::size_t length : {96U, 256U, 1024U, 4000U}) {
                std::mt19937 random(static_cast<unsigned>(length));
                std::vector<std::int32_t> prompt(length);
                for (auto& id : prompt) id = static_cast<std::int32_t>(random() % 30000);
                const auto sequence = must(runner.create_sequence());
                const auto start = Clock::now();
                for (std::size_t at = 0; at < length; at += static_cast<std::size_t>(runner.max_tokens())) {
                    const auto some = std::span(prompt).subspan(at, std::min(length - at, static_cast<std::size_t>(runner.max_tokens())));
                    must(static_cast<model::Runner&>(runner).run({.sequence = *sequence, .tokens = some, .rows = {}}, [](auto, auto) {}));
                }
                std::printf(" %zu: %.0f tok/s;", length, static_cast<double>(length) / ms_between(start, Clock::now()) * 1000);
            }
            std::printf(" %lld experts\n", static_cast<long long>(runner.usage(0).blocks_resident));
        }
        (void)must(runner.resize(0, full));
    }

    // Decode speed with what lies on the card now.
    void tell_speed(int percent) {
        const auto start = Clock::now();
        (void)answer(64, [](auto) {});
        const double cold = 64 / ms_between(start, Clock::now()) * 1000;
        // What is hot takes its place.
        for (const auto begin = Clock::now(); ms_between(begin, Clock::now()) < 2000;) (void)random_speed(256);
        const auto usage = runner.usage(0);
        std::vector<double> steps;
        auto last = Clock::now();
        (void)answer(256, [&](std::size_t n) {
            const auto now = Clock::now();
            if (n > 8) steps.push_back(ms_between(last, now));
            last = now;
        });
        double sum = 0;
        for (const double step : steps) sum += step;
        const double random_words = random_speed(256);
        std::printf("%3d %%: random words %6.1f tok/s, greedy %6.1f (first words %.1f), %lld of %lld experts, %.2f GiB held, hit rate %.3f, longest step %.1f ms\n",
                    percent, random_words, static_cast<double>(steps.size()) / sum * 1000, cold, static_cast<long long>(usage.blocks_resident),
                    static_cast<long long>(usage.blocks_total), gib(usage.held_bytes()), usage.hit_rate, quantile(steps, 1));
    }

    void curve(std::initializer_list<int> percents) {
        std::uint64_t experts = 0, base = 0;
        {
            const auto none = must(runner.resize(0, 1));
            base = none.held_after;
            experts = full - base;
        }
        for (const int percent : percents) {
            (void)must(runner.resize(0, base + experts * static_cast<std::uint64_t>(percent) / 100));
            tell_speed(percent);
        }
        (void)must(runner.resize(0, full));
    }
};

// The same model placed once and for all, the experts of whole layers together, as many as `percent` of all.
void static_split(const model::Transformer& transformer, ThreadPool& pool, model::GpuTarget target, int percent, std::optional<double> over_bus) {
    target.verdict.reset();
    const std::uint64_t enough = target.device.total_bytes;
    model::Placement placement = model::plan_placement(transformer, std::span(&enough, 1), kContext);
    std::int64_t left = placement.experts_total * percent / 100;
    model::DevicePart& part = placement.parts.front();
    for (std::size_t layer = part.experts.size(); layer-- > 0;) {
        if (left >= part.experts[layer]) {
            left -= part.experts[layer];
            continue;
        }
        part.bytes -= static_cast<std::uint64_t>(part.experts[layer]) * model::expert_bytes(transformer.layers[layer]);
        part.experts[layer] = 0;
    }
    auto runner = must(model::GpuRunner::create({.transformer = transformer, .pool = pool, .targets = std::span(&target, 1), .context = kContext,
                                                 .over_bus = over_bus, .placement = placement}));
    runner->settle();
    Bench{.driver = *target.driver, .counter = nullptr, .runner = *runner, .full = 0}.tell_speed(percent);
}

// The layers dealt to all cards.
void several_devices(const model::Transformer& transformer, ThreadPool& pool, gpu::Driver& driver, const vmm::Verdict& verdict) {
    std::vector<model::GpuTarget> targets;
    for (const gpu::DeviceInfo& device : driver.devices()) {
        targets.push_back({.driver = &driver, .device = device, .reserve_bytes = 1 * GiB, .cap_bytes = 0, .verdict = verdict});
    }
    if (targets.size() < 2) {
        std::printf("devices: this machine has one card\n");
        return;
    }
    auto runner = must(model::GpuRunner::create({.transformer = transformer, .pool = pool, .targets = targets, .context = kContext}));
    runner->settle();
    std::vector<std::uint64_t> full;
    for (std::size_t i = 0; i < targets.size(); ++i) full.push_back(runner->usage(i).held_bytes());
    for (const model::DevicePart& part : runner->placement().parts) {
        std::printf("%s: layers %lld to %lld, %.2f GiB held\n", targets[part.device].device.id.c_str(), static_cast<long long>(part.first),
                    static_cast<long long>(part.last - 1), gib(full[part.device]));
    }
    Bench bench{.driver = driver, .counter = nullptr, .runner = *runner, .full = 0};
    const auto tell_speed = [&](std::size_t count) {
        const auto start = Clock::now();
        (void)bench.answer(count, [](auto) {});
        const double greedy = static_cast<double>(count) / ms_between(start, Clock::now()) * 1000;
        std::printf("  greedy %.1f tok/s, random words %.1f; held:", greedy, bench.random_speed(static_cast<int>(count)));
        for (std::size_t i = 0; i < targets.size(); ++i) std::printf(" %.2f", gib(runner->usage(i).held_bytes()));
        std::printf(" GiB\n");
    };
    tell_speed(256);
    for (std::size_t device = 0; device < targets.size(); ++device) {
        for (const std::uint64_t percent : {75U, 50U, 25U, 0U, 100U}) {
            Speaker speaker(*runner);
            speaker.wait_for(30);
            const auto from = Clock::now();
            const auto report = must(runner->resize(device, full[device] * percent / 100));
            const auto to = Clock::now();
            speaker.wait_for(30);
            bench.tell(fmt::format("{} to {} %", targets[device].device.id, percent).c_str(), report);
            std::printf("  longest step meanwhile %.1f ms, median step afterwards %.1f\n", quantile(speaker.steps(from, to), 1),
                        quantile(speaker.steps(to, Clock::now()), 0.5));
        }
        runner->settle();
    }
    for (std::size_t device = 0; device < targets.size(); ++device) {
        (void)must(runner->resize(device, full[device] / 2));
    }
    std::printf("each card at 50 %%:\n");
    tell_speed(128);
    for (std::size_t device = 0; device < targets.size(); ++device) bench.tell("parked", must(runner->resize(device, 0)));
    tell_speed(24);
    for (std::size_t device = targets.size(); device-- > 0;) bench.tell("back", must(runner->resize(device, full[device])));
    tell_speed(256);
    const auto right = bench.answer(600, [](auto) {});
    std::mt19937 random(5);
    std::jthread changer;
    const auto changed = bench.answer(600, [&](std::size_t n) {
        if (n % 30 != 15) return;
        const std::size_t device = random() % targets.size();
        changer = std::jthread([&runner, device, budget = full[device] - random() % (full[device] * 3 / 4)] { (void)must(runner->resize(device, budget)); });
    });
    changer = {};
    std::printf("600 words with 20 changes of all cards: %s\n", right == changed ? "the same" : "DIFFERENT");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    int threads = threads_beside_gpu();
    std::optional<double> over_bus;
    for (; argc > 2 && std::strchr(argv[2], '=') != nullptr; ++argv, --argc) {
        if (std::strncmp(argv[2], "threads=", 8) == 0) threads = std::max(1, std::atoi(argv[2] + 8));
        else if (std::strncmp(argv[2], "bus=", 4) == 0) over_bus = std::atof(argv[2] + 4) / 100;
        else return 2;
        argv[2] = argv[1];
    }
    const auto wanted = [&](const char* part) {
        if (argc == 2) return true;
        for (int i = 2; i < argc; ++i) {
            if (std::strcmp(argv[i], part) == 0) return true;
        }
        return false;
    };
    setvbuf(stdout, nullptr, _IOLBF, 0);
    auto file = must(gguf::File::open(argv[1]));
    auto transformer = must(model::bind_transformer(file));
    auto driver = must(gpu::Driver::load(gpu::Backend::cuda, {}));
    const gpu::DeviceInfo& device = driver->devices()[0];
    const std::unique_ptr<gpu::MemoryCounter> counter = gpu::MemoryCounter::open(device, {});
    const std::uint64_t free_at_start = counter ? must(counter->read()).free : 0;
    const auto granularity = must(driver->granularity(device.index));
    vmm::Verdict verdict;
    verdict.kind = vmm::VerdictKind::on;
    verdict.granularity_min = granularity.minimum;
    verdict.granularity_recommended = granularity.recommended;
    verdict.segment_bytes = 64 * MiB;
    ThreadPool pool(threads);
    const model::GpuTarget target{.driver = driver.get(), .device = device, .reserve_bytes = 1 * GiB, .cap_bytes = 0, .verdict = verdict};
    const auto start = Clock::now();
    auto first = start, last = start;
    std::uint64_t copied_first = 0, copied = 0;
    const auto progress = [&](std::uint64_t bytes) {
        last = Clock::now();
        if (copied == 0) first = last, copied_first = bytes;
        copied = bytes;
    };
    auto runner = must(model::GpuRunner::create({.transformer = transformer, .pool = pool, .targets = std::span(&target, 1), .context = kContext,
                                                 .progress = progress, .over_bus = over_bus}));
    const auto placed = Clock::now();
    std::printf("placed in %.2f s; of that %.2f GiB copied in %.3f s (%.1f GB/s)", ms_between(start, placed) / 1000, gib(copied),
                ms_between(first, last) / 1000, static_cast<double>(copied - copied_first) / ms_between(first, last) / 1e6);
    runner->settle();
    std::printf("; registered after %.2f s; %.2f GiB held\n", ms_between(start, Clock::now()) / 1000, gib(runner->usage(0).held_bytes()));
    Bench bench{.driver = *driver, .counter = counter.get(), .runner = *runner, .full = runner->usage(0).held_bytes(),
                .free_at_start = free_at_start};
    if (wanted("give")) bench.give();
    if (wanted("words")) bench.words();
    if (wanted("park")) bench.park();
    if (wanted("curve")) bench.curve({100, 90, 75, 50, 25, 10, 0});
    if (wanted("short")) bench.curve({50, 25, 10});
    if (wanted("prompts")) bench.prompts();
    runner.reset();
    for (const int percent : {75, 50, 25, 0}) {
        if (wanted("static") || (percent == 0 && wanted("none"))) static_split(transformer, pool, target, percent, over_bus);
    }
    if (wanted("devices")) several_devices(transformer, pool, *driver, verdict);
}
