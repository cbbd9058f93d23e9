#include "tests/simgpu/control.h"

#include "tests/simgpu/simulator.h"

using namespace sim;

SIM_EXPORT bool sim_reset(const char* description) { return Simulator::instance().reset(description); }

SIM_EXPORT void sim_counters(SimCounters* counters) { *counters = Simulator::instance().counters(); }

SIM_EXPORT const char* sim_trace(std::size_t i) {
    auto& simulator = Simulator::instance();
    const std::scoped_lock lock(simulator.mutex);
    return i < simulator.trace.size() ? simulator.trace[i].c_str() : nullptr;
}

SIM_EXPORT void sim_rule(const char* function, std::uint64_t call, const char* action, int code) {
    auto& simulator = Simulator::instance();
    const std::scoped_lock lock(simulator.mutex);
    if (!function) return simulator.rules.clear();
    simulator.rules.push_back({function, call, action, code});
}

SIM_EXPORT void sim_other(const char* backend, int device, std::uint64_t bytes) {
    auto& simulator = Simulator::instance();
    const std::scoped_lock lock(simulator.mutex);
    if (Device* d = simulator.device(std::string(backend) == "cuda" ? Kind::cuda : Kind::hip, device)) d->other = bytes;
    simulator.write_sysfs();
}

SIM_EXPORT void sim_register(const char* name, SimKernel kernel, const std::size_t* sizes, std::size_t count) {
    Simulator::instance().register_kernel(name, kernel, {sizes, sizes + count});
}
