#include "core/model/gpu/gpu_runner.h"

#include <algorithm>
#include <new>

#include <spdlog/spdlog.h>

#include "core/base/bytes.h"
#include "core/model/gpu/gpu_sequence.h"

namespace headroom::model {
namespace {

constexpr int kMostTries = 24;
// How far ahead of a conversation its pages are made: a third of a second of quick steps, longer than a change of half a card takes.
constexpr std::int64_t kLookAhead = cpu::kPagePositions / 2;
// What the driver itself takes while the program runs (graphs, launches), beside what is allocated here.
constexpr std::uint64_t kDriverShare = 96 * MiB;

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

bool is_elastic(const GpuTarget& target) { return target.verdict && target.verdict->kind == vmm::VerdictKind::on; }

}  // namespace

Result<std::unique_ptr<GpuRunner>> GpuRunner::create(const Options& options) try {
    HR_CHECK(check_shapes(options.transformer));
    std::vector<std::uint64_t> budgets;
    std::vector<std::shared_ptr<kernels::Kernels>> loaded;
    for (const GpuTarget& target : options.targets) {
        HR_CHECK(target.driver->make_current(target.device.index));
        // The kernels' own memory counts too: they are loaded before anything is measured.
        HR_TRY(auto kernels, load_kernels(*target.driver, target.device));
        loaded.push_back(std::move(kernels));
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

Result<std::shared_ptr<kernels::Kernels>> GpuRunner::load_kernels(gpu::Driver& driver, const gpu::DeviceInfo& device) {
    HR_TRY(auto kernels, kernels::Kernels::load(driver, device));
    const auto unload = [&driver, index = device.index](kernels::Kernels* last) {
        (void)driver.make_current(index);  // whoever lets go last may be at work with another device
        delete last;
    };
    return std::shared_ptr<kernels::Kernels>(kernels.release(), unload);
}

// One device that cannot move anything gets whole sessions' keys and values, and so does each other one: they have the same pages.
ElasticSizes GpuRunner::elastic_sizes(std::span<const GpuTarget* const> targets) const {
    ElasticSizes sizes;
    bool all = true;
    for (const GpuTarget* target : targets) {
        if (is_elastic(*target)) sizes.granularity = std::max(sizes.granularity, target->verdict->granularity_recommended);
        else all = false;
    }
    if (!all) return sizes;
    KvShape kv = transformer_.kv_shape();
    kv.layers = 1;
    sizes.kv_layer_bytes = KvMemory::segment_bytes(kv, static_cast<std::int64_t>(pages_for(context_)), sizes.granularity);
    return sizes;
}

bool GpuRunner::some_on_devices() const noexcept { return std::ranges::any_of(parts_, &Part::on_device); }

bool GpuRunner::all_on_devices() const noexcept {
    return std::ranges::all_of(parts_, [](const Part& part) { return part.on_processor == 0; });
}

std::int64_t GpuRunner::chunk() const noexcept {
    std::int64_t most = all_on_devices() ? max_tokens_ : std::min(max_tokens_, Forward::kMaxTokens);
    for (const Part& part : parts_) most = part.on_device() ? std::min(most, part.chunk) : most;
    return most;
}

Result<> GpuRunner::place(const Options& options, std::span<const std::uint64_t> budgets,
                          std::span<const std::shared_ptr<kernels::Kernels>> loaded) {
    context_ = options.context;
    over_bus_ = options.over_bus;
    for (std::size_t i = 0; i < budgets.size(); ++i) {
        const std::optional<vmm::Verdict>& verdict = options.targets[i].verdict;
        Target& target = targets_.emplace_back();
        target.described = options.targets[i];
        target.reason = !verdict ? "the device was not tested" : verdict->reason;
        target.usage.reason = target.reason;
        target.usage.budget_bytes = budgets[i];
    }
    std::vector<const GpuTarget*> described;
    for (const GpuTarget& target : options.targets) described.push_back(&target);
    placement_ = options.placement ? *options.placement : plan_placement(transformer_, budgets, context_, elastic_sizes(described));
    if (placement_.parts.empty()) {
        return fail(ErrorKind::out_of_memory, "Not one layer of the model fits into the {} of VRAM it may use: it runs on the processor",
                    format_bytes(std::ranges::max(budgets)));
    }
    for (std::size_t i = 0; i < targets_.size(); ++i) {
        const bool used = std::ranges::any_of(placement_.parts, [i](const DevicePart& part) { return part.device == i; });
        if (!used && targets_[i].usage.reason.empty()) targets_[i].usage.reason = "No layer was dealt to this device when the model was loaded";
    }
    pages_ = std::make_unique<PagePool>(placement_.kv_positions / cpu::kPagePositions, 0);
    std::uint64_t before = 0;
    parts_.resize(placement_.parts.size());
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        const DevicePart& plan = placement_.parts[i];
        const GpuTarget& target = options.targets[plan.device];
        Part& part = parts_[i];
        part.target = plan.device;
        part.driver = target.driver;
        part.device = target.device.index;
        part.elastic = is_elastic(target);
        // The processor's layers stand before the first part, which takes them when there is room.
        part.layers = {.first = i == 0 ? 0 : plan.first, .last = plan.last};
        part.on_processor = plan.first - part.layers.first;
        part.kernels = loaded[plan.device];
        HR_CHECK(part.driver->make_current(part.device));
        std::uint64_t copied = 0;
        const auto progress = [&](std::uint64_t bytes) {
            copied = bytes;
            if (options.progress) options.progress(before + bytes);
        };
        HR_CHECK(make_part(part, plan, placement_.chunk, budgets[plan.device], progress, options.stop));
        before += copied;
    }
    const bool always = parts_[0].on_processor > 0 && !parts_[0].elastic;  // some layers are the processor's
    max_tokens_ = always ? std::min(placement_.chunk, Forward::kMaxTokens) : placement_.chunk;
    back_pages();
    count_experts();
    for (Part& part : parts_) part.runner->start_pinning();
    if (std::ranges::any_of(parts_, [](const Part& part) { return part.runner->elastic(); })) {
        adapting_ = std::jthread([this](const std::stop_token& stop) { adapt(stop); });
    }
    return {};
}

Result<> GpuRunner::make_part(Part& part, const DevicePart& plan, std::int64_t chunk, std::uint64_t budget, const UploadProgress& progress,
                              const std::stop_token& stop) {
    DevicePart all = plan;
    if (part.elastic) {  // addresses for everything; the layers before plan.first are not there yet
        all.first = part.layers.first;
        all.embedding = all.first == 0;
        all.experts.insert(all.experts.begin(), static_cast<std::size_t>(plan.first - all.first), 0);
    }
    const std::size_t index = index_of(part);
    PartRunner::Environment environment{.kernels = *part.kernels, .transformer = transformer_, .pool = pool_, .device = part.device,
                                        .verdict = part.elastic ? &*targets_[part.target].described.verdict : nullptr, .budget = budget,
                                        .begin = plan.first - all.first, .kv_pages = 1, .changed = [this, index] { tell_usage(index); },
                                        .over_bus = over_bus_};
    if (!part.driver->unmaps_beside_work()) {
        environment.quiet = [this, driver = part.driver]() -> std::shared_ptr<void> {
            auto alone = std::make_shared<Alone>(*this);
            (void)driver->synchronize();  // copies of changes too
            return alone;
        };
    }
    Placement sizes;
    sizes.chunk = chunk;
    sizes.kv_positions = placement_.kv_positions;
    HR_TRY(Uploader uploader, Uploader::create(*part.driver, pool_, progress, stop));
    HR_TRY(part.runner, PartRunner::create(environment, sizes, all, context_, uploader));
    part.chunk = chunk;
    tell_usage(index);
    return {};
}

// What the arenas took: slots waste a little, so it may be less than was planned.
void GpuRunner::count_experts() {
    placement_.experts_on_device = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        DevicePart& part = placement_.parts[i];
        part.bytes = parts_[i].runner->bytes();
        const ExpertResidency* experts = parts_[i].runner->experts();
        if (experts == nullptr) continue;
        const std::span<const std::uint8_t> here = experts->here()->experts;
        const auto skipped = static_cast<std::size_t>(parts_[i].elastic ? parts_[i].on_processor : 0);
        for (std::size_t layer = 0; layer < part.experts.size(); ++layer) {
            const std::size_t begin = experts->first_block(layer + skipped), end = experts->first_block(layer + skipped + 1);
            part.experts[layer] = std::ranges::count(here.subspan(begin, end - begin), 1);
            placement_.experts_on_device += part.experts[layer];
        }
    }
}

void GpuRunner::settle() {
    for (Part& part : parts_) {
        if (part.runner) part.runner->settle();
    }
}

GpuRunner::~GpuRunner() {
    adapting_ = {};
    for (Part& part : parts_) {
        if (!part.runner && !part.kernels) continue;
        (void)part.driver->make_current(part.device);
        part.runner.reset();
        part.kernels.reset();
    }
}

std::uint64_t GpuRunner::device_bytes() const {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < targets_.size(); ++i) bytes += usage(i).held_bytes();
    return bytes;
}

residency::Usage GpuRunner::usage(std::size_t device) const {
    const std::scoped_lock lock(usage_mutex_);
    return targets_[device].usage;
}

MissingChoices GpuRunner::missing_choices(std::size_t device) const {
    for (const Part& part : parts_) {
        if (part.target == device && part.runner) return part.runner->missing_choices();
    }
    return {};
}

std::int64_t GpuRunner::most_together() const noexcept {
    return std::min({attention_rows_limit(transformer_, context_), max_tokens_, kLogitRows});
}

Result<std::unique_ptr<Sequence>> GpuRunner::create_sequence() try {
    return std::make_unique<GpuSequence>(*this);
} catch (const std::bad_alloc&) {
    return fail(ErrorKind::out_of_memory, "There is not enough memory for another conversation");
}

Result<std::unique_ptr<Sequence>> GpuRunner::copy_sequence(Sequence& of, std::int64_t positions) {
    auto& from = static_cast<GpuSequence&>(of);
    HR_TRY(auto made, create_sequence());
    auto& to = static_cast<GpuSequence&>(*made);
    for (;;) {
        HR_CHECK(make_room(to, positions));
        const residency::StepGate::Step alone(alone_);
        if (!to.reserve(positions)) continue;  // a device has come back in between
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            const Part& part = parts_[i];
            if (part.on_processor > 0) HR_CHECK(to.caches[i].copy(from.caches[i], positions));
            if (!part.on_device()) continue;
            HR_CHECK(part.driver->make_current(part.device));
            for (std::size_t page = 0; page < pages_for(positions); ++page) HR_CHECK(part.runner->copy_page(from.pages[page], to.pages[page]));
        }
        to.positions = positions;
        return made;
    }
}

Result<> GpuRunner::run_part(std::size_t number, PartBatch& batch, Tail tail, std::span<const std::int32_t> rows, const std::stop_token& stop) {
    Part& part = parts_[number];
    HR_CHECK(part.driver->make_current(part.device));
    const bool last = number + 1 == parts_.size();
    HR_CHECK(part.runner->run(batch, last ? tail : Tail{PartTail::rows}, last ? rows : std::span<const std::int32_t>(), stop));
    if (!last) batch.x = part.runner->x_rows(static_cast<std::int64_t>(batch.positions.size()));
    return {};
}

Result<> GpuRunner::run_parts(PartBatch batch, Tail tail, std::span<const std::int32_t> rows, const std::stop_token& stop) {
    for (std::size_t i = 0; i < parts_.size(); ++i) HR_CHECK(run_part(i, batch, tail, rows, stop));
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

Result<> GpuRunner::make_room(GpuSequence& sequence, std::int64_t count) {
    for (;;) {
        auto reserved = sequence.reserve(count);
        const bool grows = std::ranges::any_of(parts_, &Part::elastic);
        if (reserved || reserved.error().kind != ErrorKind::out_of_memory || !grows) return reserved;
        HR_CHECK(grow_kv(sequence.lacking(count)));
    }
}

void GpuRunner::look_ahead(GpuSequence& sequence, std::int64_t position) {
    const std::size_t needed = pages_for(std::min(position + kLookAhead, context_));
    const bool grows = some_on_devices() && std::ranges::any_of(parts_, &Part::elastic);
    const std::size_t wanted = grows && needed > sequence.pages.size() ? needed - sequence.pages.size() : 0;
    sequence.wants_soon.store(wanted, std::memory_order_relaxed);
    if (wanted == 0 || kv_wanted_soon_.load(std::memory_order_relaxed)) return;
    const std::int64_t backed = pages_->backed_for(wanted);
    if (backed == pages_->backed() || backed > pages_->total()) return;
    {
        const std::scoped_lock lock(background_mutex_);
        kv_wanted_soon_.store(true, std::memory_order_relaxed);
    }
    background_.notify_one();
}

Result<> GpuRunner::run_few_rows(const Piece& piece, LogitsSink sink, const std::stop_token& stop) {
    auto& sequence = static_cast<GpuSequence&>(piece.sequence);
    const auto count = static_cast<std::int64_t>(piece.tokens.size());
    std::vector<std::int32_t> rows;
    for (std::int64_t begin = 0; begin < count;) {
        HR_CHECK(make_room(sequence, count - begin));
        const residency::StepGate::Step alone(alone_);
        // A device may have come back in between, and want pages.
        if (!sequence.reserve(count - begin)) continue;
        const std::int64_t some = std::min(count - begin, chunk());
        rows.clear();
        for (const std::int32_t row : piece.rows) {
            if (row >= begin && row < begin + some) rows.push_back(row - static_cast<std::int32_t>(begin));
        }
        const auto shifted = [&](std::int32_t row, std::span<float> logits) { sink(row + static_cast<std::int32_t>(begin), logits); };
        const auto tokens = piece.tokens.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(some));
        HR_CHECK(run_few_rows_alone({.sequence = sequence, .tokens = tokens, .rows = rows}, shifted, stop));
        begin += some;
    }
    return {};
}

Result<> GpuRunner::run_few_rows_alone(const Piece& piece, LogitsSink sink, const std::stop_token& stop) {
    auto& sequence = static_cast<GpuSequence&>(piece.sequence);
    const auto count = static_cast<std::int64_t>(piece.tokens.size());
    std::vector<std::int64_t> positions(piece.tokens.size());
    for (std::int64_t t = 0; t < count; ++t) positions[static_cast<std::size_t>(t)] = sequence.positions + t;
    const std::vector<std::int32_t> tables(piece.tokens.size(), 0);
    const std::span<const std::int32_t> pages = sequence.pages;
    PartBatch batch{.tokens = piece.tokens, .positions = positions, .tables = tables, .pages = std::span(&pages, 1), .x = {}};
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        const Part& part = parts_[i];
        if (part.on_processor > 0) {
            HR_TRY(batch.x, forward_.run_layers({.first = part.layers.first, .last = part.layers.first + part.on_processor},
                                                {.cache = sequence.caches[i], .tokens = piece.tokens, .rows = piece.rows}, batch.x, sink, stop));
        }
        if (part.on_device()) HR_CHECK(run_part(i, batch, {PartTail::logits}, piece.rows, stop));
    }
    sequence.positions += count;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        if (parts_[i].on_processor > 0) sequence.caches[i].set_length(sequence.positions);
    }
    if (!parts_.back().on_device()) return {};
    for (std::size_t i = 0; i < piece.rows.size(); ++i) sink(piece.rows[i], parts_.back().runner->logits_row(i));
    return {};
}

Result<> GpuRunner::read_together(std::span<const Piece> pieces, std::stop_token stop) try {
    std::size_t done = 0;
    const auto room_for = [&](const Piece& piece) {
        return static_cast<GpuSequence&>(piece.sequence).reserve(static_cast<std::int64_t>(piece.tokens.size())).has_value();
    };
    const auto all = [&]() -> Result<> {
        while (done < pieces.size()) {
            const auto most = static_cast<std::size_t>(max_tokens_);
            std::size_t count = 0, tokens = 0;
            for (const Piece& piece : pieces.subspan(done, std::min(pieces.size() - done, static_cast<std::size_t>(kLogitRows)))) {
                if (count > 0 && tokens + piece.tokens.size() > most) break;
                HR_CHECK(check_tokens(transformer_, piece.tokens));
                HR_CHECK(make_room(static_cast<GpuSequence&>(piece.sequence), static_cast<std::int64_t>(piece.tokens.size())));
                tokens += piece.tokens.size();
                ++count;
            }
            const auto some = pieces.subspan(done, count);
            if (count > 1) {
                const residency::StepGate::Step alone(alone_);
                if (!std::ranges::all_of(some, room_for)) continue;
                // With layers on the processor each goes by itself, as in step_together; and where the device came back with less room.
                if (all_on_devices() && static_cast<std::int64_t>(tokens) <= chunk()) {
                    HR_CHECK(read_some_alone(some, stop));
                    done += count;
                    continue;
                }
            }
            HR_CHECK(run({.sequence = some[0].sequence, .tokens = some[0].tokens, .rows = {}}, [](std::int32_t, std::span<float>) {}, stop));
            ++done;
        }
        return {};
    };
    const Result<> result = all();
    if (!result) {
        for (std::size_t i = 0; i < pieces.size(); ++i) {
            pieces[i].sequence.truncate(pieces[i].sequence.length() - (i < done ? static_cast<std::int64_t>(pieces[i].tokens.size()) : 0));
        }
    }
    return result;
} catch (const std::bad_alloc&) {
    return fail(ErrorKind::out_of_memory, "There is not enough memory to compute");
}

Result<> GpuRunner::read_some_alone(std::span<const Piece> some, const std::stop_token& stop) {
    std::vector<std::int32_t> tokens, tables;
    std::vector<std::int64_t> positions;
    std::vector<std::span<const std::int32_t>> pages;
    for (const Piece& piece : some) {
        const auto& sequence = static_cast<GpuSequence&>(piece.sequence);
        for (std::size_t t = 0; t < piece.tokens.size(); ++t) {
            tokens.push_back(piece.tokens[t]);
            tables.push_back(static_cast<std::int32_t>(pages.size()));
            positions.push_back(sequence.positions + static_cast<std::int64_t>(t));
        }
        pages.push_back(sequence.pages);
    }
    HR_CHECK(run_parts({.tokens = tokens, .positions = positions, .tables = tables, .pages = pages, .x = {}}, {PartTail::logits}, {}, stop));
    for (const Piece& piece : some) static_cast<GpuSequence&>(piece.sequence).positions += static_cast<std::int64_t>(piece.tokens.size());
    return {};
}

Result<> GpuRunner::run_some_together(std::span<const Step> some, std::size_t first, Tail tail,
                                      FunctionRef<void(std::int32_t i, std::size_t row)> hand_out, const std::stop_token& stop) {
    std::vector<std::int32_t> tokens, tables, rows;
    std::vector<std::int64_t> positions;
    std::vector<std::span<const std::int32_t>> pages;
    for (const Step& step : some) {
        auto& sequence = static_cast<GpuSequence&>(step.sequence);
        tables.push_back(static_cast<std::int32_t>(tokens.size()));
        rows.push_back(static_cast<std::int32_t>(tokens.size()));
        tokens.push_back(step.token);
        positions.push_back(sequence.positions);
        pages.push_back(sequence.pages);
    }
    HR_CHECK(check_tokens(transformer_, tokens));
    HR_CHECK(run_parts({.tokens = tokens, .positions = positions, .tables = tables, .pages = pages, .x = {}}, tail, rows, stop));
    for (const Step& step : some) ++static_cast<GpuSequence&>(step.sequence).positions;
    for (std::size_t i = 0; i < some.size(); ++i) hand_out(static_cast<std::int32_t>(first + i), i);
    return {};
}

Result<> GpuRunner::run_together(std::span<const Step> steps, LogitsSink sink, std::stop_token stop) {
    const auto hand_out = [&](std::int32_t i, std::size_t row) { sink(i, parts_.back().runner->logits_row(row)); };
    return step_together(steps, {PartTail::logits}, hand_out, sink, stop);
}

Result<> GpuRunner::choose_together(std::span<const Step> steps, ChoiceSink sink, std::stop_token stop) {
    const auto hand_out = [&](std::int32_t i, std::size_t row) { sink(i, parts_.back().runner->choice_row(row)); };
    const auto choose = [&](std::int32_t i, std::span<float> logits) {
        sink(i, static_cast<std::int32_t>(cpu::argmax(logits.data(), static_cast<std::int64_t>(logits.size()))));
    };
    return step_together(steps, {PartTail::choice}, hand_out, choose, stop);
}

Result<> GpuRunner::look_together(std::span<const Step> steps, std::int32_t count, OutlookSink sink, std::stop_token stop) {
    const auto all = [&](std::int32_t i, std::span<float> logits) { sink(i, {.logits = logits, .likeliest = {}}); };
    std::int32_t most = 64;  // few different numbers, so that few different steps are captured
    while (most < count && most <= kernels::kMostTop) most *= 2;
    if (count < 1 || most > kernels::kMostTop || most >= transformer_.vocabulary) return run_together(steps, all, stop);
    std::vector<Likely> likeliest;
    const auto hand_out = [&](std::int32_t i, std::size_t row) {
        parts_.back().runner->likeliest_row(row, most, likeliest);
        sink(i, {.logits = {}, .likeliest = likeliest});
    };
    return step_together(steps, {PartTail::likeliest, most}, hand_out, all, stop);
}

Result<> GpuRunner::step_together(std::span<const Step> steps, Tail tail, FunctionRef<void(std::int32_t i, std::size_t row)> hand_out,
                                  LogitsSink by_itself, const std::stop_token& stop) try {
    std::size_t done = 0;
    const auto room_for = [&](std::span<const Step> some) {
        return std::ranges::all_of(some, [](const Step& step) { return static_cast<GpuSequence&>(step.sequence).reserve(1).has_value(); });
    };
    const auto all = [&]() -> Result<> {
        while (done < steps.size()) {
            const auto some = steps.subspan(done, std::min(static_cast<std::size_t>(most_together()), steps.size() - done));
            for (const Step& step : some) HR_CHECK(make_room(static_cast<GpuSequence&>(step.sequence), 1));
            if (some.size() > 1 || tail.kind == PartTail::likeliest) {
                const residency::StepGate::Step alone(alone_);
                if (!room_for(some)) continue;
                for (const Step& step : some) {
                    auto& sequence = static_cast<GpuSequence&>(step.sequence);
                    look_ahead(sequence, sequence.positions);
                }
                // With layers on the processor each session goes by itself: there the batch would have to be taken apart again.
                if (all_on_devices()) {
                    HR_CHECK(run_some_together(some, done, tail, hand_out, stop));
                    done += some.size();
                    continue;
                }
            }
            constexpr std::int32_t row = 0;
            const auto sink = [&](std::int32_t, std::span<float> logits) { by_itself(static_cast<std::int32_t>(done), logits); };
            HR_CHECK(run({.sequence = some[0].sequence, .tokens = std::span(&some[0].token, 1), .rows = std::span(&row, 1)}, sink, stop));
            ++done;
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
    bool goes_on = true;
    for (std::int64_t handed_out = 0; goes_on && handed_out < most;) {
        if (handed_out > 0 && sequence.positions == context_) break;
        HR_CHECK(make_room(sequence, 1));
        bool chained = false;
        {
            const residency::StepGate::Step alone(alone_);
            if (!sequence.reserve(1)) continue;
            chained = all_on_devices() && parts_.size() == 1;
            if (chained) HR_CHECK(chain_alone(sequence, token, most, handed_out, goes_on, next, stop));
        }
        if (chained) continue;
        constexpr std::int32_t row = 0;
        const std::int32_t read = token;
        const auto choose = [&](std::int32_t, std::span<float> logits) {
            token = static_cast<std::int32_t>(cpu::argmax(logits.data(), static_cast<std::int64_t>(logits.size())));
        };
        HR_CHECK(run({.sequence = of, .tokens = std::span(&read, 1), .rows = std::span(&row, 1)}, choose, stop));
        ++handed_out;
        goes_on = next(token);
    }
    return {};
} catch (const std::bad_alloc&) {
    return fail(ErrorKind::out_of_memory, "There is not enough memory to compute");
}

Result<> GpuRunner::chain_alone(GpuSequence& sequence, std::int32_t& token, std::int64_t most, std::int64_t& handed_out, bool& goes_on,
                                FunctionRef<bool(std::int32_t)> next, const std::stop_token& stop) {
    PartRunner& runner = *parts_.front().runner;
    HR_CHECK(parts_.front().driver->make_current(parts_.front().device));
    const std::int32_t first = token;
    std::int64_t enqueued = 0, done = 0;
    const auto enqueue = [&]() -> Result<> {
        const std::int64_t position = sequence.positions + enqueued;
        constexpr std::int32_t table = 0;
        const std::span<const std::int32_t> pages = sequence.pages;
        HR_CHECK(runner.enqueue_choice({.tokens = std::span(&first, 1), .positions = std::span(&position, 1), .tables = std::span(&table, 1),
                                        .pages = std::span(&pages, 1), .x = {}},
                                       enqueued > 0));
        ++enqueued;
        return {};
    };
    const auto all = [&]() -> Result<> {
        const std::int64_t room = std::min(most - handed_out, context_ - sequence.positions);
        HR_CHECK(enqueue());
        while (goes_on && done < enqueued) {
            if (stop.stop_requested()) return fail(ErrorKind::cancelled, "The computation was cancelled");
            // The step behind the one that is being awaited, so that the device never is.
            if (enqueued < room && !alone_.change_waits() && sequence.reserve(enqueued + 1)) HR_CHECK(enqueue());
            look_ahead(sequence, sequence.positions + enqueued);
            HR_TRY(const std::int32_t choice, runner.await_choice());
            ++done;
            ++handed_out;
            token = choice;
            goes_on = next(choice);
        }
        return {};
    };
    const Result<> result = all();
    const Result<> drained = runner.drain();
    sequence.positions += done;
    sequence.truncate(sequence.positions);  // pages of a step that nobody asked for
    HR_CHECK(result);
    return drained;
}

}  // namespace headroom::model
