#include "core/engine/vram_policy.h"

#include <algorithm>

namespace headroom::engine {
namespace {

constexpr std::uint64_t minus(std::uint64_t a, std::uint64_t b) noexcept { return a > b ? a - b : 0; }

}  // namespace

std::uint64_t VramPolicy::allowed(const Limits& limits, const Reading& reading) noexcept {
    const std::uint64_t bytes = minus(reading.own + reading.free, limits.reserve_bytes);
    return limits.cap_bytes ? std::min(bytes, *limits.cap_bytes) : bytes;
}

std::uint64_t VramPolicy::target(const Reading& reading) const noexcept {
    const std::uint64_t room = minus(reading.own + reading.free, limits_.reserve_bytes + kBand / 2);
    return std::min({room, reading.full, limits_.cap_bytes.value_or(room)});
}

void VramPolicy::see(const Reading& reading) {
    const std::uint64_t others = minus(reading.total, reading.free + reading.own);
    growth_ = others_ ? minus(others, *others_) : 0;
    // The first reading begins a calm of its own: what was there before is not known. Small movements add up until they count as one.
    if (others_ && growth_ <= kNoise && minus(*others_, others) <= kNoise) return;
    calm_since_ = reading.at;
    others_ = others;
}

VramPolicy::Decision VramPolicy::change(const Limits& limits, const Reading& reading) {
    limits_ = limits;
    see(reading);
    calm_ = kCalm;
    step_ = kFirstStep;
    grew_at_.reset();
    if (const std::uint64_t most = allowed(limits, reading); reading.own > most) return {Decision::Kind::yield, most};
    const std::uint64_t wanted = target(reading);
    if (wanted > reading.own) return {Decision::Kind::grow, wanted};
    return {Decision::Kind::hold, reading.own};
}

VramPolicy::Decision VramPolicy::watch(const Reading& reading) {
    see(reading);
    if (const std::uint64_t most = allowed(limits_, reading); reading.own > most) {
        if (grew_at_ && reading.at - *grew_at_ < kRegret) calm_ = std::min<Clock::duration>(2 * calm_, kLongestCalm);
        grew_at_.reset();
        calm_since_ = reading.at;
        step_ = kFirstStep;
        // Who grew since the last reading is likely to grow as much until the next one.
        return {Decision::Kind::yield, minus(most, growth_)};
    }
    if (grew_at_ && reading.at - *grew_at_ >= kRegret) {
        calm_ = kCalm;
        grew_at_.reset();
    }
    const std::uint64_t wanted = target(reading);
    if (reading.at - calm_since_ < calm_ || wanted < reading.own + std::min(kBand, minus(reading.full, reading.own)) || wanted <= reading.own) {
        return {Decision::Kind::hold, reading.own};
    }
    const std::uint64_t budget = std::min(wanted, reading.own + step_);
    step_ *= 2;
    grew_at_ = reading.at;
    return {Decision::Kind::grow, budget};
}

}  // namespace headroom::engine
