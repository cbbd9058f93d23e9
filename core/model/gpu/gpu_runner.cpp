#include "core/model/gpu/gpu_runner.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <new>

#include <spdlog/spdlog.h>

#include "core/base/bytes.h"

namespace headroom::model {
namespace {

constexpr int kMostTries = 24;
// What the driver itself takes while the program runs (graphs, launches), beside what is allocated here.
constexpr std::uint64_t kDriverShare = 96 * MiB;
// How often hot experts that are missing may take the places of cold ones.
constexpr auto kLookWhileBusy = std::chrono::milliseconds(100);
constexpr auto kLookWhileIdle = std::chrono::milliseconds(1000);

std::size_t pages_for(std::int64_t positions) noexcept {
    return static_cast<std::size_t>((positions + cpu::kPagePositions - 1) / cpu::kPagePositions);
}

// What the attention kernels take (kernels/arguments.h).
constexpr std::int64_t kHeadStep = 32;
constexpr std::int64_t kMostHeadDim = 256;

Result<> check_shapes(const Transformer& transformer) {
    const Hyperparameters& model = transformer.hyperparameters;
    for (const std::int64_t width : {model.head_dim, model.head_dim_v}) {
        if (width % kHeadStep != 0 || width > kMostHeadDim) {
            return fail(ErrorKind::unsupported, "the GPU kernels take attention heads of 32 to 256 elements in steps of 32, this model's have {}", width);
        }
    }
    return {};
}

}  // namespace

class GpuRunner::GpuSequence final : public Sequence {
public:
    explicit GpuSequence(GpuRunner& of) : runner(of), cache(cpu_shape(of)) {}
    ~GpuSequence() override { runner.pages_->give_back(pages, 0); }

    [[nodiscard]] std::int64_t length() const noexcept override { return positions; }
    void truncate(std::int64_t kept) noexcept override {
        positions = std::min(positions, kept);
        runner.pages_->give_back(pages, pages_for(positions));
        cache.truncate(positions);
    }
    [[nodiscard]] std::uint64_t allocated_bytes() const noexcept override {
        KvShape shape = runner.transformer_.kv_shape();
        shape.layers -= runner.placement_.cpu_layers;
        return pages.size() * shape.page_bytes() + cache.allocated_bytes();
    }
    // Room for `count` more positions.
    [[nodiscard]] Result<> reserve(std::int64_t count) {
        if (positions + count > runner.context_) {
            return fail(ErrorKind::context_full, "The context holds {} tokens, {} are needed", runner.context_, positions + count);
        }
        return runner.pages_->take(pages, pages_for(positions + count));
    }

    GpuRunner& runner;
    std::int64_t positions = 0;
    std::vector<std::int32_t> pages;
    KvCache cache;  // of the layers on the processor

private:
    static KvShape cpu_shape(const GpuRunner& of) {
        KvShape shape = of.transformer_.kv_shape();
        shape.layers = of.placement_.cpu_layers;
        return shape;
    }
};

Result<std::unique_ptr<GpuRunner>> GpuRunner::create(const Options& options) try {
    HR_CHECK(check_shapes(options.transformer));
    std::vector<std::uint64_t> budgets;
    std::vector<std::shared_ptr<kernels::Kernels>> loaded;
    for (const GpuTarget& target : options.targets) {
        HR_CHECK(target.driver->make_current(target.device.index));
        // The kernels' own memory counts too: they are loaded before anything is measured.
        HR_TRY(auto kernels, kernels::Kernels::load(*target.driver, target.device));
        const auto unload = [driver = target.driver, device = target.device.index](kernels::Kernels* last) {
            (void)driver->make_current(device);  // whoever lets go last may be at work with another device
            delete last;
        };
        loaded.push_back(std::shared_ptr<kernels::Kernels>(kernels.release(), unload));
        HR_TRY(const gpu::MemoryInfo memory, target.driver->memory_info());
        const std::uint64_t kept = target.reserve_bytes + kDriverShare;
        std::uint64_t budget = memory.free > kept ? memory.free - kept : 0;
        if (target.cap_bytes > 0) budget = std::min(budget, target.cap_bytes);
        budgets.push_back(budget);
    }
    for (int attempt = 0; attempt < kMostTries; ++attempt) {
        std::unique_ptr<GpuRunner> runner(new GpuRunner(options));
        const Result<> placed = runner->place(options, budgets, loaded);
        if (placed) return runner;
        if (placed.error().kind != ErrorKind::out_of_memory || runner->placement_.parts.empty()) return std::unexpected(placed.error());
        spdlog::info("The model is placed again with less VRAM: {}", placed.error().message);
        for (std::uint64_t& budget : budgets) budget -= budget / 8;
    }
    return fail(ErrorKind::out_of_memory, "The GPU's memory ran out again and again while the model was being loaded");
} catch (const std::bad_alloc&) {
    return fail(ErrorKind::out_of_memory, "There is not enough memory to load the model onto the GPU");
}

Result<> GpuRunner::place(const Options& options, std::span<const std::uint64_t> budgets,
                          std::span<const std::shared_ptr<kernels::Kernels>> loaded) {
    context_ = options.context;
    for (std::size_t i = 0; i < budgets.size(); ++i) {
        const std::optional<vmm::Verdict>& verdict = options.targets[i].verdict;
        Target& target = targets_.emplace_back();
        target.reason = !verdict ? "the device was not tested" : verdict->reason;
        target.budget = budgets[i];
    }
    placement_ = plan_placement(transformer_, budgets, context_);
    if (placement_.parts.empty()) {
        return fail(ErrorKind::out_of_memory, "Not one layer of the model fits into the {} of VRAM it may use: it runs on the processor",
                    format_bytes(std::ranges::max(budgets)));
    }
    max_tokens_ = placement_.cpu_layers > 0 ? std::min(placement_.chunk, Forward::kMaxTokens) : placement_.chunk;
    pages_ = std::make_unique<PagePool>(placement_.kv_positions / cpu::kPagePositions);
    std::uint64_t before = 0;
    for (const DevicePart& part : placement_.parts) {
        const GpuTarget& target = options.targets[part.device];
        parts_.push_back({.target = part.device, .driver = target.driver, .device = target.device.index, .kernels = loaded[part.device], .runner = nullptr});
        Part& made = parts_.back();
        HR_CHECK(made.driver->make_current(made.device));
        std::uint64_t copied = 0;
        const auto progress = [&](std::uint64_t bytes) {
            copied = bytes;
            if (options.progress) options.progress(before + bytes);
        };
        HR_TRY(Uploader uploader, Uploader::create(*target.driver, pool_, progress, options.stop));
        HR_TRY(made.runner, PartRunner::create({.kernels = *made.kernels, .transformer = transformer_, .pool = pool_, .device = target.device.index,
                                                .verdict = target.verdict ? &*target.verdict : nullptr, .budget = budgets[part.device]},
                                               placement_, part, context_, uploader));
        before += copied;
    }
    count_experts();
    if (std::ranges::any_of(parts_, [](const Part& part) { return part.runner->elastic(); })) {
        pinning_ = std::jthread([this](const std::stop_token& stop) {
            for (Part& part : parts_) {
                if (part.driver->make_current(part.device)) part.runner->pin(stop);
            }
        });
        adapting_ = std::jthread([this](const std::stop_token& stop) { adapt(stop); });
    }
    return {};
}

// What the arenas took: slots waste a little, so it may be less than was planned.
void GpuRunner::count_experts() {
    placement_.experts_on_device = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        DevicePart& part = placement_.parts[i];
        const ExpertResidency* experts = parts_[i].runner->experts();
        if (experts == nullptr) continue;
        const std::span<const std::uint8_t> here = experts->here()->experts;
        for (std::size_t layer = 0; layer < part.experts.size(); ++layer) {
            const auto own = here.subspan(experts->first_block(layer), experts->first_block(layer + 1) - experts->first_block(layer));
            part.experts[layer] = std::ranges::count(own, 1);
            placement_.experts_on_device += part.experts[layer];
        }
        part.bytes = parts_[i].runner->bytes();
    }
}

// Looks at what steps use, as long as there are steps.
void GpuRunner::adapt(const std::stop_token& stop) {
    std::vector<std::uint64_t> seen(parts_.size(), 0);
    std::mutex mutex;
    std::condition_variable_any ended;
    for (bool active = false; !stop.stop_requested();) {
        std::unique_lock lock(mutex);
        (void)ended.wait_for(lock, stop, active ? kLookWhileBusy : kLookWhileIdle, [] { return false; });
        active = false;
        for (std::size_t i = 0; i < parts_.size() && !stop.stop_requested(); ++i) {
            Part& part = parts_[i];
            const std::uint64_t steps = part.runner->steps();
            if (!part.runner->elastic() || steps == seen[i]) continue;
            seen[i] = steps;
            active = true;
            const std::unique_lock alone(*part.changing, std::try_to_lock);
            if (!alone || !part.driver->make_current(part.device)) continue;
            residency::ResizeReport report;
            part.runner->adapt(report);
            if (!report.limited_by.empty()) spdlog::warn("Experts could not change places: {}", report.limited_by);
        }
    }
}

void GpuRunner::settle() {
    const std::scoped_lock lock(settling_);
    if (pinning_.joinable()) pinning_.join();
}

GpuRunner::~GpuRunner() {
    adapting_ = {};
    pinning_ = {};
    for (Part& part : parts_) {
        (void)part.driver->make_current(part.device);
        part.runner.reset();
        part.kernels.reset();
    }
}

std::uint64_t GpuRunner::device_bytes() const noexcept {
    std::uint64_t bytes = 0;
    for (const Part& part : parts_) bytes += part.runner->bytes();
    return bytes;
}

residency::Usage GpuRunner::usage(std::size_t device) const {
    residency::Usage usage;
    usage.reason = targets_[device].reason;
    usage.budget_bytes = targets_[device].budget;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        const DevicePart& part = placement_.parts[i];
        if (part.device != device) continue;
        const PartRunner& runner = *parts_[i].runner;
        usage.elastic = runner.elastic();
        KvShape kv = transformer_.kv_shape();
        kv.layers = part.last - part.first;
        usage.kv_bytes = kv.bytes(placement_.kv_positions);
        usage.scratch_bytes = Scratch::bytes(transformer_, {.tokens = placement_.chunk, .context = context_, .logits = part.output});
        usage.weights_bytes = runner.bytes() - usage.kv_bytes - usage.scratch_bytes;
        usage.full_bytes = runner.base_bytes();
        if (const ExpertResidency* experts = runner.experts()) {
            usage.blocks_are_experts = true;
            usage.hit_rate = experts->hit_rate();
            usage.blocks_resident = experts->resident();
            usage.blocks_total = experts->total();
            usage.full_bytes += experts->full_bytes();
        } else {
            usage.blocks_resident = usage.blocks_total = part.last - part.first;
        }
    }
    return usage;
}

Result<residency::ResizeReport> GpuRunner::resize(std::size_t device, std::uint64_t budget, const std::stop_token& superseded) try {
    const auto start = std::chrono::steady_clock::now();
    const auto part = std::ranges::find_if(parts_, [&](const Part& one) { return one.target == device; });
    if (part == parts_.end() || !part->runner->elastic()) {
        return fail(ErrorKind::unsupported, "The memory of this device stays as it was placed: {}", targets_[device].reason);
    }
    const std::scoped_lock alone(*part->changing);
    residency::ResizeReport report;
    report.budget_bytes = budget;
    report.held_before = part->runner->bytes();
    targets_[device].budget = budget;
    HR_CHECK(part->driver->make_current(part->device));
    if (const auto memory = part->driver->memory_info()) report.free_before = memory->free;
    part->runner->resize(budget, report, superseded);
    const residency::Usage now = usage(device);
    report.held_after = now.held_bytes();
    if (const auto memory = part->driver->memory_info()) report.free_after = memory->free;
    report.blocks_resident = now.blocks_resident;
    report.blocks_total = now.blocks_total;
    report.weights_bytes = now.weights_bytes;
    report.kv_bytes = now.kv_bytes;
    report.met = report.held_after <= budget;
    report.total_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return report;
} catch (const std::bad_alloc&) {
    return fail(ErrorKind::out_of_memory, "There is not enough memory to change what lies on the GPU");
}

std::int64_t GpuRunner::most_together() const noexcept {
    return std::min({attention_rows_limit(transformer_, context_), max_tokens_, kLogitRows});
}

Result<std::unique_ptr<Sequence>> GpuRunner::create_sequence() try {
    return std::make_unique<GpuSequence>(*this);
} catch (const std::bad_alloc&) {
    return fail(ErrorKind::out_of_memory, "There is not enough memory for another conversation");
}

Result<> GpuRunner::run_parts(PartBatch batch, PartTail tail, std::span<const std::int32_t> rows, const std::stop_token& stop) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        Part& part = parts_[i];
        HR_CHECK(part.driver->make_current(part.device));
        const bool last = i + 1 == parts_.size();
        HR_CHECK(part.runner->run(batch, last ? tail : PartTail::rows, last ? rows : std::span<const std::int32_t>(), stop));
        if (!last) batch.x = part.runner->x_rows(static_cast<std::int64_t>(batch.positions.size()));
    }
    return {};
}

Result<> GpuRunner::run(const Piece& piece, LogitsSink sink, std::stop_token stop) try {
    if (piece.tokens.empty() || static_cast<std::int64_t>(piece.tokens.size()) > max_tokens_) {
        return fail(ErrorKind::internal, "A batch of {} tokens was asked for, possible are 1 to {}", piece.tokens.size(), max_tokens_);
    }
    HR_CHECK(check_tokens(transformer_, piece.tokens));
    if (stop.stop_requested()) return fail(ErrorKind::cancelled, "The computation was cancelled");
    const std::int64_t length = piece.sequence.length();
    const auto all = [&]() -> Result<> {
        if (piece.rows.size() <= static_cast<std::size_t>(kLogitRows)) return run_few_rows(piece, sink, stop);
        // More logits than there is room for: in smaller pieces.
        for (std::size_t begin = 0, next = 0; begin < piece.tokens.size(); begin += static_cast<std::size_t>(kLogitRows)) {
            const auto tokens = piece.tokens.subspan(begin, std::min(piece.tokens.size() - begin, static_cast<std::size_t>(kLogitRows)));
            std::vector<std::int32_t> rows;
            for (; next < piece.rows.size() && static_cast<std::size_t>(piece.rows[next]) < begin + tokens.size(); ++next) {
                rows.push_back(piece.rows[next] - static_cast<std::int32_t>(begin));
            }
            const auto shifted = [&](std::int32_t row, std::span<float> logits) { sink(row + static_cast<std::int32_t>(begin), logits); };
            HR_CHECK(run_few_rows({.sequence = piece.sequence, .tokens = tokens, .rows = rows}, shifted, stop));
        }
        return {};
    };
    const Result<> done = all();
    if (!done) piece.sequence.truncate(length);
    return done;
} catch (const std::bad_alloc&) {
    return fail(ErrorKind::out_of_memory, "There is not enough memory to compute");
}

Result<> GpuRunner::run_few_rows(const Piece& piece, LogitsSink sink, const std::stop_token& stop) {
    auto& sequence = static_cast<GpuSequence&>(piece.sequence);
    const auto count = static_cast<std::int64_t>(piece.tokens.size());
    HR_CHECK(sequence.reserve(count));
    std::vector<std::int64_t> positions(piece.tokens.size());
    for (std::int64_t t = 0; t < count; ++t) positions[static_cast<std::size_t>(t)] = sequence.positions + t;
    const std::vector<std::int32_t> tables(piece.tokens.size(), 0);
    const std::span<const std::int32_t> pages = sequence.pages;
    PartBatch batch{.tokens = piece.tokens, .positions = positions, .tables = tables, .pages = std::span(&pages, 1), .x = {}};
    if (placement_.cpu_layers > 0) {
        const auto go_on = [&](std::span<const float> x) {
            batch.x = x;
            return run_parts(batch, PartTail::logits, piece.rows, stop);
        };
        HR_CHECK(forward_.run_first(placement_.cpu_layers, {.cache = sequence.cache, .tokens = piece.tokens, .rows = {}}, go_on, stop));
    } else {
        HR_CHECK(run_parts(batch, PartTail::logits, piece.rows, stop));
    }
    sequence.positions += count;
    for (std::size_t i = 0; i < piece.rows.size(); ++i) sink(piece.rows[i], parts_.back().runner->logits_row(i));
    return {};
}

Result<> GpuRunner::run_together(std::span<const Step> steps, LogitsSink sink, std::stop_token stop) {
    const auto hand_out = [&](std::int32_t i, std::size_t row) { sink(i, parts_.back().runner->logits_row(row)); };
    return step_together(steps, PartTail::logits, hand_out, sink, stop);
}

Result<> GpuRunner::choose_together(std::span<const Step> steps, ChoiceSink sink, std::stop_token stop) {
    const auto hand_out = [&](std::int32_t i, std::size_t row) { sink(i, parts_.back().runner->choice_row(row)); };
    const auto choose = [&](std::int32_t i, std::span<float> logits) {
        sink(i, static_cast<std::int32_t>(cpu::argmax(logits.data(), static_cast<std::int64_t>(logits.size()))));
    };
    return step_together(steps, PartTail::choice, hand_out, choose, stop);
}

Result<> GpuRunner::step_together(std::span<const Step> steps, PartTail tail, FunctionRef<void(std::int32_t i, std::size_t row)> hand_out,
                                  LogitsSink by_itself, const std::stop_token& stop) try {
    std::size_t done = 0;
    const auto all = [&]() -> Result<> {
        while (done < steps.size()) {
            // With layers on the processor each session goes by itself: there the batch would have to be taken apart again.
            const auto most = placement_.cpu_layers > 0 ? std::size_t{1} : static_cast<std::size_t>(most_together());
            const auto some = steps.subspan(done, std::min(most, steps.size() - done));
            if (some.size() == 1) {
                constexpr std::int32_t row = 0;
                const auto sink = [&](std::int32_t, std::span<float> logits) { by_itself(static_cast<std::int32_t>(done), logits); };
                HR_CHECK(run({.sequence = some[0].sequence, .tokens = std::span(&some[0].token, 1), .rows = std::span(&row, 1)}, sink, stop));
                ++done;
                continue;
            }
            std::vector<std::int32_t> tokens, tables, rows;
            std::vector<std::int64_t> positions;
            std::vector<std::span<const std::int32_t>> pages;
            for (const Step& step : some) {
                auto& sequence = static_cast<GpuSequence&>(step.sequence);
                HR_CHECK(sequence.reserve(1));
                tables.push_back(static_cast<std::int32_t>(tokens.size()));
                rows.push_back(static_cast<std::int32_t>(tokens.size()));
                tokens.push_back(step.token);
                positions.push_back(sequence.positions);
                pages.push_back(sequence.pages);
            }
            HR_CHECK(check_tokens(transformer_, tokens));
            HR_CHECK(run_parts({.tokens = tokens, .positions = positions, .tables = tables, .pages = pages, .x = {}}, tail, rows, stop));
            for (const Step& step : some) ++static_cast<GpuSequence&>(step.sequence).positions;
            for (std::size_t i = 0; i < some.size(); ++i) hand_out(static_cast<std::int32_t>(done + i), i);
            done += some.size();
        }
        return {};
    };
    const Result<> result = all();
    if (!result) {
        for (std::size_t i = 0; i < steps.size(); ++i) steps[i].sequence.truncate(steps[i].sequence.length() - (i < done ? 1 : 0));
    }
    return result;
} catch (const std::bad_alloc&) {
    return fail(ErrorKind::out_of_memory, "There is not enough memory to compute");
}

Result<> GpuRunner::decode_greedily(Sequence& of, std::int32_t token, std::int64_t most, FunctionRef<bool(std::int32_t)> next,
                                    std::stop_token stop) try {
    auto& sequence = static_cast<GpuSequence&>(of);
    HR_CHECK(check_tokens(transformer_, std::span(&token, 1)));
    if (placement_.cpu_layers > 0 || parts_.size() > 1) {
        for (std::int64_t i = 0; i < most; ++i) {
            const Step step{.sequence = of, .token = token};
            const auto choose = [&](std::int32_t, std::span<float> logits) {
                token = static_cast<std::int32_t>(cpu::argmax(logits.data(), static_cast<std::int64_t>(logits.size())));
            };
            HR_CHECK(run_together(std::span(&step, 1), choose, stop));
            if (!next(token)) break;
        }
        return {};
    }
    PartRunner& runner = *parts_.front().runner;
    HR_CHECK(parts_.front().driver->make_current(parts_.front().device));
    std::int64_t enqueued = 0, handed_out = 0;
    const auto enqueue = [&]() -> Result<> {
        const std::int64_t position = sequence.positions + enqueued;
        constexpr std::int32_t table = 0;
        HR_CHECK(sequence.reserve(enqueued + 1));
        const std::span<const std::int32_t> pages = sequence.pages;
        HR_CHECK(runner.enqueue_choice({.tokens = std::span(&token, 1), .positions = std::span(&position, 1), .tables = std::span(&table, 1),
                                        .pages = std::span(&pages, 1), .x = {}},
                                       enqueued > 0));
        ++enqueued;
        return {};
    };
    const auto all = [&]() -> Result<> {
        const std::int64_t room = context_ - sequence.positions;
        HR_CHECK(enqueue());
        for (bool more = true; more && handed_out < most;) {
            if (stop.stop_requested()) return fail(ErrorKind::cancelled, "The computation was cancelled");
            // The step behind the one that is being awaited, so that the device never is.
            if (enqueued < std::min(most, room)) HR_CHECK(enqueue());
            HR_TRY(const std::int32_t choice, runner.await_choice());
            ++handed_out;
            more = next(choice) && handed_out < enqueued;
        }
        return {};
    };
    const Result<> result = all();
    const Result<> drained = runner.drain();
    sequence.positions += handed_out;
    sequence.truncate(sequence.positions);  // pages of a step that nobody asked for
    HR_CHECK(result);
    return drained;
} catch (const std::bad_alloc&) {
    return fail(ErrorKind::out_of_memory, "There is not enough memory to compute");
}

}  // namespace headroom::model
