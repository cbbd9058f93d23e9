#pragma once

// What of a model lies on which device: decided from sizes alone, before anything is allocated.
//
// The layers stand in order: the first ones on the processor (none where all fit), then those of each device. A dense layer is on a device
// whole or not at all. Of a mixture a device holds everything but experts, and as many experts as fit, as many in each layer.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/model/transformer.h"

namespace headroom::model {

// One device's part: the layers [first, last).
struct DevicePart {
    std::size_t device = 0;              // index into the budgets
    std::int64_t first = 0;
    std::int64_t last = 0;
    std::vector<std::int64_t> experts;   // [last - first]: of each layer, on the device (the first so many); 0 for dense layers
    bool embedding = false;              // the table of tokens too: the part with layer 0
    bool output = false;                 // the output's norm and matrix too: the last part
    std::uint64_t bytes = 0;             // weights, KV pool and scratch
};

struct Placement {
    std::int64_t cpu_layers = 0;         // on the processor, the first ones: all of them where nothing fits
    std::vector<DevicePart> parts;       // in the layers' order; none is empty
    std::int64_t chunk = 0;              // tokens of a prompt that are computed together
    std::int64_t kv_positions = 0;       // of each part's KV pool, for all sessions together: a multiple of a page
    std::int64_t experts_total = 0;      // of all layers
    std::int64_t experts_on_device = 0;

    [[nodiscard]] bool complete() const noexcept { return cpu_layers == 0 && experts_on_device == experts_total; }
};

// Where memory comes and goes: what a layer's own memory is rounded up to, and the keys and values of a layer at the start (0: for whole
// sessions, and all that there will be).
struct ElasticSizes {
    std::uint64_t granularity = 256;
    std::uint64_t kv_layer_bytes = 0;
};

// A run of layers, [first, last).
struct LayerRun {
    std::int64_t first = 0;
    std::int64_t last = 0;
};

// budgets: the bytes the model may use on each device, in the order in which their parts shall stand. context: positions of one session;
// the KV pool holds at least those, and up to eight sessions' where there is room to spare. run: the layers to be placed, all where it is
// not said; the placement's counts are of those then.
[[nodiscard]] Placement plan_placement(const Transformer& transformer, std::span<const std::uint64_t> budgets, std::int64_t context,
                                       const ElasticSizes& elastic = {}, std::optional<LayerRun> run = {});
// Conversations of full length that a pool of keys and values holds at most.
inline constexpr std::int64_t kMostSessions = 8;

// Bytes on a device: of a layer without experts, of one of its experts (0: dense), of a matrix. Each piece begins at a multiple of 256.
[[nodiscard]] std::uint64_t device_bytes(const Layer& layer) noexcept;
[[nodiscard]] std::uint64_t expert_bytes(const Layer& layer) noexcept;
[[nodiscard]] std::uint64_t device_bytes(const cpu::Matrix& matrix) noexcept;

}  // namespace headroom::model
