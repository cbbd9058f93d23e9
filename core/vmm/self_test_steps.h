#pragma once

// The inside of the self-test: for the files that hold its steps.

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/vmm/pattern_kernel.h"
#include "core/vmm/self_test.h"

namespace headroom::vmm {

using Clock = std::chrono::steady_clock;

// A step's end: passed, noted or skipped with what was seen, or failed with the reason.
struct Outcome {
    Observation::Outcome outcome = Observation::Outcome::passed;
    std::string seen;
};
inline Outcome passed(std::string seen) { return {Observation::Outcome::passed, std::move(seen)}; }
inline Outcome noted(std::string seen) { return {Observation::Outcome::noted, std::move(seen)}; }
inline Outcome failed(std::string seen) { return {Observation::Outcome::failed, std::move(seen)}; }

// One run over one device. Each step is a function; the files self_test_*.cpp hold them.
class SelfTest {
public:
    SelfTest(gpu::Driver& driver, const gpu::DeviceInfo& device, gpu::MemoryCounter* counter, const SelfTestOptions& options,
             const SelfTestListener& listener)
        : driver_(driver), device_(device), counter_(counter), options_(options), listener_(listener), pool_(driver, device.index) {}

    Verdict run();

private:
    // A segment with its place and the pattern written to it.
    struct Piece {
        gpu::DevicePointer at = 0;
        std::uint64_t bytes = 0;
        std::uint32_t seed = 0;
    };

    bool step(std::string_view name, Result<Outcome> (SelfTest::*body)());
    Result<Outcome> entry_points();
    Result<Outcome> granularity();
    Result<Outcome> addresses();
    Result<Outcome> patterns();
    Result<Outcome> release();
    Result<Outcome> ranges();
    Result<Outcome> replacement();
    Result<Outcome> canary();
    Result<Outcome> open_files();
    Result<Outcome> teardown();

    // Segments and what is in them: self_test_patterns.cpp.
    Result<Outcome> unequal_segments(std::vector<std::uint64_t> sizes, bool& lost);
    Result<std::string> look_at(const std::vector<Piece>& pieces, bool by_kernel);
    Result<> small_copies(gpu::DevicePointer at, std::uint64_t bytes, bool& refused, std::string& error);
    Result<> write(const Piece& piece, bool by_kernel);
    Result<std::uint32_t> differing(const Piece& piece, bool by_kernel);
    Result<std::uint32_t> first_word(const Piece& piece);
    Result<bool> holds_zeros(const Piece& piece);

    Result<std::unique_ptr<Arena>> arena(std::uint64_t bytes, std::uint64_t segment);
    Result<> grow(Arena& arena, std::span<const std::size_t> which);
    Result<> grow(Arena& arena, std::size_t slot) { return grow(arena, std::span(&slot, 1)); }
    std::uint64_t unit() const { return verdict_.granularity_recommended; }

    gpu::Driver& driver_;
    const gpu::DeviceInfo& device_;
    gpu::MemoryCounter* counter_;
    const SelfTestOptions& options_;
    const SelfTestListener& listener_;
    SegmentPool pool_;
    std::optional<PatternKernel> kernel_;
    std::string kernel_problem_;
    std::string access_refusal_;  // of a mapping alone
    bool dirty_ = false;
    std::vector<std::uint32_t> words_;  // host memory for patterns
    Verdict verdict_;
};

}  // namespace headroom::vmm
