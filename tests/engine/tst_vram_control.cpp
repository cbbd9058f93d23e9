// The watcher with a card made of numbers: wishes, reports, other programs, wishes that are kept, unloading.

#include <atomic>
#include <future>

#include <QTemporaryDir>
#include <QTest>

#include "core/base/bytes.h"
#include "core/base/paths.h"
#include "core/engine/vram_control.h"

using namespace headroom;
using namespace headroom::engine;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kSegment = 64 * MiB;

struct Card {
    std::uint64_t total = 24 * GiB;
    std::atomic<std::uint64_t> others = 2 * GiB;
    std::atomic<std::uint64_t> own = 18 * GiB;
    std::uint64_t full = 18 * GiB;
    std::uint64_t floor = 0;             // it cannot go lower than this
    bool elastic = true;
    std::atomic<int> readings = 0;
    std::string counter_fails;
    std::vector<std::uint64_t> budgets;  // asked for
    std::function<void()> during_resize = [] {};

    std::uint64_t free() const { return total - own - others; }

    VramTarget target(const std::string& id = "cuda:0") {
        return {.id = id, .name = "Card", .uuid = "GPU-" + id, .verdict = elastic ? "on" : "off", .reason = elastic ? "" : "the test said so",
                .total_bytes = total, .default_reserve_bytes = GiB, .wish = {},
                .usage = [this] {
                    return residency::Usage{.elastic = elastic, .reason = {}, .weights_bytes = own, .full_bytes = full,
                                            .blocks_resident = static_cast<std::int64_t>(own * 6144 / full), .blocks_total = 6144,
                                            .blocks_are_experts = true, .parked = own == 0};
                },
                .read_free = [this]() -> Result<std::uint64_t> {
                    ++readings;
                    if (!counter_fails.empty()) return fail(ErrorKind::device, "{}", counter_fails);
                    return free();
                },
                .resize = [this](std::uint64_t budget, const std::stop_token& superseded) -> Result<residency::ResizeReport> {
                    budgets.push_back(budget);
                    during_resize();
                    residency::ResizeReport report{.budget_bytes = budget, .moving_ms = 1, .limited_by = {}};
                    if (superseded.stop_requested()) {
                        report.superseded = true;
                        return report;
                    }
                    own = std::max(std::min(budget / kSegment * kSegment, full), floor);
                    return report;
                }};
    }
};

std::vector<VramTarget> targets(VramTarget target) {
    std::vector<VramTarget> list;
    list.push_back(std::move(target));
    return list;
}

}  // namespace

class TestVramControl : public QObject {
    Q_OBJECT

    std::vector<VramReport> reports_;

    std::shared_ptr<void> collect(VramControl& control) {
        reports_.clear();
        return control.listen([this](const VramReport& report) { reports_.push_back(report); });
    }

private slots:
    void a_wish_is_fulfilled_and_reported() {
        Card card;
        VramControl control(targets(card.target()), VramWishes({}));
        control.start();
        const auto report = control.set_and_wait("cuda:0", {.reserve_bytes = 8 * GiB, .cap_bytes = {}});
        QVERIFY(report.has_value());
        QCOMPARE(report->cause, VramCause::request);
        QCOMPARE(report->own_before, 18 * GiB);
        QCOMPARE(report->own_after, 14 * GiB);
        QCOMPARE(report->free_before, 4 * GiB);
        QCOMPARE(report->free_after, 8 * GiB);
        QVERIFY(report->met);
        QCOMPARE(report->blocks_resident, std::int64_t{4778});
        QVERIFY(QString::fromStdString(describe(*report)).startsWith("Gave back 4.0 GiB in "));
        QVERIFY(describe(*report).ends_with("; 4,778 of 6,144 experts on the card"));
        const auto devices = control.devices();
        QCOMPARE(devices.size(), std::size_t{1});
        QCOMPARE(devices[0].reserve_bytes, 8 * GiB);
        QCOMPARE(devices[0].others_bytes(), 2 * GiB);
        // Back to the default.
        const auto back = control.set_and_wait("cuda:0", {});
        QVERIFY(back.has_value());
        QCOMPARE(back->reserve_bytes, GiB);
        QCOMPARE(back->own_after, 18 * GiB);
    }

    void the_cap_is_kept_beside_the_reserve() {
        Card card;
        VramControl control(targets(card.target()), VramWishes({}));
        control.start();
        const auto report = control.set_and_wait("cuda:0", {.reserve_bytes = GiB, .cap_bytes = 5 * GiB});
        QVERIFY(report && report->met);
        QCOMPARE(card.own.load(), 5 * GiB);
    }

    void a_missed_target_says_what_is_in_the_way() {
        Card card;
        card.others = 20 * GiB;
        card.own = 3 * GiB;
        VramControl control(targets(card.target()), VramWishes({}));
        control.start();
        const auto report = control.set_and_wait("cuda:0", {.reserve_bytes = 8 * GiB, .cap_bytes = {}});
        QVERIFY(report.has_value());
        QVERIFY(!report->met);
        QCOMPARE(report->own_after, std::uint64_t{0});
        QCOMPARE(report->free_after, 4 * GiB);
        QCOMPARE(report->limited_by, std::string("the rest is held by other programs"));
        QVERIFY(describe(*report).ends_with(". Wanted 8.0 GiB free, 4.0 GiB are: the rest is held by other programs"));
        // The whole card means: park.
        const auto parked = control.set_and_wait("cuda:0", {.reserve_bytes = 24 * GiB, .cap_bytes = {}});
        QVERIFY(parked && parked->met && parked->parked);
    }

    void the_newest_of_several_wishes_counts() {
        Card card;
        VramControl control(targets(card.target()), VramWishes({}));
        const auto guard = collect(control);
        control.step(VramControl::Clock::now());  // takes up what it begins with
        int told = 0;
        for (const std::uint64_t reserve : {4 * GiB, 6 * GiB, 9 * GiB}) {
            QVERIFY(control.set("cuda:0", {.reserve_bytes = reserve, .cap_bytes = {}}, [&](const VramReport& report) {
                ++told;
                QCOMPARE(report.reserve_bytes, 9 * GiB);
            }).has_value());
        }
        control.step(VramControl::Clock::now());
        QCOMPARE(told, 3);
        QCOMPARE(reports_.size(), std::size_t{2});
        QCOMPARE(reports_[0].cause, VramCause::load);
        QCOMPARE(card.own.load(), 13 * GiB);
        QCOMPARE(card.budgets.size(), std::size_t{1});
    }

    void growing_goes_in_pieces_and_ends_for_a_newer_wish() {
        Card card;
        VramControl control(targets(card.target()), VramWishes({}));
        control.step(VramControl::Clock::now());
        QVERIFY(control.set("cuda:0", {.reserve_bytes = 20 * GiB, .cap_bytes = {}}, {}).has_value());
        control.step(VramControl::Clock::now());
        QCOMPARE(card.own.load(), 2 * GiB);
        card.budgets.clear();
        QVERIFY(control.set("cuda:0", {}, {}).has_value());
        int pieces = 0;
        card.during_resize = [&] {
            if (++pieces == 3) QVERIFY(control.set("cuda:0", {.reserve_bytes = 12 * GiB, .cap_bytes = {}}, {}).has_value());
        };
        control.step(VramControl::Clock::now());
        QCOMPARE(card.budgets, (std::vector<std::uint64_t>{4 * GiB, 6 * GiB, 8 * GiB}));
        control.step(VramControl::Clock::now());
        QCOMPARE(card.own.load(), 10 * GiB - kSegment);  // half a band stays free behind growing
    }

    // What is asked of one card is done while another one grows, behind the piece under way; then that one goes on.
    void growing_does_not_hold_up_another_card() {
        Card first, second;
        std::vector<VramTarget> both = targets(first.target());
        both.push_back(second.target("cuda:1"));
        VramControl control(std::move(both), VramWishes({}));
        const auto guard = collect(control);
        control.step(VramControl::Clock::now());
        QVERIFY(control.set("cuda:0", {.reserve_bytes = 20 * GiB, .cap_bytes = {}}, {}).has_value());
        control.step(VramControl::Clock::now());
        QCOMPARE(first.own.load(), 2 * GiB);
        first.budgets.clear();
        QVERIFY(control.set("cuda:0", {}, {}).has_value());
        int pieces = 0;
        first.during_resize = [&] {
            if (++pieces == 3) QVERIFY(control.set("cuda:1", {.reserve_bytes = 12 * GiB, .cap_bytes = {}}, {}).has_value());
            if (pieces == 4) QCOMPARE(second.own.load(), 10 * GiB);
        };
        reports_.clear();
        control.step(VramControl::Clock::now());
        QVERIFY(pieces > 4);
        QCOMPARE(first.own.load(), 18 * GiB);
        QCOMPARE(first.budgets[2], first.budgets[3]);  // the piece that was cut off, again
        QCOMPARE(reports_.size(), std::size_t{2});
        QCOMPARE(reports_[0].device, std::string("cuda:1"));
        QVERIFY(reports_[0].met && reports_[1].met);
    }

    void other_programs_are_followed() {
        Card card;
        VramControl control(targets(card.target()), VramWishes({}));
        const auto guard = collect(control);
        auto now = VramControl::Clock::now();
        control.step(now);
        card.others = 5632 * MiB;  // 512 MiB are left of the card
        control.step(now += 100ms);
        QCOMPARE(card.own.load(), 18 * GiB);  // no reading was due
        control.step(now += 150ms);
        QVERIFY(card.free() >= GiB);
        QCOMPARE(reports_.back().cause, VramCause::yield);
        QVERIFY(reports_.back().met);
        card.others = 0;
        for (int i = 0; i < 60; ++i) control.step(now += 250ms);
        QCOMPARE(card.own.load(), 18 * GiB);
        QCOMPARE(reports_.back().cause, VramCause::regrow);
        QVERIFY(card.readings < 80);
    }

    void what_cannot_be_given_is_told_once() {
        Card card;
        card.floor = 17 * GiB;
        VramControl control(targets(card.target()), VramWishes({}));
        const auto guard = collect(control);
        auto now = VramControl::Clock::now();
        control.step(now);
        card.others = 6 * GiB;
        for (int i = 0; i < 20; ++i) control.step(now += 250ms);
        QCOMPARE(reports_.size(), std::size_t{2});
        QVERIFY(reports_.back().met);  // 24 - 17 - 6
        card.others = 6 * GiB + 512 * MiB;
        for (int i = 0; i < 20; ++i) control.step(now += 250ms);
        QCOMPARE(reports_.size(), std::size_t{3});
        QVERIFY(!reports_.back().met);
    }

    void a_device_that_is_not_elastic_refuses_with_its_reason_and_keeps_the_wish() {
        QTemporaryDir folder;
        const auto data = from_utf8(folder.path().toStdString());
        Card card;
        card.elastic = false;
        VramControl control(targets(card.target()), VramWishes(data));
        control.start();
        const auto refused = control.set_and_wait("cuda:0", {.reserve_bytes = 8 * GiB, .cap_bytes = {}});
        QVERIFY(!refused.has_value());
        QCOMPARE(refused.error().kind, ErrorKind::unsupported);
        QVERIFY(refused.error().message.ends_with("the test said so"));
        QCOMPARE(VramWishes(data).find("GPU-cuda:0").reserve_bytes, std::optional(8 * GiB));
        QCOMPARE(card.readings.load(), 1);  // for what is shown, when it begins; none after that
    }

    void wishes_are_kept_for_each_card() {
        QTemporaryDir folder;
        const auto data = from_utf8(folder.path().toStdString());
        const VramWishes wishes(data);
        QVERIFY(wishes.find("a") == VramWish{});
        QVERIFY(wishes.keep("a", {.reserve_bytes = 3, .cap_bytes = {}}).has_value());
        QVERIFY(wishes.keep("b", {.reserve_bytes = {}, .cap_bytes = 5}).has_value());
        QVERIFY((wishes.find("a") == VramWish{.reserve_bytes = 3, .cap_bytes = {}}));
        QVERIFY((wishes.find("b") == VramWish{.reserve_bytes = {}, .cap_bytes = 5}));
        QVERIFY(wishes.keep("a", {}).has_value());
        QVERIFY(wishes.find("a") == VramWish{});
        // A file that somebody broke is no end.
        QVERIFY(write_file(data / "vram.json", "{\"b\": {\"cap_bytes\": -1, \"reserve_bytes\": \"x\"}, ").has_value());
        QVERIFY(wishes.find("b") == VramWish{});
        QVERIFY(write_file(data / "vram.json", "{\"b\": {\"cap_bytes\": -1, \"reserve_bytes\": \"x\"}, \"c\": 7}").has_value());
        QVERIFY(wishes.find("b") == VramWish{});
        QVERIFY(wishes.find("c") == VramWish{});
        QVERIFY(wishes.keep("b", {.reserve_bytes = 9, .cap_bytes = {}}).has_value());
        QVERIFY((wishes.find("b") == VramWish{.reserve_bytes = 9, .cap_bytes = {}}));
    }

    void a_wish_is_kept_when_it_was_taken_up_or_the_model_goes() {
        QTemporaryDir folder;
        const auto data = from_utf8(folder.path().toStdString());
        const auto kept = [&] { return VramWishes(data).find("GPU-cuda:0").reserve_bytes; };
        Card card;
        VramControl control(targets(card.target()), VramWishes(data));
        control.step(VramControl::Clock::now());
        QCOMPARE(kept(), std::optional<std::uint64_t>());  // what it begins with was nobody's wish just now
        QVERIFY(control.set("cuda:0", {.reserve_bytes = 3 * GiB, .cap_bytes = {}}, {}).has_value());
        control.step(VramControl::Clock::now());
        QCOMPARE(kept(), std::optional(3 * GiB));
        QVERIFY(control.set("cuda:0", {.reserve_bytes = 4 * GiB, .cap_bytes = {}}, {}).has_value());
        control.close();
        QCOMPARE(kept(), std::optional(4 * GiB));
    }

    void a_counter_that_fails_is_told_and_changes_nothing() {
        Card card;
        card.counter_fails = "NVML is gone";
        VramControl control(targets(card.target()), VramWishes({}));
        control.start();
        const auto report = control.set_and_wait("cuda:0", {.reserve_bytes = 8 * GiB, .cap_bytes = {}});
        QVERIFY(report.has_value());
        QVERIFY(!report->met);
        QCOMPARE(report->limited_by, std::string("The free VRAM cannot be read: NVML is gone"));
        QVERIFY(card.budgets.empty());
    }

    void unknown_devices_and_unloaded_models_are_told() {
        Card card;
        auto control = std::make_shared<VramControl>(targets(card.target()), VramWishes({}));
        const auto unknown = control->set_and_wait("hip:3", {});
        QVERIFY(!unknown.has_value());
        QCOMPARE(unknown.error().message, std::string("The model does not use a device \"hip:3\"; it uses cuda:0"));
        std::promise<VramReport> promise;
        QVERIFY(control->set("cuda:0", {.reserve_bytes = 2 * GiB, .cap_bytes = {}}, [&](const VramReport& report) { promise.set_value(report); }).has_value());
        control->close();  // nobody took it up
        QCOMPARE(promise.get_future().get().limited_by, std::string("The model was unloaded"));
        QVERIFY(control->devices().empty());
        QVERIFY(!control->set_and_wait("cuda:0", {}).has_value());
    }

    void the_curve_of_speed_is_kept_by_bytes_held() {
        Card card;
        VramControl control(targets(card.target()), VramWishes({}));
        control.note_speed(100);
        card.own = 4 * GiB + 1;
        control.note_speed(40);
        control.note_speed(50);
        const auto speeds = control.devices()[0].speeds;
        QCOMPARE(speeds.size(), std::size_t{2});
        QCOMPARE(speeds[0].own_bytes, 4 * GiB);
        QCOMPARE(speeds[0].tokens_per_second, 43.0);
        QCOMPARE(speeds[1].tokens_per_second, 100.0);
    }

    void the_default_reserve_suits_the_card() {
        QCOMPARE(default_reserve(24 * GiB, true), GiB);
        QCOMPARE(default_reserve(24 * GiB, false), 512 * MiB);
        QCOMPARE(default_reserve(4 * GiB, true), 512 * MiB);
        QCOMPARE(default_reserve(2 * GiB, false), 256 * MiB);
    }
};

QTEST_GUILESS_MAIN(TestVramControl)
#include "tst_vram_control.moc"
