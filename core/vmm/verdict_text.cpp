#include "core/vmm/verdict_text.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "core/base/bytes.h"

namespace headroom::vmm::text {
namespace {

// Sizes with a sign, in MiB as the counters are read: "32 MiB", "0 MiB", "-2 MiB".
std::string mib(std::int64_t bytes) { return fmt::format("{} MiB", bytes / static_cast<std::int64_t>(MiB)); }

// "4 KiB", "2 MiB": granularities are whole units.
std::string whole(std::uint64_t bytes) {
    if (bytes >= MiB && bytes % MiB == 0) return fmt::format("{} MiB", bytes / MiB);
    if (bytes >= KiB && bytes % KiB == 0) return fmt::format("{} KiB", bytes / KiB);
    return fmt::format("{} bytes", bytes);
}

}  // namespace

std::string_view step_title(std::string_view step) noexcept {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 10> titles = {{
        {entry_points, "Functions of the driver"},
        {granularity, "Granularity"},
        {addresses, "Address space"},
        {patterns, "Patterns in unequal segments"},
        {release, "Release, measured"},
        {ranges, "Growing several ranges"},
        {replacement, "Replacing a segment in the middle"},
        {canary, "Data kept over many cycles"},
        {open_files, "Open files"},
        {teardown, "Teardown"},
    }};
    for (const auto& [name, title] : titles) {
        if (name == step) return title;
    }
    return step;
}

std::string with_runtime(std::string reason, const gpu::DeviceInfo& device) {
    if (device.driver.empty()) return fmt::format("{} ({})", reason, device.runtime);
    return fmt::format("{} ({}, driver {})", reason, device.runtime, device.driver);
}

std::string missing_functions(std::string_view library, const std::vector<std::string>& names) {
    std::string list;
    for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
    return fmt::format("{} lacks functions for virtual memory: {}", library, list);
}

std::string no_attribute() { return "the driver says that this device does not support virtual memory management"; }

std::string not_enough_free(std::uint64_t free, std::uint64_t needed) {
    return fmt::format("only {} of VRAM were free and the self-test needs {}: close other programs and test again", format_bytes(free),
                       format_bytes(needed));
}

std::string granularity_too_small(std::uint64_t recommended) {
    return fmt::format("the recommended allocation granularity is {}, not 2 MiB or more", whole(recommended));
}

std::string reservation_too_small(std::uint64_t granted, std::uint64_t wanted, std::string_view refusal) {
    return fmt::format("of {} of addresses the driver reserved at most {} in one piece: {}", format_bytes(wanted), format_bytes(granted), refusal);
}

std::string pattern_lost(std::string_view how, std::size_t segment, std::size_t segments) {
    return fmt::format("segment {} of {} did not hold what was written to it, read back by {}", segment + 1, segments, how);
}

std::string segments_alias(std::size_t segment, std::size_t shows, std::size_t segments) {
    return fmt::format("segment {} of {} shows the pages of segment {}", segment + 1, segments, shows + 1);
}

std::string fixed_because(std::string_view why) {
    return fmt::format("{}; one mapping for everything works, so memory is mapped once and not given back", why);
}

std::string small_copies_refused(std::uint64_t bytes, std::string_view error) {
    return fmt::format("a copy of {} bytes to the host was refused, with access for the host granted too: {}", bytes, error);
}

std::string not_released(std::string_view counter, std::uint64_t mapped, std::int64_t fell, std::int64_t rose) {
    return fmt::format("the free VRAM by {} fell by {} for {} mapped and rose by {} after its release", counter, mib(fell),
                       mib(static_cast<std::int64_t>(mapped)), mib(rose));
}

std::string access_refused(std::string_view per_mapping, std::string_view from_base) {
    return fmt::format("access was refused for a mapping alone ({}) and from the base of its range ({})", per_mapping, from_base);
}

std::string replacement_lost(std::size_t slot) {
    return fmt::format("after a segment in the middle was replaced, slot {} did not hold what was written to it", slot + 1);
}

std::string canary_lost(int cycles) {
    return fmt::format("data that nobody touched changed within {} cycles of mapping and unmapping beside it", cycles);
}

std::string open_files_short(std::uint64_t needed, std::uint64_t soft, std::uint64_t hard) {
    return fmt::format("the runtime keeps an open file for each segment: {} are needed, and the limit is {}, at most {}", needed, soft, hard);
}

std::string step_failed(std::string_view step, std::string_view error) { return fmt::format("the step \"{}\" failed: {}", step_title(step), error); }

std::string child_ended(std::string_view how, std::string_view step) {
    if (step.empty()) return fmt::format("the self-test {} before its first step", how);
    return fmt::format("the self-test {} in its step \"{}\"", how, step_title(step));
}

std::string child_not_started(std::string_view error) { return fmt::format("the self-test could not be started: {}", error); }

std::string saw_entry_points(std::string_view library) { return fmt::format("{} has all functions, and the device supports them", library); }

std::string saw_granularity(std::uint64_t minimum, std::uint64_t recommended) {
    return fmt::format("minimum {}, recommended {}", whole(minimum), whole(recommended));
}

std::string saw_addresses(std::uint64_t granted, std::uint64_t wanted, std::string_view refusal) {
    if (granted >= wanted) return fmt::format("{} reserved in one piece", format_bytes(granted));
    return fmt::format("{} were refused, {} reserved in one piece: {}", format_bytes(wanted), format_bytes(granted), refusal);
}

std::string saw_patterns(std::size_t segments, std::uint64_t bytes, bool by_kernel, std::string_view kernel_problem) {
    if (by_kernel) return fmt::format("{} segments, {} in all, read back right by copies and by a kernel", segments, format_bytes(bytes));
    return fmt::format("{} segments, {} in all, read back right by copies; no kernel took part: {}", segments, format_bytes(bytes), kernel_problem);
}

std::string saw_dirty_memory() { return "fresh segments held old data: nothing counts on zeros"; }

std::string saw_host_access(std::string_view error) {
    return fmt::format("small copies work once the host is granted access too (without: {})", error);
}

std::string saw_release(std::string_view counter, std::uint64_t mapped, std::int64_t fell, std::int64_t rose) {
    return fmt::format("free VRAM by {} fell by {} for {} mapped and rose by {} after the release", counter, mib(fell),
                       mib(static_cast<std::int64_t>(mapped)), mib(rose));
}

std::string saw_release_retried(std::string_view first) { return fmt::format("at the second try (at the first: {})", first); }

std::string saw_ranges(std::size_t count, int rounds) { return fmt::format("{} ranges grew at their tails and shrank {} times", count, rounds); }

std::string saw_access_from_base(std::string_view refusal) {
    return fmt::format("access is granted from the base of each range, because a mapping alone was refused: {}", refusal);
}

std::string saw_replacement() { return "the new segment, the moved one and their neighbours kept their contents"; }

std::string saw_canary(int cycles) { return fmt::format("unchanged over {} cycles", cycles); }

std::string saw_no_open_files(int segments) { return fmt::format("{} segments needed no open file", segments); }

std::string saw_open_files(std::uint64_t needed, std::uint64_t soft, std::uint64_t hard, std::uint64_t segment_bytes) {
    return fmt::format("one open file for each segment: {} needed in segments of {}, the limit is {}, at most {}", needed, whole(segment_bytes), soft,
                       hard);
}

std::string saw_no_limit() { return "this system sets no limit that matters"; }

std::string saw_teardown(int times) { return fmt::format("everything given back, {} times", times); }

std::string open_file_limit_raised(std::uint64_t before, std::uint64_t after) { return fmt::format("open-file limit {} -> {}", before, after); }

std::string_view meaning(std::string_view verdict) noexcept {
    if (verdict == "on") return "VRAM is given back while the model stays loaded.";
    if (verdict == "fixed") return "VRAM is mapped once and given back only when the model is closed.";
    return "VRAM is allocated the plain way and given back only when the model is closed.";
}

std::string no_gpu(std::string_view cuda_problem, std::string_view hip_problem) {
    return fmt::format(
        "No NVIDIA or AMD GPU was found, so models run on the processor.\n"
        "  NVIDIA: {}. If there is such a card, install the NVIDIA driver.\n"
        "  AMD: {}. If there is such a card, install ROCm's HIP runtime (Linux) or the Radeon driver (Windows).",
        cuda_problem, hip_problem);
}

}  // namespace headroom::vmm::text
