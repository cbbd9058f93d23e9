#pragma once

// The processor's side of a decode step whose experts do not all lie on the device: a thread that waits for the device's word, computes the
// missing experts' outputs from the mapped file, and answers. The device waits in its stream, never the host that enqueues.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>

#include "core/base/thread_pool.h"
#include "core/gpu/resources.h"
#include "core/model/experts.h"
#include "core/model/gpu/bus_share.h"
#include "core/model/gpu/device_layers.h"
#include "core/model/gpu/expert_residency.h"

namespace headroom::model {

// Where in HandOverMemory::flags the processor's answer stands: a cache line behind the device's words. The second of these says which hand-over's kernels
// before the wait have ended.
inline constexpr std::uint64_t kReplyOffset = 64, kArrivedOffset = 4;

// Pinned memory through which rows and answers go, for batches of up to `tokens`.
struct HandOverMemory {
    [[nodiscard]] static Result<HandOverMemory> create(gpu::Driver& driver, std::int64_t tokens, std::int64_t width, std::int64_t used);

    gpu::PinnedBuffer x;        // float [tokens, width]: normed
    gpu::PinnedBuffer chosen;   // int32 [tokens, used]; kernels::kNotAsked: the device computes it
    gpu::PinnedBuffer outputs;  // float [tokens * used, width]: the answers; rows of experts on the device are not written
    gpu::PinnedBuffer flags;    // uint32: what hand_over has reached; at kArrivedOffset and kReplyOffset: see there
    gpu::Buffer counter;        // uint32 on the device: of hand-overs; behind it the last one whose answer is awaited
};

// Computes one layer's missing experts from and into such memory, on the calling thread and its pool.
class MissingExperts {
public:
    MissingExperts(ThreadPool& pool, HandOverMemory& memory) : pool_(pool), memory_(memory), experts_(pool) {}
    // chosen: [tokens, used], where kernels::kNotAsked stands for nothing. here: [experts of the layer]: 1 for those on the device.
    void compute(const DeviceMixture& mixture, std::int64_t tokens, const std::int32_t* chosen, std::span<const std::uint8_t> here);

private:
    ThreadPool& pool_;
    HandOverMemory& memory_;
    Experts experts_;
    cpu::Activations activations_;
};

class ExpertWorker {
public:
    // The memory must outlive it. The pool is used by its thread while layers are awaited. over_bus: BusShare's fixed share.
    ExpertWorker(ThreadPool& pool, HandOverMemory& memory, std::optional<double> over_bus);
    ~ExpertWorker();
    ExpertWorker(const ExpertWorker&) = delete;
    ExpertWorker& operator=(const ExpertWorker&) = delete;

    struct Layer {
        const DeviceMixture* mixture;
        std::size_t first_block;  // of its experts in a snapshot
    };
    // Before the step is enqueued: its hand-overs, in their order, and what the table will say then. The layers must stay until they have
    // been answered.
    void await(std::span<const Layer> layers, std::int64_t tokens, std::shared_ptr<const ExpertResidency::Here> here);
    // The first `count` hand-overs, of all since the beginning, are behind the device: those it did not ask about had nothing missing.
    void passed(std::uint32_t count) noexcept { passed_.store(count, std::memory_order_release); }
    // HandOverArguments::share of the steps to come. Any thread.
    [[nodiscard]] std::uint32_t bus_share() const noexcept { return share_.now(); }
    [[nodiscard]] MissingChoices counted() const noexcept { return share_.counted(); }
    // A step was not enqueued or the device failed: forgets what is awaited, and lets everything pass that waits for an answer. The worker
    // is of no use afterwards.
    void abandon() noexcept;

private:
    struct Job {
        Layer layer{};
        std::int64_t tokens = 0;
        std::shared_ptr<const ExpertResidency::Here> here;
    };
    void work();
    // The device is at most some layers away: spinning costs less than any sleep. A long wait (a step behind another) yields. False: the end has come.
    [[nodiscard]] bool spin_until(FunctionRef<bool()> there) const;
    // Computes what is asked for and answers; false: the end has come.
    [[nodiscard]] bool answer(const Job& job, std::uint32_t number);

    ThreadPool& pool_;
    HandOverMemory& memory_;
    MissingExperts missing_;
    BusShare share_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Job> jobs_;
    std::atomic<bool> stop_{false};
    std::atomic<std::uint32_t> passed_{0};
    std::thread thread_;
};

}  // namespace headroom::model
