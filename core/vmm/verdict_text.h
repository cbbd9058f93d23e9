#pragma once

// Every sentence of the verdict. They are shown in the window, by the command line, in the log and by the HTTP interface, in the same words.

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/gpu/device.h"

namespace headroom::vmm::text {

// The steps, in their order. step_title: for people ("Entry points").
inline constexpr std::string_view entry_points = "entry points";
inline constexpr std::string_view granularity = "granularity";
inline constexpr std::string_view addresses = "addresses";
inline constexpr std::string_view patterns = "patterns";
inline constexpr std::string_view release = "release";
inline constexpr std::string_view ranges = "ranges";
inline constexpr std::string_view replacement = "replacement";
inline constexpr std::string_view canary = "canary";
inline constexpr std::string_view open_files = "open files";
inline constexpr std::string_view teardown = "teardown";
inline constexpr std::array<std::string_view, 10> steps = {entry_points, granularity, addresses, patterns,   release,
                                                           ranges,       replacement, canary,    open_files, teardown};
[[nodiscard]] std::string_view step_title(std::string_view step) noexcept;

// Reasons. Each ends without a full stop; with_runtime adds the versions it was seen with: "… (HIP 7.2.53210, driver 6.12.12)".
[[nodiscard]] std::string with_runtime(std::string reason, const gpu::DeviceInfo& device);
[[nodiscard]] std::string missing_functions(std::string_view library, const std::vector<std::string>& names);
[[nodiscard]] std::string no_attribute();
[[nodiscard]] std::string not_enough_free(std::uint64_t free, std::uint64_t needed);
[[nodiscard]] std::string granularity_too_small(std::uint64_t recommended);
[[nodiscard]] std::string reservation_too_small(std::uint64_t granted, std::uint64_t wanted, std::string_view refusal);
[[nodiscard]] std::string pattern_lost(std::string_view how, std::size_t segment, std::size_t segments);
[[nodiscard]] std::string segments_alias(std::size_t segment, std::size_t shows, std::size_t segments);
[[nodiscard]] std::string fixed_because(std::string_view why);
[[nodiscard]] std::string small_copies_refused(std::uint64_t bytes, std::string_view error);
[[nodiscard]] std::string not_released(std::string_view counter, std::uint64_t mapped, std::int64_t fell, std::int64_t rose);
[[nodiscard]] std::string access_refused(std::string_view per_mapping, std::string_view from_base);
[[nodiscard]] std::string replacement_lost(std::size_t slot);
[[nodiscard]] std::string canary_lost(int cycles);
[[nodiscard]] std::string open_files_short(std::uint64_t needed, std::uint64_t soft, std::uint64_t hard);
[[nodiscard]] std::string step_failed(std::string_view step, std::string_view error);
[[nodiscard]] std::string child_ended(std::string_view how, std::string_view step);
[[nodiscard]] std::string child_not_started(std::string_view error);

// Observations of steps that passed or were answered.
[[nodiscard]] std::string saw_entry_points(std::string_view library);
[[nodiscard]] std::string saw_granularity(std::uint64_t minimum, std::uint64_t recommended);
[[nodiscard]] std::string saw_addresses(std::uint64_t granted, std::uint64_t wanted, std::string_view refusal);
[[nodiscard]] std::string saw_patterns(std::size_t segments, std::uint64_t bytes, bool by_kernel, std::string_view kernel_problem);
[[nodiscard]] std::string saw_dirty_memory();
[[nodiscard]] std::string saw_host_access(std::string_view error);
[[nodiscard]] std::string saw_release(std::string_view counter, std::uint64_t mapped, std::int64_t fell, std::int64_t rose);
[[nodiscard]] std::string saw_release_retried(std::string_view first);
[[nodiscard]] std::string saw_ranges(std::size_t ranges, int rounds);
[[nodiscard]] std::string saw_access_from_base(std::string_view refusal);
[[nodiscard]] std::string saw_replacement();
[[nodiscard]] std::string saw_canary(int cycles);
[[nodiscard]] std::string saw_no_open_files(int segments);
[[nodiscard]] std::string saw_open_files(std::uint64_t needed, std::uint64_t soft, std::uint64_t hard, std::uint64_t segment_bytes);
[[nodiscard]] std::string saw_no_limit();
[[nodiscard]] std::string saw_teardown(int times);

// For the log: "open-file limit 1024 -> 17336".
[[nodiscard]] std::string open_file_limit_raised(std::uint64_t before, std::uint64_t after);

// What the verdict means for the user: "Elastic: VRAM is given back while the model stays loaded."
[[nodiscard]] std::string_view meaning(std::string_view verdict) noexcept;

// No GPU: what was looked for and what to do.
[[nodiscard]] std::string no_gpu(std::string_view cuda_problem, std::string_view hip_problem);

}  // namespace headroom::vmm::text
