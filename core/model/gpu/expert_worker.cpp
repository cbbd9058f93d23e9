#include "core/model/gpu/expert_worker.h"

#include <chrono>
#include <cstring>

namespace headroom::model {
namespace {

constexpr std::size_t kReply = kReplyOffset / sizeof(std::uint32_t);
constexpr auto kBetweenSteps = std::chrono::milliseconds(3);
constexpr std::uint32_t kAll = 0x7fffffffU;  // more than any number of hand-overs

std::atomic_ref<std::uint32_t> flag(const HandOverMemory& memory, std::size_t which) {
    return std::atomic_ref(*(memory.flags.as<std::uint32_t>() + which));
}

}  // namespace

Result<HandOverMemory> HandOverMemory::create(gpu::Driver& driver, std::int64_t tokens, std::int64_t width, std::int64_t used) {
    HandOverMemory memory;
    const auto bytes = [](std::int64_t count) { return static_cast<std::uint64_t>(count) * 4; };
    HR_TRY(memory.x, gpu::PinnedBuffer::create(driver, bytes(tokens * width)));
    HR_TRY(memory.chosen, gpu::PinnedBuffer::create(driver, bytes(tokens * used)));
    HR_TRY(memory.outputs, gpu::PinnedBuffer::create(driver, bytes(tokens * used * width)));
    HR_TRY(memory.flags, gpu::PinnedBuffer::create(driver, 2 * kReplyOffset));
    std::memset(memory.flags.as<>(), 0, memory.flags.bytes());
    HR_TRY(memory.counter, gpu::Buffer::create(driver, 2 * sizeof(std::uint32_t)));
    HR_CHECK(driver.fill(memory.counter.address(), 0, memory.counter.bytes()));
    HR_CHECK(driver.synchronize());
    return memory;
}

void MissingExperts::compute(const DeviceMixture& mixture, std::int64_t tokens, const std::int32_t* chosen, std::span<const std::uint8_t> here) {
    const MixtureFeedForward& block = *mixture.in_file;
    const std::int64_t width = block.gate.cols;
    activations_.assign(memory_.x.as<float>(), tokens, width, width);
    activations_.require(pool_, Experts::forms(block));
    experts_.compute(block, activations_, chosen, here, memory_.outputs.as<float>());
}

ExpertWorker::ExpertWorker(ThreadPool& pool, HandOverMemory& memory) : pool_(pool), memory_(memory), missing_(pool, memory), thread_([this] { work(); }) {}

ExpertWorker::~ExpertWorker() {
    abandon();
    thread_.join();
    pool_.set_patient(false);
}

void ExpertWorker::await(std::span<const Layer> layers, std::int64_t tokens, std::shared_ptr<const ExpertResidency::Here> here) {
    {
        const std::scoped_lock lock(mutex_);
        for (const Layer& layer : layers) jobs_.push_back({.layer = layer, .tokens = tokens, .here = here});
    }
    changed_.notify_one();
}

void ExpertWorker::abandon() noexcept {
    {
        const std::scoped_lock lock(mutex_);
        jobs_.clear();
        stop_.store(true, std::memory_order_relaxed);
    }
    changed_.notify_one();
    flag(memory_, kReply).store(kAll, std::memory_order_release);
}

void ExpertWorker::work() {
    for (std::uint32_t number = 1;; ++number) {
        Job job{};
        {
            std::unique_lock lock(mutex_);
            const auto called = [&] { return stop_ || !jobs_.empty(); };
            // Between the steps of an answer the pool's threads stay awake: waking them for each layer would cost more than the layer.
            if (!changed_.wait_for(lock, kBetweenSteps, called)) {
                pool_.set_patient(false);
                changed_.wait(lock, called);
            }
            pool_.set_patient(true);
            if (stop_) return;
            job = std::move(jobs_.front());
            jobs_.pop_front();
        }
        // The device is at most some layers away: spinning costs less than any sleep. A long wait (a step behind another) yields.
        const auto behind = [number](std::uint32_t count) { return static_cast<std::int32_t>(count - number) >= 0; };  // they wrap
        std::uint32_t reached = flag(memory_, 0).load(std::memory_order_acquire);
        for (int spins = 0; !behind(reached) && !behind(passed_.load(std::memory_order_acquire)); ++spins) {
            if (stop_.load(std::memory_order_relaxed)) return;
            if (spins > 4096) std::this_thread::yield();
            reached = flag(memory_, 0).load(std::memory_order_acquire);
        }
        if (reached != number) continue;  // the device went on: nothing was missing
        const kernels::ExpertShape& shape = job.layer.mixture->shape;
        const auto here = std::span<const std::uint8_t>(job.here->experts).subspan(job.layer.first_block, static_cast<std::size_t>(shape.experts));
        missing_.compute(*job.layer.mixture, job.tokens, memory_.chosen.as<std::int32_t>(), here);
        if (stop_.load(std::memory_order_relaxed)) return;  // the answer says "all" already
        flag(memory_, kReply).store(number, std::memory_order_release);
    }
}

}  // namespace headroom::model
