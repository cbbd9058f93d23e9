#pragma once

// The watcher behind Vram: one thread that takes up wishes, reads the cards' counters, and resizes what the model holds.

#include <array>
#include <condition_variable>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>

#include "core/engine/vram.h"
#include "core/engine/vram_policy.h"
#include "core/engine/vram_wishes.h"
#include "core/residency/resize_report.h"

namespace headroom::engine {

// VRAM that a card's other programs are left where nobody said how much: `display` cards carry a desktop and a browser. total_bytes: of the card.
[[nodiscard]] std::uint64_t default_reserve(std::uint64_t total_bytes, bool display) noexcept;

// One device of a runner, as the watcher needs it: figures, and three functions that may be called until close() returns.
struct VramTarget {
    std::string id, name, uuid;
    std::string verdict;  // "on", "fixed", "off"
    std::string reason;
    std::uint64_t total_bytes = 0;
    std::uint64_t default_reserve_bytes = 0;
    VramWish wish;        // to begin with
    bool keep = true;     // later wishes are kept on disk

    // Any thread.
    std::function<residency::Usage()> usage;
    // The driver's counter. The watcher's thread alone.
    std::function<Result<std::uint64_t>()> read_free;
    // As model::GpuRunner::resize. The watcher's thread alone.
    std::function<Result<residency::ResizeReport>(std::uint64_t budget, const std::stop_token& superseded)> resize;
};

class VramControl final : public Vram {
public:
    using Clock = VramPolicy::Clock;

    // Between two readings of a counter, where nobody asks for anything.
    static constexpr std::chrono::milliseconds kReadingEvery{250};
    // Growing goes in pieces of so much, with a reading after each: a game that starts meanwhile is seen.
    static constexpr std::uint64_t kPiece = std::uint64_t{2} << 30;

    VramControl(std::vector<VramTarget> targets, VramWishes wishes);
    ~VramControl() override;

    // Starts the thread. Without it step() does its work, when it is called.
    void start();
    // Ends the thread; who still waits for a report gets one that says that the model was unloaded. The targets' functions are not called after
    // it, and there are no devices any more.
    void close();

    // Takes up what was asked for, and reads the counters where that is due. The watcher's thread alone, or a test in its place.
    void step(Clock::time_point now);

    // What was measured while decoding: for the curve of speed over VRAM. Any thread.
    void note_speed(double tokens_per_second);

    [[nodiscard]] std::vector<VramDevice> devices() const override;
    Result<> set(std::string_view device, const VramWish& wish, Done done) override;
    [[nodiscard]] Result<VramReport> set_and_wait(std::string_view device, const VramWish& wish) override;
    [[nodiscard]] std::shared_ptr<void> listen(Listener listener) override;

private:
    struct Watched {
        VramTarget target;
        VramWish wish;                  // newest
        bool asked = false;             // a wish that was not taken up yet
        VramCause cause = VramCause::load;  // of that
        Clock::time_point asked_at{};
        std::vector<Done> waiting;      // for the report of it
        std::stop_source superseded;    // of the resize under way: something was asked for, of this device or of another one
        bool acting = false;            // the watcher's thread alone
        bool growing = false;
        std::uint64_t free_bytes = 0;   // at the last reading
        std::optional<VramReport> last_report;
        std::map<std::uint64_t, double> speeds;  // by bytes held
        VramPolicy policy;              // the watcher's thread alone
        std::string problem;            // of the counter, told once
    };

    void run(const std::stop_token& stop);
    void take_up(Watched& watched);
    void keep(const VramTarget& target, const VramWish& wish) const;
    void watch(Watched& watched, Clock::time_point now);
    // Resizes until the decision is fulfilled or superseded, and tells what was done.
    [[nodiscard]] VramReport act(Watched& watched, VramPolicy::Decision decision, VramCause cause, Clock::time_point began, std::uint64_t free);
    // Takes up what is asked of devices that are not being resized: one that grows must not hold up another one's giving.
    void serve_others();
    // A new token for a resize, and whether this device's newer wish is waiting.
    [[nodiscard]] std::stop_token begin_resize(Watched& watched);
    [[nodiscard]] bool is_outdated(const Watched& watched) const;
    void tell(Watched& watched, VramReport report, std::vector<Done> waiting);
    [[nodiscard]] std::optional<std::uint64_t> read(Watched& watched);
    [[nodiscard]] VramPolicy::Limits limits(const Watched& watched) const;
    [[nodiscard]] Watched* find(std::string_view device);

    mutable std::mutex mutex_;          // of everything but what is the watcher's thread's alone
    std::condition_variable_any wake_;
    std::vector<std::unique_ptr<Watched>> watched_;
    VramWishes wishes_;
    std::uint64_t reports_ = 0;
    bool closed_ = false;
    // Called with its mutex held: once a guard is gone, so is the last call.
    struct Listeners {
        std::mutex mutex;
        std::map<std::uint64_t, Listener> all;
        std::uint64_t next = 0;
    };
    std::shared_ptr<Listeners> listeners_ = std::make_shared<Listeners>();
    Clock::time_point read_at_{};       // the watcher's thread alone
    std::jthread thread_;
};

}  // namespace headroom::engine
