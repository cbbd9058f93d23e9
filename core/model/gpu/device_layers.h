#pragma once

// The weights of a part's layers on its device, as the kernels take them.

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "core/compute/gpu/ops.h"
#include "core/gpu/resources.h"
#include "core/model/gpu/placement.h"
#include "core/model/gpu/upload.h"
#include "core/model/transformer.h"

namespace headroom::model {

struct DeviceLinear {
    kernels::Matrix weight{};
    const float* bias = nullptr;
};

struct DeviceDense {
    DeviceLinear gate, up, down;
};

struct DeviceMixture {
    kernels::Matrix router{};
    const kernels::ExpertAddresses* table = nullptr;  // on the device, [experts]
    kernels::ExpertShape shape{};
    bool normalize = true;
    std::size_t layer = 0;             // of the part
    const MixtureFeedForward* in_file = nullptr;
};

struct DeviceLayer {
    const float* attention_norm = nullptr;
    DeviceLinear q, k, v, out;
    const float* q_norm = nullptr;
    const float* k_norm = nullptr;
    std::int64_t window = 0;
    const float* feed_forward_norm = nullptr;
    std::variant<DeviceDense, DeviceMixture> feed_forward;

    gpu::Buffer memory;   // everything but experts
};

struct DeviceWeights {
    std::vector<DeviceLayer> layers;
    kernels::Matrix embedding{};        // data null: not here
    const float* output_norm = nullptr;
    kernels::Matrix output{};           // data null: not here
    gpu::Buffer ends;                   // what embedding, output_norm and output point into
};

// Allocates and copies what the part names, but no experts (expert_residency.h). The transformer must outlive the result. Errors: out_of_memory, device, cancelled.
[[nodiscard]] Result<DeviceWeights> upload_weights(gpu::Driver& driver, Uploader& uploader, const Transformer& transformer, const DevicePart& part);

}  // namespace headroom::model
