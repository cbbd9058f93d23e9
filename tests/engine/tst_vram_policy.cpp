// The reserve beside other programs, in a world of numbers: a card, a model that takes and gives whole segments, programs that come and go.

#include <algorithm>
#include <functional>

#include <QTest>

#include "core/engine/vram_policy.h"

using namespace headroom::engine;
using namespace std::chrono_literals;
using Kind = VramPolicy::Decision::Kind;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr std::uint64_t kSegment = 64 * kMiB;
constexpr auto kTick = 10ms;
constexpr int kTicksPerReading = 25;

struct World {
    std::uint64_t total = 24 * kGiB;
    std::uint64_t full = 18 * kGiB;
    std::uint64_t own = 0;
    std::uint64_t others = 0;
    VramPolicy policy;
    VramPolicy::Clock::time_point now{};
    int refused = 0;            // allocations of other programs
    int yields = 0, grows = 0, turns = 0;  // turns: yields that follow a growth
    bool last_grew = false;
    std::uint64_t least_free = ~std::uint64_t{0};

    std::uint64_t free() const { return total - own - others; }
    VramPolicy::Reading reading() const { return {.at = now, .total = total, .free = free(), .own = own, .full = full}; }

    void apply(const VramPolicy::Decision& decision) {
        if (decision.kind == Kind::hold) return;
        own = std::min(decision.budget / kSegment * kSegment, full);
        if (decision.kind == Kind::yield) {
            ++yields;
            turns += last_grew ? 1 : 0;
        } else {
            ++grows;
        }
        last_grew = decision.kind == Kind::grow;
    }
    void start(std::uint64_t reserve) {
        own = full;
        apply(policy.change({.reserve_bytes = reserve}, reading()));
        yields = grows = turns = 0;
        last_grew = false;
    }
    // others: what they want at that time. What does not fit is refused, and they stay where they are.
    void run(VramPolicy::Clock::duration time, const std::function<std::uint64_t(double seconds)>& wanted) {
        const auto begin = now;
        for (int tick = 0; now - begin < time; ++tick) {
            const std::uint64_t want = wanted(std::chrono::duration<double>(now - begin).count());
            if (want > others && want - others > free()) {
                ++refused;
            } else {
                others = want;
            }
            least_free = std::min(least_free, free());
            if (tick % kTicksPerReading == 0) apply(policy.watch(reading()));
            now += kTick;
        }
    }
};

}  // namespace

class TestVramPolicy : public QObject {
    Q_OBJECT

private slots:
    void what_is_allowed() {
        const VramPolicy::Reading reading{.at = {}, .total = 24 * kGiB, .free = 2 * kGiB, .own = 10 * kGiB, .full = 18 * kGiB};
        QCOMPARE(VramPolicy::allowed({.reserve_bytes = kGiB}, reading), 11 * kGiB);
        QCOMPARE(VramPolicy::allowed({.reserve_bytes = 12 * kGiB}, reading), std::uint64_t{0});
        QCOMPARE(VramPolicy::allowed({.reserve_bytes = 100 * kGiB}, reading), std::uint64_t{0});
        QCOMPARE(VramPolicy::allowed({.reserve_bytes = kGiB, .cap_bytes = 3 * kGiB}, reading), 3 * kGiB);
    }

    void a_change_acts_at_once_in_both_directions() {
        VramPolicy policy;
        VramPolicy::Reading reading{.at = {}, .total = 24 * kGiB, .free = 5 * kGiB, .own = 18 * kGiB, .full = 18 * kGiB};
        auto decision = policy.change({.reserve_bytes = 8 * kGiB}, reading);
        QCOMPARE(decision.kind, Kind::yield);
        QCOMPARE(decision.budget, 15 * kGiB);
        reading.own = 15 * kGiB;
        reading.free = 8 * kGiB;
        QCOMPARE(policy.change({.reserve_bytes = 8 * kGiB}, reading).kind, Kind::hold);
        decision = policy.change({.reserve_bytes = 6 * kGiB}, reading);
        QCOMPARE(decision.kind, Kind::grow);
        QCOMPARE(decision.budget, 17 * kGiB - VramPolicy::kBand / 2);
        decision = policy.change({.reserve_bytes = kGiB}, reading);  // never more than the model needs
        QCOMPARE(decision.budget, 18 * kGiB);
        decision = policy.change({.reserve_bytes = kGiB, .cap_bytes = 4 * kGiB}, reading);
        QCOMPARE(decision.kind, Kind::yield);
        QCOMPARE(decision.budget, 4 * kGiB);
    }

    void a_whole_card_of_reserve_parks() {
        VramPolicy policy;
        const auto decision = policy.change({.reserve_bytes = 24 * kGiB}, {.at = {}, .total = 24 * kGiB, .free = 5 * kGiB, .own = 18 * kGiB, .full = 18 * kGiB});
        QCOMPARE(decision.kind, Kind::yield);
        QCOMPARE(decision.budget, std::uint64_t{0});
    }

    void a_ramp_is_followed_and_undone() {
        World world;
        world.start(2 * kGiB);
        // A game: 2 GiB a second up to 20 GiB, held for 20 seconds.
        world.run(30s, [](double s) { return std::min<std::uint64_t>(static_cast<std::uint64_t>(s * 2 * 1024) * kMiB, 20 * kGiB); });
        QCOMPARE(world.refused, 0);
        QVERIFY(world.own <= 2 * kGiB);
        QVERIFY(world.free() >= 2 * kGiB);
        QVERIFY(world.least_free >= kGiB);
        QCOMPARE(world.grows, 0);
        // It ends. Nothing is taken back for five seconds; everything is within ten.
        const std::uint64_t low = world.own;
        world.run(4900ms, [](double) { return 0; });
        QCOMPARE(world.own, low);
        world.run(5100ms, [](double) { return 0; });
        QCOMPARE(world.own, world.full);
        QCOMPARE(world.turns, 0);
    }

    void a_step_as_large_as_the_reserve_never_fails() {
        World world;
        world.start(4 * kGiB);
        // Four times 4 GiB more, a second apart.
        world.run(6s, [](double s) { return std::min<std::uint64_t>(static_cast<std::uint64_t>(s) * 4 * kGiB, 16 * kGiB); });
        QCOMPARE(world.refused, 0);
        QVERIFY(world.free() >= 4 * kGiB);
    }

    void spikes_do_not_make_it_swing() {
        World world;
        const std::uint64_t other = 5 * kGiB;
        world.others = other;
        world.start(2 * kGiB);
        // Ten minutes in which somebody takes 1.5 GiB for two seconds, every seven seconds.
        world.run(600s, [&](double s) { return other + (static_cast<long>(s) % 7 < 2 ? 1536 * kMiB : 0); });
        QCOMPARE(world.refused, 0);
        QVERIFY2(world.turns <= 6, qPrintable(QString::number(world.turns)));
        QVERIFY(world.least_free >= 512 * kMiB);
    }

    void a_breathing_desktop_changes_nothing() {
        World world;
        world.others = 6 * kGiB;
        world.start(2 * kGiB);
        world.run(600s, [](double s) { return 6 * kGiB + (static_cast<long>(s * 4) % 2) * 24 * kMiB; });
        QVERIFY(world.yields <= 1);
        QCOMPARE(world.turns, 0);
        QVERIFY(world.free() >= 2 * kGiB);
    }

    void steady_growth_is_held_for_ten_minutes() {
        World world;
        world.start(kGiB);
        // A leak: 24 MiB a second. It is followed in small steps, and never answered with growth.
        world.run(600s, [](double s) { return static_cast<std::uint64_t>(s * 24) * kMiB; });
        QCOMPARE(world.refused, 0);
        QCOMPARE(world.grows, 0);
        QVERIFY(world.least_free >= kGiB - 64 * kMiB);
    }

    void taking_back_goes_in_growing_steps() {
        World world;
        world.others = 16 * kGiB;
        world.start(kGiB);
        const std::uint64_t low = world.own;
        world.run(1s, [](double) { return 16 * kGiB; });
        world.run(5s, [](double) { return 0; });
        QCOMPARE(world.own, low);
        world.run(250ms, [](double) { return 0; });
        QCOMPARE(world.own, low + kGiB);
        world.run(250ms, [](double) { return 0; });
        QCOMPARE(world.own, low + 3 * kGiB);
        world.run(250ms, [](double) { return 0; });
        QCOMPARE(world.own, low + 7 * kGiB);
    }
};

QTEST_GUILESS_MAIN(TestVramPolicy)
#include "tst_vram_policy.moc"
