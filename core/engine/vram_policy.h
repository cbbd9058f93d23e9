#pragma once

// How many bytes a model may hold on a card, from what the card's counter says: the reserve is kept free at once, memory that became free
// is taken back late. No clock, no driver: readings in, decisions out.

#include <chrono>
#include <cstdint>
#include <optional>

namespace headroom::engine {

class VramPolicy {
public:
    using Clock = std::chrono::steady_clock;

    struct Limits {
        std::uint64_t reserve_bytes = 0;
        std::optional<std::uint64_t> cap_bytes{};
    };
    struct Reading {
        Clock::time_point at;
        std::uint64_t total = 0;  // of the card
        std::uint64_t free = 0;   // for any program
        std::uint64_t own = 0;    // held by the model
        std::uint64_t full = 0;   // what the model would hold with everything on the card
    };
    struct Decision {
        enum class Kind : std::uint8_t { hold, yield, grow } kind = Kind::hold;
        std::uint64_t budget = 0;  // the most to hold from now on; hold: as it is
    };

    // Time in which the other programs neither took nor gave before memory is taken back: a game that loads its next level frees first.
    static constexpr std::chrono::seconds kCalm{5};
    // Memory taken back that had to be given up again within kRegret makes the next wait twice as long, up to kLongestCalm: a program that
    // comes and goes is not answered in kind.
    static constexpr std::chrono::seconds kRegret{30};
    static constexpr std::chrono::seconds kLongestCalm{60};
    // Less than this is not worth growing for; half of it is left free beyond the reserve after growing, so that small movements of
    // other programs change nothing.
    static constexpr std::uint64_t kBand = std::uint64_t{128} << 20;
    // Movement of other programs that does not count as such: browsers and desktops breathe.
    static constexpr std::uint64_t kNoise = std::uint64_t{32} << 20;
    // The first step of taking back; each further one is twice as large while it stays calm.
    static constexpr std::uint64_t kFirstStep = std::uint64_t{1} << 30;

    // Decides for new limits at once, in both directions: the user's hand does not wait for calm.
    [[nodiscard]] Decision change(const Limits& limits, const Reading& reading);
    // Decides at a reading, at most four times a second. After a decision that is not `hold` the caller resizes, then reads again in time.
    [[nodiscard]] Decision watch(const Reading& reading);

    // Bytes that may be held so that the reserve is free and the cap is kept.
    [[nodiscard]] static std::uint64_t allowed(const Limits& limits, const Reading& reading) noexcept;
    [[nodiscard]] const Limits& limits() const noexcept { return limits_; }

private:
    void see(const Reading& reading);
    [[nodiscard]] std::uint64_t target(const Reading& reading) const noexcept;  // of growing

    Limits limits_;
    std::optional<std::uint64_t> others_;  // at the last reading
    std::uint64_t growth_ = 0;             // of the others since the one before it
    Clock::time_point calm_since_{};
    Clock::duration calm_ = kCalm;
    std::optional<Clock::time_point> grew_at_;
    std::uint64_t step_ = kFirstStep;
};

}  // namespace headroom::engine
