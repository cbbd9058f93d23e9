#pragma once

// What launches of products need to know of shapes. For the files of this folder.

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/compute/gpu/ops.h"

namespace headroom::kernels {

// The form of the activations that products with this type read (kFormFloats, …); 0 for a type that no kernel can compute with.
[[nodiscard]] inline std::uint32_t form_of(std::uint32_t type) noexcept {
    const gguf::TypeInfo* info = gguf::find_type(type);
    if (info == nullptr || !info->supported) return 0;
    return info->block_elements == 256 ? kForm256 : info->block_elements == 32 ? kForm32 : kFormFloats;
}

// Nothing, or why the matrix cannot be multiplied with rows of `cols` elements.
[[nodiscard]] inline Result<> check_matrix(const char* kernel, std::uint32_t type, std::int32_t rows, std::int32_t cols) {
    const std::uint32_t form = form_of(type);
    if (form == 0) return fail(ErrorKind::invalid_argument, "{}: there are no products with weights of type number {}", kernel, type);
    const auto elements = static_cast<std::int32_t>(gguf::find_type(type)->block_elements);
    if (rows < 1 || cols < 1 || cols % elements != 0) {
        return fail(ErrorKind::invalid_argument, "{}: a matrix of {} rows of {} elements is not whole blocks of {}", kernel, rows, cols, elements);
    }
    return {};
}

[[nodiscard]] inline unsigned round_up(unsigned bytes) noexcept { return (bytes + 15) / 16 * 16; }

// Bytes of shared memory for the quantized form of `elements` elements: codes, scales, sums; each begins at a multiple of 16.
[[nodiscard]] inline unsigned quantized_bytes(unsigned elements, unsigned group) noexcept {
    return round_up(elements) + round_up(elements / group * 4) + round_up(elements / 16 * 2);
}

// The same for row.h's kernels: groups of 256, behind one another.
[[nodiscard]] inline unsigned row_bytes(unsigned elements) noexcept { return elements + round_up(elements / 256 * 4) + elements / 16 * 2; }

// Threads to a block of row.cu's kernels (HR_ROW_THREADS there).
[[nodiscard]] inline unsigned wide_block(Queue queue) noexcept { return queue.kernels.device().architecture.starts_with("sm_") ? 1024 : 512; }

// NVIDIA's compute capability, "sm_80"; 0: another architecture.
[[nodiscard]] inline int compute_capability(Queue queue) noexcept {
    const std::string_view architecture = queue.kernels.device().architecture;
    constexpr std::string_view prefix = "sm_";
    int capability = 0;
    if (architecture.starts_with(prefix)) std::from_chars(architecture.data() + prefix.size(), architecture.data() + architecture.size(), capability);
    return capability;
}
// Whether the kernels on matrix units are there (kernels/half_tiles.h, code_tiles.h), and those of blocks that work together (clusters.h).
[[nodiscard]] inline bool has_matrix_units(Queue queue) noexcept { return compute_capability(queue) >= 80; }
[[nodiscard]] inline bool has_clusters(Queue queue) noexcept { return compute_capability(queue) >= 90; }

// The one of three kernels that is for this type, if there is one.
[[nodiscard]] inline std::optional<Kernel> of_type(std::uint32_t type, Kernel q4_k, Kernel q5_k, Kernel q6_k) noexcept {
    switch (static_cast<gguf::TensorType>(type)) {
        case gguf::TensorType::q4_k: return q4_k;
        case gguf::TensorType::q5_k: return q5_k;
        case gguf::TensorType::q6_k: return q6_k;
        default: return std::nullopt;
    }
}

[[nodiscard]] inline unsigned multiprocessors(Queue queue) noexcept {
    return static_cast<unsigned>(std::max(1, queue.kernels.device().multiprocessors));
}

// Blocks for `units` pieces of work, one to a warp: no more than fill the device, where each warp goes on to further ones.
[[nodiscard]] inline unsigned blocks_for(Queue queue, std::int64_t units, unsigned warps, unsigned per_multiprocessor) noexcept {
    const std::int64_t blocks = (units + warps - 1) / warps;
    return static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, std::int64_t{multiprocessors(queue)} * per_multiprocessor));
}

}  // namespace headroom::kernels
