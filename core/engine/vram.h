#pragma once

// How much VRAM a loaded model may have: reserve and cap of each GPU, held while other programs come and go, and the reports of what was
// done. One object for each loaded model (Model::vram).

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace headroom::engine {

// What the user wants of one device.
struct VramWish {
    std::optional<std::uint64_t> reserve_bytes{};  // to keep free on the card whatever other programs do; none: default_reserve_bytes. The
                                                   // whole card or more: park (everything is given back, the model stays in RAM)
    std::optional<std::uint64_t> cap_bytes{};      // the most to use; none: no limit

    [[nodiscard]] bool operator==(const VramWish&) const = default;
};

// Why the model's share of a card was changed.
enum class VramCause : std::uint8_t {
    load,     // the model was placed
    request,  // somebody set reserve or cap
    yield,    // other programs took memory: the reserve is held
    regrow,   // other programs gave memory back, and it has been calm since
    need,     // a conversation's KV cache took room that weights had
};
[[nodiscard]] std::string_view to_string(VramCause cause) noexcept;  // "load", "request", "yield", "regrow", "need"

// What was asked for, what was achieved and what stood in the way. Figures are read after the fact: from the driver, a clock, the
// engine's own account.
struct VramReport {
    std::string device;                  // "cuda:0"
    std::uint64_t number = 0;            // counts the reports of a model, from 1
    VramCause cause = VramCause::request;
    VramWish wish{};                     // in force
    std::uint64_t reserve_bytes = 0;     // wish.reserve_bytes, or the default
    std::uint64_t free_before = 0;       // on the card, by the driver
    std::uint64_t free_after = 0;
    std::uint64_t own_before = 0;        // held by this model, by its own account
    std::uint64_t own_after = 0;
    double total_ms = 0;                 // from the call to the last released or published byte
    double waiting_ms = 0;               // for steps that used what leaves
    double moving_ms = 0;                // hot blocks to segments that stay; growing: copies to the card
    double releasing_ms = 0;             // unmapping and releasing; growing: mapping
    std::int64_t blocks_resident = 0;    // after it: experts, and layers' matrices of dense models
    std::int64_t blocks_total = 0;
    std::string_view block_name = "layers";  // "experts" or "layers"
    std::uint64_t weights_bytes = 0;
    std::uint64_t kv_bytes = 0;
    bool parked = false;                 // nothing is left on the card
    bool met = true;                     // the reserve is free and the cap is kept
    std::string limited_by{};            // where it is not met, or less was grown than there was room for: a sentence
};

// One sentence: "Gave back 8.0 GiB in 41 ms; 5,310 of 6,144 experts on the card", "Wanted 8.0 GiB free, 6.5 GiB are: the rest is held by
// other programs".
[[nodiscard]] std::string describe(const VramReport& report);

// A point of the curve that was measured: decode speed by share of the blocks on the card.
struct VramSpeed {
    std::uint64_t own_bytes = 0;
    double tokens_per_second = 0;
};

// One device of a loaded model, as it is now: a copy.
struct VramDevice {
    std::string id;                      // "cuda:0"
    std::string name;                    // "NVIDIA GeForce RTX 4070"
    std::string uuid;
    std::string verdict;                 // "on", "fixed", "off"
    std::string reason;                  // where the verdict is not "on"
    bool elastic = false;                // reserve and cap act at once; else at the next load
    std::uint64_t total_bytes = 0;
    std::uint64_t free_bytes = 0;        // by the driver's counter at the last reading
    std::uint64_t weights_bytes = 0;     // of this model, by its own account
    std::uint64_t kv_bytes = 0;
    std::uint64_t scratch_bytes = 0;     // and whatever else it holds there, its context included where that is known
    [[nodiscard]] std::uint64_t own_bytes() const noexcept { return weights_bytes + kv_bytes + scratch_bytes; }
    [[nodiscard]] std::uint64_t others_bytes() const noexcept {
        return total_bytes > free_bytes + own_bytes() ? total_bytes - free_bytes - own_bytes() : 0;
    }
    std::int64_t blocks_resident = 0;
    std::int64_t blocks_total = 0;
    std::string_view block_name = "layers";
    double hit_rate = 1;                 // of the blocks that steps used lately: how many were on the card
    bool parked = false;
    bool growing = false;
    std::uint64_t default_reserve_bytes = 0;
    std::uint64_t reserve_bytes = 0;     // in force
    VramWish wish;
    std::uint64_t full_bytes = 0;        // what the model would take with everything on the card
    std::optional<VramReport> last_report;
    std::vector<VramSpeed> speeds;       // ascending by own_bytes; empty: nothing was measured yet
};

// Any thread may call anything.
class Vram {
public:
    virtual ~Vram() = default;

    [[nodiscard]] virtual std::vector<VramDevice> devices() const = 0;
    // Sets what is wanted of a device and returns at once; of several calls in a row the newest counts. done: gets the report of the change that
    // fulfils this call or a newer one, on the watcher's thread; it is called exactly once (also when the model is unloaded).
    // Errors: not_found (no such device; the message names those there are), unsupported (not elastic: the wish is kept for the next load,
    // and the message gives the reason).
    using Done = std::function<void(const VramReport& report)>;
    virtual Result<> set(std::string_view device, const VramWish& wish, Done done) = 0;
    [[nodiscard]] virtual Result<VramReport> set_and_wait(std::string_view device, const VramWish& wish) = 0;

    // Called with each report, on the watcher's thread, until the returned guard is destroyed (by another thread than that one).
    using Listener = std::function<void(const VramReport& report)>;
    [[nodiscard]] virtual std::shared_ptr<void> listen(Listener listener) = 0;
};

}  // namespace headroom::engine
