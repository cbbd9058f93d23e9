#pragma once

// What a device's virtual memory can be trusted with.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/error.h"
#include "core/gpu/device.h"
#include "core/vmm/arena.h"

namespace headroom::vmm {

enum class VerdictKind : std::uint8_t {
    on,     // elastic: segments come and go while the program runs
    fixed,  // one mapping for the whole reservation; nothing is given back before the end
    off,    // plain allocations
};
[[nodiscard]] std::string_view to_string(VerdictKind kind) noexcept;  // "on", "fixed", "off"

// What one step of the self-test saw.
struct Observation {
    enum class Outcome : std::uint8_t {
        passed,
        noted,    // something is odd, and the program has an answer to it
        failed,   // this decided the verdict
        skipped,
    };
    std::string step;     // "granularity", "patterns", …: the names in verdict_text.h
    Outcome outcome = Outcome::passed;
    std::string seen;     // a sentence with numbers
    double seconds = 0;
};
[[nodiscard]] std::string_view to_string(Observation::Outcome outcome) noexcept;

struct Verdict {
    VerdictKind kind = VerdictKind::off;
    std::string reason;                        // empty where kind is on
    // How memory has to be handled, found by the test:
    AccessStyle access = AccessStyle::per_mapping;
    bool host_access = false;                  // small copies need it
    bool clear_fresh = false;                  // fresh memory held something: count nothing on zeros
    std::uint64_t granularity_min = 0;
    std::uint64_t granularity_recommended = 0;
    std::uint64_t segment_bytes = 0;           // 0 where there are no segments
    std::uint64_t largest_reservation = 0;     // in one piece
    std::uint64_t open_files_needed = 0;       // of the process, for segments over the whole card; 0: no file per segment
    bool kernel_test = false;                  // patterns were also written and read by kernels
    std::vector<Observation> observations;
    // Under what it holds:
    std::string uuid, driver, runtime, os;
    std::string tested_at;                     // UTC, "2026-11-29T20:15:00Z"
    double seconds = 0;                        // the test took
    bool keep = true;                          // false: the cause may be gone next time (a full card), so it is not cached
};

[[nodiscard]] nlohmann::json to_json(const Verdict& verdict);
[[nodiscard]] nlohmann::json to_json(const Observation& observation);
// Errors: invalid_file, naming the field.
[[nodiscard]] Result<Verdict> verdict_from_json(const nlohmann::json& json);
[[nodiscard]] Result<Observation> observation_from_json(const nlohmann::json& json);

}  // namespace headroom::vmm
