#pragma once

// Missing experts on their way through a device: a prompt's tokens need nearly all of them, and from some hundred tokens on the bus brings them
// sooner than the processor computes them. They come in groups into two halves of a piece of the scratch memory: one is filled while the
// kernels read the other.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/compute/gpu/ops.h"
#include "core/gpu/resources.h"
#include "core/residency/pinned_spans.h"

namespace headroom::model {

// One thread, with the device current in it.
class ExpertStream {
public:
    // room: on the device, used by nobody else while anything is streamed; multiple of 512 bytes. experts: of a layer, at most. All that is
    // named must outlive it.
    [[nodiscard]] static Result<std::unique_ptr<ExpertStream>> create(kernels::Kernels& kernels, const residency::PinnedSpans& pinned,
                                                                      gpu::DevicePointer room, std::uint64_t bytes, std::int64_t experts);
    ~ExpertStream();

    // A matrix of an expert in the mapped file.
    struct Matrix {
        std::int32_t expert = 0;
        std::int32_t which = 0;  // gate, up, down
        std::span<const std::byte> bytes;
    };
    // Whether they can come at the speed of the bus: their pages are registered, and each fits.
    [[nodiscard]] bool can_stream(std::span<const Matrix> matrices) const;
    // Brings the matrices, neighbours of one expert together, and calls `use` for each group: the table, on the device, names what is there, and
    // what `use` enqueues on `steps` finds it. On failure nothing is on its way any more.
    using Use = FunctionRef<Result<>(const kernels::ExpertAddresses* table)>;
    [[nodiscard]] Result<> stream(std::span<const Matrix> matrices, gpu::StreamHandle steps, Use use);

private:
    ExpertStream(kernels::Kernels& kernels, const residency::PinnedSpans& pinned) : kernels_(kernels), driver_(kernels.driver()), pinned_(pinned) {}
    [[nodiscard]] Result<> stream_groups(std::span<const Matrix> matrices, gpu::StreamHandle steps, Use use);
    [[nodiscard]] Result<> copy(gpu::DevicePointer to, std::span<const std::byte> from);

    static constexpr std::size_t kHalves = 2;
    struct Group {
        gpu::Event filled, used;
        gpu::PinnedBuffer table;  // its image
    };
    kernels::Kernels& kernels_;
    gpu::Driver& driver_;
    const residency::PinnedSpans& pinned_;
    gpu::DevicePointer room_ = 0;
    std::uint64_t half_bytes_ = 0;
    gpu::Stream copies_;
    std::array<gpu::Buffer, kHalves> tables_;
    std::array<Group, 8> groups_;    // the last ones: so far the host may be ahead
    std::uint64_t next_ = 0;         // counts groups
    std::vector<gpu::Driver::HostPiece> pieces_;
};

}  // namespace headroom::model
