#pragma once

// How tests steer the simulated driver: plain C functions that its library exports beside the driver's own, and the description they
// take. Child processes get the same description from the file that the environment variable SIMGPU_CONFIG names.
//
// The description is JSON:
//   {"cuda": [DEVICE, …], "hip": [DEVICE, …],
//    "cuda_version": 13000, "driver_version": "580.10", "hip_version": 70100000,
//    "sysfs": "FOLDER",             where the counters of HIP devices are kept as the amdgpu driver does
//    "bandwidth_gbps": 0,           of copies between host and device; 0: as fast as they go
//    "asynchronous": false,         true: work on a stream is kept and done as late as the driver's rules allow (streams.cpp)
//    "adjacent_ranges": false,      true: each reservation begins where the one before it ends
//    "faults": {NAME: VALUE, …},    see Faults in simulator.h
//    "calls": [{"function": "cuMemCreate", "call": 3, "action": "fail", "code": 2}, …]}
//   DEVICE: {"name", "uuid" (32 hexadecimal digits, or 16 letters for AMD), "bus", "architecture" ("8.9", "gfx1100"), "total_mib",
//            "other_mib", "integrated", "vmm", "granularity_min", "granularity_rec"}: all with defaults.
//   action: "fail" returns `code` once, "hang" never returns, "crash" ends the process, "wait" takes `code` milliseconds longer. "call": which one, from 1; 0: every call.

#include <cstddef>
#include <cstdint>

#ifdef _WIN32
#define SIM_EXPORT extern "C" __declspec(dllexport)
#else
#define SIM_EXPORT extern "C" __attribute__((visibility("default")))
#endif

struct SimCounters {  // what is alive now; all zero after a clean end
    std::uint64_t ranges, segments, mappings, allocations, host_allocations, host_registrations;
    std::uint64_t contexts, streams, events, modules, graphs;
    std::uint64_t double_maps;    // how often a segment was mapped while it was mapped already: never allowed
    std::uint64_t rdma_segments;  // how many segments were made for GPUDirect RDMA: never wanted
    std::uint64_t unmaps_beside_work;  // how many unmappings there were while their device had work
};

struct SimLaunch {
    unsigned grid[3], block[3], shared_bytes;
};
// A kernel as a function of the processor: does the work of the whole launch. parameters as cuLaunchKernel has them.
using SimKernel = void (*)(const SimLaunch* launch, void** parameters);

// Forgets everything and starts again from a description; false where it is not valid JSON.
using SimReset = bool (*)(const char* description);
using SimReadCounters = void (*)(SimCounters* counters);
// The driver calls so far, in order: the name of call i, or null behind the last one.
using SimTrace = const char* (*)(std::size_t i);
// Adds one rule to "calls"; clears them where function is null. Counting starts at the reset.
using SimRule = void (*)(const char* function, std::uint64_t call, const char* action, int code);
// Other programs now hold this much on a device ("cuda", 0).
using SimOther = void (*)(const char* backend, int device, std::uint64_t bytes);
// Makes a kernel known to every module whose image names it, in place of the simulator's own of that name until the next reset. sizes: of each parameter, in bytes.
using SimRegister = void (*)(const char* name, SimKernel kernel, const std::size_t* sizes, std::size_t count);
