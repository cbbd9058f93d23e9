#pragma once

// The kernels of HR_KERNELS as the CPU operators of the same names (core/compute/cpu, compiled into the simulator): the whole engine runs on
// a simulated card, with the same words. Each reads its arguments from the structures of kernels/arguments.h only, as the device code does.

#include <cstring>

#include "core/base/thread_pool.h"
#include "core/compute/cpu/activations_storage.h"
#include "core/compute/cpu/matrix.h"
#include "kernels/arguments.h"
#include "tests/simgpu/simulator.h"

namespace sim {

// Registers `kernel`, which takes one structure.
template <auto kernel>
struct Registered;
template <class Arguments, void (*kernel)(const Arguments&)>
struct Registered<kernel> {
    static void run(const SimLaunch*, void** parameters) {
        Arguments arguments;
        std::memcpy(&arguments, parameters[0], sizeof arguments);
        kernel(arguments);
    }
    static void with_name(Simulator& simulator, const char* name) { simulator.register_kernel(name, run, {sizeof(Arguments)}); }
};

// A row of activations becomes row `row` of a quantized array, in each form that is there.
void store_forms(const float* x, std::int64_t n, std::int64_t row, const headroom::kernels::Quantized& groups_256,
                 const headroom::kernels::Quantized& groups_32);

// For one call of an operator: the thread that calls does it all.
struct OneThread {
    headroom::ThreadPool pool{1};
    operator headroom::ThreadPool&() { return pool; }  // NOLINT(google-explicit-constructor): a parameter
};

void register_model_kernels(Simulator& simulator);    // all of them
void register_product_kernels(Simulator& simulator);  // those of product_kernels.cpp: products, router, experts

}  // namespace sim
