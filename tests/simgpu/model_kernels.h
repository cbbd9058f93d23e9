#pragma once

// The kernels of HR_KERNELS as the CPU operators of the same names (core/compute/cpu, compiled into the simulator): the whole engine runs on
// a simulated card, with the same words. Each reads its arguments from the structures of kernels/arguments.h only, as the device code does.

#include <string_view>

#include "core/base/thread_pool.h"
#include "core/compute/cpu/activations_storage.h"
#include "core/compute/cpu/matrix.h"
#include "kernels/arguments.h"
#include "tests/simgpu/simulator.h"

namespace sim {

// A row of activations becomes row `row` of a quantized array, in each form that is there.
void store_forms(const float* x, std::int64_t n, std::int64_t row, const headroom::kernels::Quantized& groups_256,
                 const headroom::kernels::Quantized& groups_32);

// For one call of an operator: the thread that calls does it all.
struct OneThread {
    headroom::ThreadPool pool{1};
    operator headroom::ThreadPool&() { return pool; }  // NOLINT(google-explicit-constructor): a parameter
};

[[nodiscard]] inline headroom::cpu::Matrix matrix(const headroom::kernels::Matrix& w) {
    return {static_cast<headroom::gguf::TensorType>(w.type), reinterpret_cast<const std::byte*>(w.data), w.rows, w.cols, w.row_bytes};
}

// The operators. name: the kernel's, for the few that share a structure: the variants of one operator are all the same here.
void run(std::string_view name, const headroom::kernels::EmbedArguments& a);
void run(std::string_view name, const headroom::kernels::NormArguments& a);
void run(std::string_view name, const headroom::kernels::SwigluArguments& a);
void run(std::string_view name, const headroom::kernels::HeadArguments& a);
void run(std::string_view name, const headroom::kernels::AttentionArguments& a);
void run(std::string_view name, const headroom::kernels::StepAttentionArguments& a);
void run(std::string_view name, const headroom::kernels::AheadAttentionArguments& a);
void run(std::string_view name, const headroom::kernels::ArgmaxArguments& a);
void run(std::string_view name, const headroom::kernels::TopArguments& a);
void run(std::string_view name, const headroom::kernels::HandOverArguments& a);
void run(std::string_view name, const headroom::kernels::AwaitArguments& a);
// product_kernels.cpp
void run(std::string_view name, const headroom::kernels::ProductArguments& a);
void run(std::string_view name, const headroom::kernels::ProductTilesArguments& a);
void run(std::string_view name, const headroom::kernels::RouterArguments& a);
void run(std::string_view name, const headroom::kernels::ChooseArguments& a);
void run(std::string_view name, const headroom::kernels::ExpertsGateUpArguments& a);
void run(std::string_view name, const headroom::kernels::ExpertsDownArguments& a);
void run(std::string_view name, const headroom::kernels::FewGateUpArguments& a);
void run(std::string_view name, const headroom::kernels::FewDownArguments& a);
void run(std::string_view name, const headroom::kernels::GroupArguments& a);
void run(std::string_view name, const headroom::kernels::ExpertsTilesArguments& a);
void run(std::string_view name, const headroom::kernels::CombineArguments& a);
void run(std::string_view name, const headroom::kernels::CombineNormArguments& a);

void register_model_kernels(Simulator& simulator);

}  // namespace sim
