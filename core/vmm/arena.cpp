#include "core/vmm/arena.h"

#include <algorithm>

#include <spdlog/spdlog.h>

#include "core/base/bytes.h"

namespace headroom::vmm {

Result<std::unique_ptr<Arena>> Arena::create(SegmentPool& pool, const ArenaOptions& options) {
    const auto rounded = options.granularity > 0 ? checked_round_up(options.bytes, options.granularity) : std::nullopt;
    if (options.bytes == 0 || !rounded || options.segment_bytes == 0 || options.segment_bytes % options.granularity != 0) {
        return fail(ErrorKind::invalid_argument, "an address range of {} bytes in segments of {} bytes is not possible at a granularity of {} bytes",
                    options.bytes, options.segment_bytes, options.granularity);
    }
    HR_TRY(auto range, AddressRange::reserve(pool.driver(), pool.device(), *rounded));
    ArenaOptions kept = options;
    kept.segment_bytes = std::min(options.segment_bytes, *rounded);
    const auto count = static_cast<std::size_t>((*rounded - 1) / kept.segment_bytes + 1);
    return std::unique_ptr<Arena>(new Arena(pool, kept, std::move(range), count));
}

Arena::Arena(SegmentPool& pool, const ArenaOptions& options, AddressRange range, std::size_t count)
    : pool_(&pool), options_(options), range_(std::move(range)), slots_(count) {}

Arena::~Arena() {
    if (close()) return;
    if (const auto again = close(); !again) spdlog::error("VRAM stays taken until the program ends: {}", again.error().message);
}

std::uint64_t Arena::slot_bytes(std::size_t slot) const noexcept {
    return std::min(options_.segment_bytes, range_.bytes() - slot * options_.segment_bytes);
}

Result<> Arena::check_slots(std::span<const std::size_t> which, bool mapped_before) const {
    for (std::size_t i = 0; i < which.size(); ++i) {
        if (which[i] >= slots_.size()) return fail(ErrorKind::invalid_argument, "there is no slot {} among {}", which[i], slots_.size());
        if (mapped(which[i]) != mapped_before || std::ranges::find(which.first(i), which[i]) != which.begin() + static_cast<std::ptrdiff_t>(i)) {
            return fail(ErrorKind::invalid_argument, "slot {} is {}", which[i], mapped(which[i]) ? "mapped already" : "not mapped");
        }
    }
    return {};
}

Result<> Arena::put(std::size_t slot, Segment segment) {
    if (auto done = pool_->driver().map(pool_->device(), address(slot), segment.bytes(), segment.handle()); !done) {
        pool_->give_back(std::move(segment));
        return done;
    }
    mapped_bytes_ += segment.bytes();
    slots_[slot] = std::move(segment);
    return {};
}

Result<Segment> Arena::take(std::size_t slot) {
    const std::shared_ptr<void> quiet = pool_->quiet();
    HR_CHECK(pool_->driver().unmap(pool_->device(), address(slot), slot_bytes(slot)));
    Segment segment = std::move(*slots_[slot]);
    slots_[slot].reset();
    mapped_bytes_ -= segment.bytes();
    return segment;
}

Result<> Arena::grant_access(std::span<const std::size_t> which) {
    gpu::Driver& driver = pool_->driver();
    access_refused_ = true;
    if (options_.access == AccessStyle::from_base) {
        std::size_t end = 0;
        while (end < slots_.size() && mapped(end)) ++end;
        if (end > 0 && std::ranges::any_of(which, [end](std::size_t slot) { return slot < end; })) {
            HR_CHECK(driver.set_access(pool_->device(), base(), address(end - 1) + slot_bytes(end - 1) - base(), options_.host_access));
        }
        // Behind a gap there is no prefix to extend: those slots are asked for alone.
        for (const std::size_t slot : which) {
            if (slot >= end) HR_CHECK(driver.set_access(pool_->device(), address(slot), slot_bytes(slot), options_.host_access));
        }
    } else {
        for (const std::size_t slot : which) {
            HR_CHECK(driver.set_access(pool_->device(), address(slot), slot_bytes(slot), options_.host_access));
        }
    }
    access_refused_ = false;
    return {};
}

Result<> Arena::map(std::span<const std::size_t> which) {
    access_refused_ = false;
    HR_CHECK(check_slots(which, false));
    const auto attempt = [&]() -> Result<> {
        for (const std::size_t slot : which) {
            HR_TRY(auto segment, pool_->take(slot_bytes(slot)));
            HR_CHECK(put(slot, std::move(segment)));
        }
        return grant_access(which);
    };
    const auto done = attempt();
    if (done) return {};
    for (const std::size_t slot : which) {
        if (!mapped(slot)) continue;
        auto segment = take(slot);
        if (!segment) {  // it stays mapped and counted; close() tries again
            spdlog::warn("A mapping could not be taken back: {}", segment.error().message);
            continue;
        }
        pool_->give_back(std::move(*segment));
    }
    return done;
}

Result<> Arena::unmap(std::span<const std::size_t> which) {
    HR_CHECK(check_slots(which, true));
    for (const std::size_t slot : which) {
        HR_TRY(auto segment, take(slot));
        pool_->give_back(std::move(segment));
    }
    return {};
}

Result<> Arena::move(std::size_t from, std::size_t to) {
    access_refused_ = false;
    HR_CHECK(check_slots(std::span(&from, 1), true));
    HR_CHECK(check_slots(std::span(&to, 1), false));
    if (slot_bytes(from) != slot_bytes(to)) {
        return fail(ErrorKind::invalid_argument, "slot {} has {} bytes and slot {} has {}", from, slot_bytes(from), to, slot_bytes(to));
    }
    gpu::Driver& driver = pool_->driver();
    HR_TRY(auto segment, take(from));
    auto done = driver.map(pool_->device(), address(to), segment.bytes(), segment.handle());
    if (done) {
        mapped_bytes_ += segment.bytes();
        slots_[to] = std::move(segment);
        done = grant_access(std::span(&to, 1));
        if (done) return {};
        // Back to where it was.
        auto taken = take(to);
        if (!taken) return done;  // it is mapped at `to`, without access, and counted there; close() gets it
        segment = std::move(*taken);
    }
    const bool refused = access_refused_;
    if (auto back = put(from, std::move(segment)); !back) {
        spdlog::warn("A segment that could not be moved lost its place: {}", back.error().message);
    } else if (auto access = grant_access(std::span(&from, 1)); !access) {
        spdlog::warn("A segment that could not be moved cannot be used: {}", access.error().message);
        if (auto taken = take(from)) pool_->give_back(std::move(*taken));
    }
    access_refused_ = refused;
    return done;
}

Result<> Arena::close() {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
        if (!mapped(slot)) continue;
        HR_TRY(auto segment, take(slot));
        pool_->give_back(std::move(segment));
    }
    return range_.free();
}

}  // namespace headroom::vmm
