// What of the model lies on its devices: how it changes while it speaks.

#include <algorithm>
#include <chrono>
#include <new>

#include <spdlog/spdlog.h>

#include "core/base/bytes.h"
#include "core/model/gpu/gpu_sequence.h"

namespace headroom::model {
namespace {

using residency::ResizeReport;

// How often hot experts that are missing may take the places of cold ones.
constexpr auto kLookWhileBusy = std::chrono::milliseconds(100);
constexpr auto kLookWhileIdle = std::chrono::milliseconds(1000);

void note(ResizeReport& report, const Error& error) {
    if (report.limited_by.empty()) report.limited_by = error.message;
}

double ms_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

void GpuRunner::tell_usage(std::size_t index) {
    const Part& part = parts_[index];
    Target& target = targets_[part.target];
    if (part.driver == nullptr) return;  // not placed yet
    const PartRunner* runner = part.runner.get();
    const std::scoped_lock lock(usage_mutex_);
    residency::Usage& usage = target.usage;
    usage.parked = runner == nullptr;
    if (runner == nullptr) {
        usage.weights_bytes = usage.kv_bytes = usage.scratch_bytes = 0;
        usage.blocks_resident = 0;
        return;
    }
    usage.elastic = runner->elastic();
    usage.kv_bytes = part.runner->kv().held_bytes();
    usage.scratch_bytes = runner->scratch_bytes();
    usage.weights_bytes = runner->bytes() - std::min(runner->bytes(), usage.kv_bytes + usage.scratch_bytes);
    usage.full_bytes = runner->full_bytes();
    if (const ExpertResidency* experts = runner->experts()) {
        usage.blocks_are_experts = true;
        usage.hit_rate = experts->hit_rate();
        usage.blocks_resident = experts->resident();
        usage.blocks_total = experts->total();
    } else {
        usage.blocks_total = part.size();
        usage.blocks_resident = part.size() - part.on_processor;
    }
}

Result<ResizeReport> GpuRunner::resize(std::size_t device, std::uint64_t budget, const std::stop_token& superseded) try {
    const auto start = std::chrono::steady_clock::now();
    std::unique_lock changing(changing_);
    const auto found = std::ranges::find_if(parts_, [&](const Part& one) { return one.target == device; });
    if (found == parts_.end() || !found->elastic) {
        return fail(ErrorKind::unsupported, "The memory of this device stays as it was placed: {}", usage(device).reason);
    }
    Part& part = *found;
    ResizeReport report;
    report.budget_bytes = budget;
    {
        const std::scoped_lock lock(usage_mutex_);
        targets_[device].usage.budget_bytes = budget;
        report.held_before = targets_[device].usage.held_bytes();
    }
    report.waiting_ms = ms_since(start);
    if (part.runner) {
        HR_CHECK(part.driver->make_current(part.device));
        if (const auto memory = part.driver->memory_info()) report.free_before = memory->free;
    }
    if (part.runner && (budget == 0 || part.runner->bytes() > budget)) {
        fit(part, budget, report);
    } else if (budget > 0) {
        bool wanted = true;
        while (wanted && report.limited_by.empty()) {
            wanted = false;
            grow(part, budget, report, [&] {
                wanted = kv_wanted_.load(std::memory_order_relaxed);
                return wanted || superseded.stop_requested();
            });
            report.superseded = superseded.stop_requested();
            if (report.superseded || !part.runner) break;
            if (!wanted) continue;
            // A conversation takes its pages first.
            changing.unlock();
            while (kv_wanted_.load(std::memory_order_relaxed)) std::this_thread::yield();
            changing.lock();
            if (!part.runner) break;
        }
    }
    if (part.runner) {
        if (const auto memory = part.driver->memory_info()) report.free_after = memory->free;
    }
    const residency::Usage now = usage(device);
    report.held_after = now.held_bytes();
    report.blocks_resident = now.blocks_resident;
    report.blocks_total = now.blocks_total;
    report.weights_bytes = now.weights_bytes;
    report.kv_bytes = now.kv_bytes;
    report.parked = now.parked;
    report.met = report.held_after <= budget;
    report.total_ms = ms_since(start);
    return report;
} catch (const std::bad_alloc&) {
    return fail(ErrorKind::out_of_memory, "There is not enough memory to change what lies on the GPU");
}

// In the order of giving: pages that nobody uses, cold experts, hot ones, gaps between conversations, layers with their keys and values, and
// in the end everything. A driver that refused something ends it: what it refused is not to be made up for by more.
void GpuRunner::fit(Part& part, std::uint64_t budget, ResizeReport& report) {
    PartRunner& runner = *part.runner;
    const auto over = [&] { return report.limited_by.empty() && runner.bytes() > budget; };
    if (budget == 0) return park(part, report);
    if (over()) release_unused(part, false, report);
    if (over() && runner.experts() != nullptr) {
        const Quiet quiet(*this, part);
        runner.give_experts(runner.bytes() - budget, report);
    }
    if (over()) release_unused(part, true, report);
    if (over()) give_layers(part, budget, report);
    if (over()) park(part, report);
}

void GpuRunner::grow(Part& part, std::uint64_t budget, ResizeReport& report, const std::function<bool()>& superseded) {
    if (!part.runner) unpark(part, budget, report);
    if (!part.runner) return;
    if (part.on_processor > 0) take_layers(part, budget, report, superseded);
    PartRunner& runner = *part.runner;
    // Conversations may have brought back more than there is room for.
    if (runner.bytes() > budget) return fit(part, budget, report);
    if (runner.experts() == nullptr || part.on_processor > 0) return;
    if (runner.bytes() < budget) runner.take_experts(budget - runner.bytes(), report, superseded);
}

void GpuRunner::back_pages() {
    std::optional<std::int64_t> least;
    for (const Part& part : parts_) {
        if (!part.runner) continue;
        const std::int64_t backed = part.runner->kv().backed(static_cast<std::size_t>(part.runner->begin()));
        least = std::min(backed, least.value_or(backed));
    }
    if (least) pages_->set_backed(*least);
}

void GpuRunner::release_unused(Part& part, bool compact, ResizeReport& report) {
    if (compact) {
        const auto start = std::chrono::steady_clock::now();
        const auto compacted = compact_pages();
        report.moving_ms += ms_since(start);
        if (!compacted) note(report, compacted.error());
        if (const auto current = part.driver->make_current(part.device); !current) note(report, current.error());
        if (!report.limited_by.empty()) return;
    }
    const Quiet quiet(*this, part);
    part.runner->release(pages_->drop_unused(), report);
    back_pages();
}

// Pages have the same numbers on all devices: a conversation's page moves on each of them.
Result<> GpuRunner::compact_pages() {
    const Alone alone(*this);
    const std::scoped_lock lock(sequences_mutex_);
    std::size_t used = 0;
    for (const GpuSequence* sequence : sequences_) used += sequence->pages.size();
    const auto copy = [&](std::int32_t from, std::int32_t to) -> Result<> {
        for (const Part& part : parts_) {
            if (!part.runner) continue;
            HR_CHECK(part.driver->make_current(part.device));
            HR_CHECK(part.runner->copy_page(from, to));
        }
        return {};
    };
    for (GpuSequence* sequence : sequences_) {
        for (std::int32_t& page : sequence->pages) {
            std::vector<std::int32_t> other;
            if (static_cast<std::size_t>(page) < used || !pages_->take(other, 1)) continue;
            const auto copied = copy(page, other[0]);
            if (copied) std::swap(page, other[0]);
            pages_->give_back(other, 0);
            HR_CHECK(copied);
        }
    }
    return {};
}

void GpuRunner::set_on_processor(Part& part, std::int64_t on_processor) {
    part.on_processor = on_processor;
    part.runner->set_begin(on_processor);
}

Result<> GpuRunner::layers_to_processor(Part& part, std::int64_t on_processor) {
    for (GpuSequence* sequence : sequences_) {
        KvCache& cache = sequence->caches[index_of(part)];
        HR_CHECK(cache.set_layers(on_processor));
        HR_CHECK(cache.reserve(sequence->positions));
        for (std::size_t p = 0; p < pages_for(sequence->positions); ++p) {
            for (std::int64_t layer = part.on_processor; layer < on_processor; ++layer) {
                HR_CHECK(part.runner->read_page(layer, sequence->pages[p], cache.page(layer, p)));
            }
        }
        cache.set_length(sequence->positions);
    }
    return {};
}

Result<> GpuRunner::layers_to_device(Part& part, std::int64_t on_processor) {
    for (GpuSequence* sequence : sequences_) {
        HR_CHECK(pages_->take(sequence->pages, pages_for(sequence->positions)));
        for (std::size_t p = 0; p < pages_for(sequence->positions); ++p) {
            for (std::int64_t layer = on_processor; layer < part.on_processor; ++layer) {
                HR_CHECK(part.runner->write_page(layer, sequence->pages[p], sequence->caches[index_of(part)].page(layer, p)));
            }
        }
    }
    // One that stays larger does no harm.
    for (GpuSequence* sequence : sequences_) (void)sequence->caches[index_of(part)].set_layers(on_processor);
    return {};
}

void GpuRunner::give_layers(Part& part, std::uint64_t budget, ResizeReport& report) {
    PartRunner& runner = *part.runner;
    std::int64_t given = part.on_processor;
    for (std::uint64_t held = runner.bytes(); held > budget && given < part.size() - 1; ++given) held -= std::min(held, runner.held_bytes(given));
    if (given == part.on_processor) return;
    {
        auto start = std::chrono::steady_clock::now();
        const Alone alone(*this);
        report.waiting_ms += ms_since(start);
        start = std::chrono::steady_clock::now();
        const std::scoped_lock lock(sequences_mutex_);
        if (const auto moved = layers_to_processor(part, given); !moved) return note(report, moved.error());
        set_on_processor(part, given);
        report.moving_ms += ms_since(start);
    }
    release_unused(part, false, report);
}

void GpuRunner::take_layers(Part& part, std::uint64_t budget, ResizeReport& report, const std::function<bool()>& superseded) {
    PartRunner& runner = *part.runner;
    std::int64_t left = part.on_processor;
    while (left > 0 && !superseded() && runner.bytes() + runner.missing_bytes(left - 1) <= budget) {
        if (const auto loaded = runner.load_layer(left - 1, report); !loaded) {
            note(report, loaded.error());
            break;
        }
        --left;
    }
    if (left < part.on_processor) {
        const auto start = std::chrono::steady_clock::now();
        const Alone alone(*this);
        const std::scoped_lock lock(sequences_mutex_);
        if (const auto moved = layers_to_device(part, left); !moved) {
            note(report, moved.error());
        } else {
            set_on_processor(part, left);
        }
        report.moving_ms += ms_since(start);
    }
    if (!report.limited_by.empty()) release_unused(part, false, report);  // layers that were loaded in vain
    tell_usage(index_of(part));
}

void GpuRunner::park(Part& part, ResizeReport& report) {
    {
        auto start = std::chrono::steady_clock::now();
        const Alone alone(*this);
        report.waiting_ms += ms_since(start);
        start = std::chrono::steady_clock::now();
        const std::scoped_lock lock(sequences_mutex_);
        if (const auto moved = layers_to_processor(part, part.size()); !moved) return note(report, moved.error());
        report.moving_ms += ms_since(start);
        start = std::chrono::steady_clock::now();
        part.on_processor = part.size();
        part.runner.reset();
        part.kernels.reset();
        give_up_pages();
        report.releasing_ms += ms_since(start);
    }
    const auto start = std::chrono::steady_clock::now();
    if (const auto released = part.driver->release_context(part.device); !released) note(report, released.error());
    report.releasing_ms += ms_since(start);
    tell_usage(index_of(part));
}

// Behind a device that went: its share of each page is nobody's concern now, and where it was the last one no page is.
void GpuRunner::give_up_pages() {
    if (some_on_devices()) return back_pages();
    for (GpuSequence* sequence : sequences_) pages_->give_back(sequence->pages, 0);
    (void)pages_->drop_unused();
}

void GpuRunner::unpark(Part& part, std::uint64_t budget, ResizeReport& report) {
    const auto start = std::chrono::steady_clock::now();
    const GpuTarget* target = &targets_[part.target].described;
    const Placement plan = plan_placement(transformer_, std::span(&budget, 1), context_, elastic_sizes(std::span(&target, 1)), part.layers);
    if (plan.parts.empty()) return;
    // Copies to the device are staged by the compute threads: no step meanwhile.
    const Alone alone(*this);
    const std::scoped_lock lock(sequences_mutex_);
    // The pages that conversations have on other devices, or those that they need now.
    std::size_t needed = 0;
    for (const GpuSequence* sequence : sequences_) needed += pages_for(sequence->positions);
    const std::int64_t pages = some_on_devices() ? pages_->drop_unused() : static_cast<std::int64_t>(needed);
    if (pages > pages_->total()) return note(report, PagePool::full(pages_->total()).error());  // the processor can hold more than devices can
    const auto come_back = [&]() -> Result<> {
        HR_CHECK(part.driver->make_current(part.device));
        HR_TRY(part.kernels, load_kernels(*part.driver, target->device));
        HR_CHECK(make_part(part, plan.parts.front(), plan.chunk, budget, [&](std::uint64_t bytes) { report.bytes_copied = bytes; }, {}));
        HR_CHECK(part.runner->extend_kv(std::max<std::int64_t>(pages, 1)));
        back_pages();
        return layers_to_device(part, part.runner->begin());
    };
    if (const auto back = come_back(); !back) {
        note(report, back.error());
        part.runner.reset();
        part.kernels.reset();
        (void)part.driver->release_context(part.device);
        give_up_pages();
    } else {
        part.on_processor = part.runner->begin();
        part.runner->start_pinning();
    }
    tell_usage(index_of(part));
    report.moving_ms += ms_since(start);
}

Result<> GpuRunner::grow_kv(std::size_t pages) {
    kv_wanted_.store(true, std::memory_order_relaxed);
    const std::scoped_lock changing(changing_);
    kv_wanted_.store(false, std::memory_order_relaxed);
    if (!some_on_devices()) return {};  // parked meanwhile
    if (pages_->backed_for(pages) > pages_->total()) return PagePool::full(pages_->total());
    Result<> extended;
    for (Part& part : parts_) {
        if (!part.runner || !part.elastic) continue;
        HR_CHECK(part.driver->make_current(part.device));
        const std::int64_t wanted = pages_->backed_for(pages);
        const std::uint64_t budget = usage(part.target).budget_bytes;
        const std::uint64_t cost = part.runner->kv().cost(static_cast<std::size_t>(part.on_processor), wanted);
        if (part.runner->bytes() + cost > budget) {
            ResizeReport report;
            fit(part, budget - std::min(budget, cost), report);
            if (!part.runner) continue;
            if (!report.limited_by.empty()) spdlog::warn("A conversation needs room on the GPU: {}", report.limited_by);
        }
        extended = part.runner->extend_kv(wanted);
        if (!extended) break;
    }
    back_pages();
    return extended;
}

Result<bool> GpuRunner::make_pages_ahead() {
    const std::scoped_lock changing(changing_);
    std::size_t pages = 0;
    {
        const std::scoped_lock lock(sequences_mutex_);
        for (const GpuSequence* sequence : sequences_) pages += sequence->wants_soon.load(std::memory_order_relaxed);
    }
    const std::int64_t wanted = pages_->backed_for(pages);
    if (!some_on_devices() || wanted > pages_->total()) return false;
    bool made = true;
    for (Part& part : parts_) {
        if (!part.runner || !part.elastic) continue;
        HR_CHECK(part.driver->make_current(part.device));
        const std::uint64_t budget = usage(part.target).budget_bytes;
        const std::uint64_t cost = part.runner->kv().cost(static_cast<std::size_t>(part.on_processor), wanted);
        const auto over = [&] { return part.runner->bytes() + cost > budget; };
        // Experts make room for what may come; layers do only for what has come (grow_kv).
        if (cost > 0 && over() && part.runner->experts() != nullptr) {
            const Quiet quiet(*this, part);
            ResizeReport report;
            part.runner->give_experts(part.runner->bytes() + cost - budget, report);
            if (!report.limited_by.empty()) return fail(ErrorKind::device, "{}", report.limited_by);
        }
        if (cost == 0) continue;
        if (over()) made = false;
        else HR_CHECK(part.runner->extend_kv(wanted));
    }
    back_pages();
    return made;
}

// Looks at what steps use, as long as there are steps.
void GpuRunner::adapt(const std::stop_token& stop) {
    std::vector<std::uint64_t> seen(parts_.size(), 0);
    bool refused = false;  // pages: asked again at the next look
    std::string told;      // why they could not be made, the last time
    for (bool active = false; !stop.stop_requested();) {
        {
            std::unique_lock lock(background_mutex_);
            (void)background_.wait_for(lock, stop, active ? kLookWhileBusy : kLookWhileIdle,
                                       [&] { return kv_wanted_soon_.load(std::memory_order_relaxed) && !refused; });
        }
        if (stop.stop_requested()) return;
        refused = false;
        if (kv_wanted_soon_.load(std::memory_order_relaxed)) {
            const auto made = make_pages_ahead();
            refused = !made.value_or(false);
            if (!made && made.error().message != told) {
                told = made.error().message;
                spdlog::warn("A conversation's next pages could not be made ahead: {}", told);
            }
            kv_wanted_soon_.store(false, std::memory_order_relaxed);
            if (!refused) continue;
        }
        active = false;
        for (std::size_t i = 0; i < parts_.size() && !stop.stop_requested(); ++i) {
            const std::unique_lock changing(changing_, std::try_to_lock);
            Part& part = parts_[i];
            if (!changing || !part.runner || !part.elastic || part.runner->steps() == seen[i]) continue;
            seen[i] = part.runner->steps();
            active = true;
            if (!part.driver->make_current(part.device)) continue;
            ResizeReport report;
            part.runner->adapt(report);
            if (!report.limited_by.empty()) spdlog::warn("Experts could not change places: {}", report.limited_by);
            tell_usage(i);
        }
    }
}

}  // namespace headroom::model
