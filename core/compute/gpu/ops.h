#pragma once

// The operators on a GPU: each function enqueues one kernel on a stream and returns at once. What each computes, and the shapes, are in
// kernels/arguments.h beside its structure. One file here for each file of device code in kernels/.
//
// Errors: those of the driver's launch; invalid_argument for shapes a kernel cannot take (named in the message).

#include <span>

#include "core/base/error.h"
#include "core/compute/gpu/kernels.h"
#include "core/gguf/types.h"

namespace headroom::kernels {

// Where launches go.
struct Queue {
    Kernels& kernels;
    gpu::StreamHandle stream = nullptr;
};

// vectors.cpp
[[nodiscard]] Result<> embed_rows(Queue queue, const EmbedArguments& arguments);
[[nodiscard]] Result<> norm_rows(Queue queue, const NormArguments& arguments);
[[nodiscard]] Result<> combine_norm_rows(Queue queue, const CombineNormArguments& arguments);
[[nodiscard]] Result<> swiglu_rows(Queue queue, const SwigluArguments& arguments);
// Copies words of four bytes by a kernel (norm_rows, which leaves their bits alone): for what a step needs from pinned memory (`from`: as the
// device sees it). The engines that copy to a device may be busy with gigabytes of weights, and serve whoever came first.
[[nodiscard]] Result<> copy_words(Queue queue, gpu::DevicePointer to, const void* from, std::uint64_t bytes);

// products.cpp
[[nodiscard]] Result<> product_row(Queue queue, const ProductArguments& arguments);
[[nodiscard]] Result<> product_rows(Queue queue, const ProductArguments& arguments);

// tiles.cpp
// arguments.target.w.type selects the kernel.
[[nodiscard]] Result<> product_tiles(Queue queue, const ProductTilesArguments& arguments);
// Whether product_tiles and experts_tiles take matrices of this type (all quantized ones).
[[nodiscard]] bool has_tiles(gguf::TensorType type) noexcept;

// experts.cpp
[[nodiscard]] Result<> router_row(Queue queue, const RouterArguments& arguments);
[[nodiscard]] Result<> choose_experts(Queue queue, const ChooseArguments& arguments);
// Whether experts_gate_up, or few_experts, makes the choice itself, from the scores of so many tokens.
[[nodiscard]] bool chooses_by_itself(Queue queue, const ExpertShape& shape, std::int32_t tokens) noexcept;
[[nodiscard]] Result<> experts_gate_up(Queue queue, const ExpertsGateUpArguments& arguments);
[[nodiscard]] Result<> experts_down(Queue queue, const ExpertsDownArguments& arguments);
// Both for several tokens (2 to 16), where groups_experts says so: the weights of an expert are read once for all that chose it. `outputs` is given. list: room for
// few_list_bytes, aligned to 16 bytes.
[[nodiscard]] bool groups_experts(Queue queue, const ExpertShape& shape, std::int32_t tokens) noexcept;
[[nodiscard]] Result<> few_experts(Queue queue, const ExpertsGateUpArguments& gate_up, const ExpertsDownArguments& down, void* list);
[[nodiscard]] constexpr std::int64_t few_list_bytes(std::int64_t choices) noexcept { return (1 + choices) * kFewItemBytes; }
[[nodiscard]] Result<> group_rows(Queue queue, const GroupArguments& arguments);
[[nodiscard]] Result<> experts_tiles(Queue queue, gguf::TensorType type, const ExpertsTilesArguments& arguments);
[[nodiscard]] Result<> combine_rows(Queue queue, const CombineArguments& arguments);
[[nodiscard]] Result<> hand_over(Queue queue, const HandOverArguments& arguments);
[[nodiscard]] Result<> await_host(Queue queue, const AwaitArguments& arguments);

// attention.cpp
[[nodiscard]] Result<> head_rows(Queue queue, const HeadArguments& arguments);
[[nodiscard]] Result<> attention_rows(Queue queue, const AttentionArguments& arguments);
// Whether attention_step leaves the output's quantized form instead of the output, where groups_256 says so; it has to be empty elsewhere.
[[nodiscard]] bool attention_quantizes(Queue queue, const AttentionArguments& arguments) noexcept;
// head_rows and attention_rows, in one kernel where there is one for the heads' width. ahead, kMostAhead at most: what the kernels behind will read, sent for meanwhile where that
// kernel is for several tokens.
[[nodiscard]] Result<> attention_step(Queue queue, const HeadArguments& heads, const AttentionArguments& arguments, std::span<const Ahead> ahead = {});
// Whether there is a kernel for one token over many pages of a pool of this shape, so that AttentionArguments::parts_to_hand is of use: heads of
// kLongWidth, three to eight of them to a KV head, with codes at most eight.
[[nodiscard]] bool has_long_attention(std::int64_t heads, const KvPool& pool) noexcept;
[[nodiscard]] Result<> attention_prefill(Queue queue, const AttentionArguments& arguments);

// sampling.cpp
[[nodiscard]] Result<> argmax_rows(Queue queue, const ArgmaxArguments& arguments);
[[nodiscard]] Result<> top_rows(Queue queue, const TopArguments& arguments);

}  // namespace headroom::kernels
