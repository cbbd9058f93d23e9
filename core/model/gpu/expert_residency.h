#pragma once

// Which experts of a part lie on its device: the table that kernels read, and how it changes while steps go on.
//
// Giving up follows one order: unpublish, fence, unmap. The new table is written in the stream of the steps, so each step sees one table
// from its begin to its end, and the processor's share is chosen by the snapshot that belongs to it. Growing is the mirror image: map, fill,
// wait, publish. A failure of the driver leaves table, snapshot and mappings agreeing.

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "core/compute/gpu/ops.h"
#include "core/gpu/resources.h"
#include "core/model/gpu/placement.h"
#include "core/model/gpu/upload.h"
#include "core/model/transformer.h"
#include "core/residency/block_store.h"
#include "core/residency/copier.h"
#include "core/residency/resize_report.h"
#include "core/residency/step_gate.h"

namespace headroom::model {

class ExpertResidency {
public:
    // What lies on the device, as one table says.
    struct Here {
        std::vector<std::uint8_t> experts;   // [blocks]: 1: on the device
        std::vector<std::uint8_t> complete;  // [layers of the part]: all of its experts
        bool all = false;
    };
    struct Environment {
        kernels::Kernels& kernels;
        residency::StepGate& gate;
        gpu::StreamHandle steps;             // the stream of the steps
        const Transformer& transformer;
        const DevicePart& part;
        residency::Copier& copier;           // of changes
        std::function<void()> changed;       // called by changes, whenever what is held or resident has changed
        vmm::SegmentPool* pool = nullptr;    // null: experts stay where they are placed, in plain allocations
        const vmm::Verdict* verdict = nullptr;
    };
    // Copies experts into `room` bytes (plain: those that the part names), and publishes them. The environment's objects must outlive it.
    // The device is current; so it has to be for all that is not const. Errors: those of the driver, cancelled.
    [[nodiscard]] static Result<std::unique_ptr<ExpertResidency>> create(const Environment& environment, std::uint64_t room, Uploader& uploader);

    // For steps, with the gate.
    [[nodiscard]] const std::shared_ptr<const Here>& here() const noexcept { return here_; }
    // On the device, [experts]. layer: of the part.
    [[nodiscard]] const kernels::ExpertAddresses* table(std::size_t layer) const noexcept { return table_.as<kernels::ExpertAddresses>() + first_block_[layer]; }
    // How far behind an expert's entry of a table stands where the device sees it in the host's memory: nowhere before publish_in_memory.
    [[nodiscard]] std::int32_t host_entries() const noexcept { return static_cast<std::int32_t>(source_.size()); }
    // Tells steps from now on where the experts lie in the host's memory, as far as the device sees it there. Any thread with the device current, once; not
    // one that has the gate.
    [[nodiscard]] Result<> publish_in_memory(const residency::PinnedSpans& pinned);
    // On the device, [experts]: how often each was chosen; null where nothing moves.
    [[nodiscard]] std::int32_t* counts(std::size_t layer) const noexcept { return counts_.bytes() > 0 ? counts_.as<std::int32_t>() + first_block_[layer] : nullptr; }
    [[nodiscard]] std::size_t first_block(std::size_t layer) const noexcept { return first_block_[layer]; }

    // An expert's gate, up or down matrix in the mapped file. Any thread.
    [[nodiscard]] std::span<const std::byte> matrix(residency::Block block, std::size_t which) const noexcept {
        return std::as_bytes(std::span(source_[block].from[which], source_[block].bytes[which]));
    }

    // For changes: one thread at a time, not one that has the gate. Both add to the report's times and say in limited_by what failed.
    // Gives shelves of at least `bytes` back to the driver, or all there are.
    void give(std::uint64_t bytes, residency::ResizeReport& report);
    // Copies missing experts, the hottest first, into free slots and up to `room` bytes of new segments.
    void take(std::uint64_t room, residency::ResizeReport& report, const std::function<bool()>& superseded);
    // Lets hot experts that are missing take the slots of cold ones: a few at a time, so that steps hardly notice.
    void adapt(residency::ResizeReport& report);
    // The experts in the mapped file that may be copied from there or be read there by the device: all, or the missing ones where nothing moves.
    [[nodiscard]] std::vector<std::span<const std::byte>> spans_to_pin() const;

    // Any thread.
    [[nodiscard]] std::uint64_t full_bytes() const noexcept { return store_->full_bytes(); }
    [[nodiscard]] std::uint64_t mapped_bytes() const noexcept { return mapped_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::int64_t resident() const noexcept { return resident_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::int64_t total() const noexcept { return static_cast<std::int64_t>(source_.size()); }
    // Of the experts that were chosen lately: how many were on the device when that was last looked at.
    [[nodiscard]] double hit_rate() const noexcept { return hit_rate_.load(std::memory_order_relaxed); }

private:
    struct Source {
        std::array<const std::uint8_t*, 3> from;   // gate, up, down
        std::array<std::uint64_t, 3> bytes;
    };
    struct Staging {
        gpu::PinnedBuffer memory;
        gpu::Event copied;
        bool used = false;
    };
    struct Piece {
        std::vector<residency::Block> blocks;
        residency::Copier::Mark copied;
    };

    explicit ExpertResidency(const Environment& environment) : environment_(environment), driver_(environment.kernels.driver()), copier_(environment.copier) {}
    [[nodiscard]] Result<> make_streams();
    [[nodiscard]] std::vector<residency::Block> missing_hottest_first() const;
    // Takes up what was chosen since the last look.
    void read_heat();
    [[nodiscard]] Result<> copy_piece(std::span<const std::pair<residency::Block, residency::Slot>> blocks, Piece& piece, residency::ResizeReport& report);
    // Writes the published experts' addresses in the stream of the steps; with the gate. On failure the device has the table it had.
    [[nodiscard]] Result<> write_table();
    void renew_snapshot();
    // Waits for all steps that were enqueued before the gate was left. with_gate: records; then, without it, await_fence.
    [[nodiscard]] Result<> record_fence();
    // The changes of a plan to the table, with the gate.
    [[nodiscard]] Result<> unpublish(const residency::BlockStore::Leaving& leaving, residency::ResizeReport& report);
    [[nodiscard]] Result<> copy_block(residency::Block block, gpu::DevicePointer to, std::size_t stream);
    // Enqueues the copies of one piece into slots, mapping shelves. False: nothing more is to come.
    [[nodiscard]] bool begin_piece(std::span<const residency::Block>& wanted, std::uint64_t& room, std::deque<Piece>& pieces, residency::ResizeReport& report);
    [[nodiscard]] Result<> publish(const Piece& piece);
    void release_empty(residency::ResizeReport& report);
    void count();

    Environment environment_;
    gpu::Driver& driver_;
    residency::Copier& copier_;
    std::vector<Source> source_;               // [blocks]
    std::vector<std::size_t> first_block_;     // [layers of the part + 1]
    std::vector<std::uint32_t> rank_;          // [blocks]: among equally hot ones: the same expert of every layer, then the next
    std::vector<float> heat_;                  // [blocks]: how often it was chosen, the past counting less and less
    gpu::Buffer counts_;                       // int32 [blocks] on the device
    gpu::PinnedBuffer counts_here_;            // the same as last read
    std::vector<std::int32_t> counted_;        // [blocks]: what heat_ knows of
    double chosen_ = 0, chosen_here_ = 0;      // decayed as heat
    std::atomic<double> hit_rate_{1};
    std::unique_ptr<residency::BlockStore> store_;
    std::vector<std::uint8_t> published_;      // [blocks]: the table on the device names its slot
    std::shared_ptr<const Here> here_;
    gpu::Buffer table_;                        // [2 * blocks]: on the device, and behind them in the host's memory
    std::array<Staging, 4> tables_;            // images of the table, on their way
    std::size_t next_table_ = 0;
    gpu::Event fence_;
    std::atomic<std::uint64_t> mapped_{0};
    std::atomic<std::int64_t> resident_{0};
};

}  // namespace headroom::model
