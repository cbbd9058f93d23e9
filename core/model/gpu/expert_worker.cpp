#include "core/model/gpu/expert_worker.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace headroom::model {
namespace {

constexpr std::size_t kReply = kReplyOffset / sizeof(std::uint32_t), kArrived = kArrivedOffset / sizeof(std::uint32_t);
constexpr auto kBetweenSteps = std::chrono::milliseconds(3);
constexpr int kSpins = 4096;  // before others may have the core
constexpr std::uint32_t kAll = 0x7fffffffU;  // more than any number of hand-overs

std::atomic_ref<std::uint32_t> flag(const HandOverMemory& memory, std::size_t which) {
    return std::atomic_ref(*(memory.flags.as<std::uint32_t>() + which));
}

// Whether a count has reached a number; they wrap.
bool behind(std::uint32_t count, std::uint32_t number) noexcept { return static_cast<std::int32_t>(count - number) >= 0; }

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

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

ExpertWorker::ExpertWorker(ThreadPool& pool, HandOverMemory& memory, std::optional<double> over_bus)
    : pool_(pool), memory_(memory), missing_(pool, memory), share_(over_bus), thread_([this] { work(); }) {}

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
        std::uint32_t reached = 0;
        const auto asked_or_past = [&] {
            reached = flag(memory_, 0).load(std::memory_order_acquire);
            return behind(reached, number) || behind(passed_.load(std::memory_order_acquire), number);
        };
        if (!spin_until(asked_or_past)) return;
        if (reached != number) continue;  // the device went on: nothing was missing
        if (!answer(job, number)) return;
    }
}

bool ExpertWorker::spin_until(FunctionRef<bool()> there) const {
    for (int spins = 0; !there(); ++spins) {
        if (stop_.load(std::memory_order_relaxed)) return false;
        if (spins > kSpins) std::this_thread::yield();
    }
    return true;
}

bool ExpertWorker::answer(const Job& job, std::uint32_t number) {
    const auto begin = Clock::now();
    const kernels::ExpertShape& shape = job.layer.mixture->shape;
    const auto here = std::span<const std::uint8_t>(job.here->experts).subspan(job.layer.first_block, static_cast<std::size_t>(shape.experts));
    const std::span chosen(memory_.chosen.as<std::int32_t>(), static_cast<std::size_t>(job.tokens * shape.used));
    BusShare::Observed observed;
    observed.by_device = std::ranges::count(chosen, kernels::kNotAsked);
    observed.by_processor = std::ranges::count_if(chosen, [&](std::int32_t expert) { return expert >= 0 && here[static_cast<std::size_t>(expert)] == 0; });
    missing_.compute(*job.layer.mixture, job.tokens, chosen.data(), here);
    if (stop_.load(std::memory_order_relaxed)) return false;  // the answer says "all" already
    const auto arrived = [&] { return behind(flag(memory_, kArrived).load(std::memory_order_acquire), number); };
    const bool later = !arrived();
    flag(memory_, kReply).store(number, std::memory_order_release);
    observed.processor_s = seconds_since(begin);
    if (later && observed.by_device > 0) {
        // Nothing else is to be done before the device comes with the next layer's question.
        if (!spin_until(arrived)) return false;
        observed.device_s = seconds_since(begin);
    }
    share_.observe(observed);
    return true;
}

}  // namespace headroom::model
