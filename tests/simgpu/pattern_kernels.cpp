#include "tests/simgpu/simulator.h"

namespace sim {
namespace {

template <class T>
T parameter(void** parameters, int i) {
    return *static_cast<T*>(parameters[i]);
}

std::uint32_t word(std::uint64_t i, std::uint32_t seed) { return static_cast<std::uint32_t>(i) * 2654435761u + seed; }

void fill(const SimLaunch*, void** parameters) {
    auto* words = parameter<std::uint32_t*>(parameters, 0);
    const auto count = parameter<std::uint64_t>(parameters, 1);
    const auto seed = parameter<std::uint32_t>(parameters, 2);
    for (std::uint64_t i = 0; i < count; ++i) words[i] = word(i, seed);
}

void check(const SimLaunch*, void** parameters) {
    const auto* words = parameter<const std::uint32_t*>(parameters, 0);
    const auto count = parameter<std::uint64_t>(parameters, 1);
    const auto seed = parameter<std::uint32_t>(parameters, 2);
    auto* wrong = parameter<std::uint32_t*>(parameters, 3);
    for (std::uint64_t i = 0; i < count; ++i) *wrong += words[i] != word(i, seed);
}

}  // namespace

void register_pattern_kernels(Simulator& simulator) {
    simulator.register_kernel("headroom_pattern_fill", fill, {8, 8, 4});
    simulator.register_kernel("headroom_pattern_check", check, {8, 8, 4, 8});
}

}  // namespace sim
