#include "core/residency/copier.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/base/bytes.h"

namespace headroom::residency {
namespace {

constexpr std::uint64_t kStagingBytes = 8 * MiB;
constexpr std::size_t kBatch = 96;  // copies in one call
constexpr auto kPoll = std::chrono::microseconds(50);

}  // namespace

Result<> await_event(gpu::Driver& driver, gpu::EventHandle event) {
    for (;;) {
        HR_TRY(const bool done, driver.event_done(event));
        if (done) return {};
        std::this_thread::sleep_for(kPoll);
    }
}

Result<> Copier::start() {
    for (gpu::Stream& stream : streams_) {
        HR_TRY(stream, gpu::make_stream(driver_));
    }
    return {};
}

Copier::~Copier() { (void)await_all(); }

Result<> Copier::copy(gpu::DevicePointer to, const void* from, std::uint64_t bytes, std::size_t stream) {
    const auto* source = static_cast<const std::byte*>(from);
    while (bytes > 0) {
        const auto [count, registered] = pinned_.stretch(source, bytes);
        if (registered) {
            pending_[stream].push_back({.to = to, .from = source, .bytes = count});
            if (pending_[stream].size() == kBatch) HR_CHECK(flush(stream));
        } else {
            HR_CHECK(copy_staged(to, source, count, stream));
        }
        to += count;
        source += count;
        bytes -= count;
    }
    return {};
}

Result<> Copier::flush(std::size_t stream) {
    const auto enqueued = driver_.copy_all_to_device(pending_[stream], streams_[stream].get());
    pending_[stream].clear();
    return enqueued;
}

Result<> Copier::copy_staged(gpu::DevicePointer to, const std::byte* from, std::uint64_t bytes, std::size_t stream) {
    while (bytes > 0) {
        Staging& staging = staging_[next_];
        if (!staging.copied) {
            HR_TRY(staging.copied, gpu::make_event(driver_));
        }
        if (staging.memory.bytes() == 0) {
            HR_TRY(staging.memory, gpu::PinnedBuffer::create(driver_, kStagingBytes));
        }
        if (staging.used) HR_CHECK(await_event(driver_, staging.copied.get()));
        staging.used = false;
        const std::uint64_t count = std::min(bytes, kStagingBytes);
        std::memcpy(staging.memory.as<>(), from, count);
        HR_CHECK(driver_.copy_to_device(to, staging.memory.as<>(), count, streams_[stream].get()));
        staging.used = true;
        if (auto recorded = driver_.record_event(staging.copied.get(), streams_[stream].get()); !recorded) {
            HR_CHECK(driver_.synchronize_stream(streams_[stream].get()));
            staging.used = false;
        }
        next_ = (next_ + 1) % staging_.size();
        to += count;
        from += count;
        bytes -= count;
    }
    return {};
}

Result<Copier::Mark> Copier::mark() {
    Mark mark;
    for (std::size_t i = 0; i < kStreams; ++i) {
        HR_CHECK(flush(i));
        HR_TRY(mark[i], gpu::make_event(driver_));
        HR_CHECK(driver_.record_event(mark[i].get(), streams_[i].get()));
    }
    return mark;
}

Result<> Copier::await(const Mark& mark) {
    for (const gpu::Event& event : mark) HR_CHECK(await_event(driver_, event.get()));
    return {};
}

Result<> Copier::await_all() {
    Result<> result;
    for (auto& pending : pending_) pending.clear();
    for (const gpu::Stream& stream : streams_) {
        if (!stream) continue;
        if (auto done = driver_.synchronize_stream(stream.get()); !done && result) result = std::move(done);
    }
    return result;
}

}  // namespace headroom::residency
