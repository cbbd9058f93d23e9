#pragma once

// What a loaded model holds on a device, and what a change of that did.

#include <cstdint>
#include <string>

namespace headroom::residency {

// Bytes on one device, by the model's own account: what it allocated and mapped there. The driver's context is not counted.
struct Usage {
    bool elastic = false;              // resize() works; else `reason` says why not
    std::string reason;
    std::uint64_t weights_bytes = 0;   // mapped for weights, whether something lies there or not
    std::uint64_t kv_bytes = 0;        // mapped for keys and values
    std::uint64_t scratch_bytes = 0;   // everything else
    [[nodiscard]] std::uint64_t held_bytes() const noexcept { return weights_bytes + kv_bytes + scratch_bytes; }
    std::uint64_t budget_bytes = 0;    // the most it may hold now
    std::uint64_t full_bytes = 0;      // what it would hold with every block there
    std::int64_t blocks_resident = 0;  // experts of a mixture, layers of a dense model
    std::int64_t blocks_total = 0;
    bool blocks_are_experts = false;
    double hit_rate = 1;               // of the blocks that steps used lately: how many were there
    bool parked = false;               // nothing is left there, the context included
};

// What one resize did. Times are by the clock, bytes by the model's own account or, where it says so, by the driver.
struct ResizeReport {
    std::uint64_t budget_bytes = 0;        // as asked
    std::uint64_t held_before = 0;         // by the own account
    std::uint64_t held_after = 0;
    std::uint64_t free_before = 0;         // on the device, by the driver (the runtime's figure); 0 where there is no context to ask
    std::uint64_t free_after = 0;
    double total_ms = 0;
    double waiting_ms = 0;                 // for steps that used what leaves
    double moving_ms = 0;                  // giving: hot blocks to segments that stay; growing: copies to the device
    double releasing_ms = 0;               // giving: unmapping and releasing; growing: creating and mapping
    std::uint64_t bytes_copied = 0;        // to the device
    std::int64_t blocks_resident = 0;      // after it
    std::int64_t blocks_total = 0;
    std::uint64_t weights_bytes = 0;
    std::uint64_t kv_bytes = 0;
    bool parked = false;
    bool superseded = false;               // it ended early, because a newer request came
    bool met = true;                       // held_after <= budget_bytes
    std::string limited_by;                // where it is not met, or less was grown than there was room for: a sentence
};

}  // namespace headroom::residency
