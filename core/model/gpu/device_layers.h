#pragma once

// The weights of a part's layers on its device, as the kernels take them.

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/compute/gpu/ops.h"
#include "core/model/gpu/placement.h"
#include "core/model/transformer.h"
#include "core/residency/region.h"

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

// Tensors that come and go together: their addresses, and where they come from.
struct DevicePieces {
    struct Piece {
        const void* from;
        std::uint64_t bytes;
        std::uint64_t offset;
    };
    residency::Region memory;
    std::vector<Piece> pieces;

    using Copy = FunctionRef<Result<>(gpu::DevicePointer to, const void* from, std::uint64_t bytes)>;
    // Puts memory behind the addresses and copies everything there; when the copies have arrived is the caller's affair.
    [[nodiscard]] Result<> load(Copy copy);
};

struct DeviceLayer {
    const float* attention_norm = nullptr;
    DeviceLinear q, k, v, out;
    const float* q_norm = nullptr;
    const float* k_norm = nullptr;
    std::int64_t window = 0;
    const float* feed_forward_norm = nullptr;
    std::variant<DeviceDense, DeviceMixture> feed_forward;

    DevicePieces memory;  // everything but experts
};

struct DeviceWeights {
    std::vector<DeviceLayer> layers;
    kernels::Matrix embedding{};        // data null: not of this part
    const float* output_norm = nullptr;
    kernels::Matrix output{};           // data null: not of this part
    DevicePieces embedding_memory;      // needed where layer 0 is on the device, and by the output if that is the same matrix
    DevicePieces output_memory;
};

// Where device memory comes from. pool null: plain allocations.
struct DeviceMemory {
    gpu::Driver& driver;
    vmm::SegmentPool* pool = nullptr;
    const vmm::Verdict* verdict = nullptr;
};

// Gives what the part names its addresses, experts excepted (expert_residency.h); nothing is copied yet. The transformer must outlive the
// result. Errors: out_of_memory, device.
[[nodiscard]] Result<DeviceWeights> describe_weights(const DeviceMemory& memory, const Transformer& transformer, const DevicePart& part);

}  // namespace headroom::model
