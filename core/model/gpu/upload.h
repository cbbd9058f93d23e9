#pragma once

// Copies from the mapped file to a device at the speed of the bus: pieces go through pinned buffers, filled by all compute threads while
// the piece before is on its way.

#include <array>
#include <cstdint>
#include <functional>
#include <stop_token>

#include "core/base/thread_pool.h"
#include "core/gpu/resources.h"

namespace headroom::model {

// Called with the bytes copied so far by this uploader.
using UploadProgress = std::function<void(std::uint64_t bytes)>;

// One thread, with the device current in it; the pool is used during copy().
class Uploader {
public:
    [[nodiscard]] static Result<Uploader> create(gpu::Driver& driver, ThreadPool& pool, UploadProgress progress, std::stop_token stop);

    // Copies; returns when the source has been read, not when everything has arrived: finish() waits for that. Errors: cancelled, those
    // of the driver.
    [[nodiscard]] Result<> copy(gpu::DevicePointer to, const void* from, std::uint64_t bytes);
    [[nodiscard]] Result<> finish();

    Uploader(Uploader&&) = default;
    ~Uploader();

private:
    Uploader(gpu::Driver& driver, ThreadPool& pool) : driver_(&driver), pool_(&pool) {}

    static constexpr std::uint64_t kPiece = 16 << 20;
    struct Slot {
        gpu::PinnedBuffer memory;
        gpu::Event copied;
        bool used = false;
    };
    gpu::Driver* driver_;
    ThreadPool* pool_;
    UploadProgress progress_;
    std::stop_token stop_;
    gpu::Stream stream_;
    std::array<Slot, 4> slots_;
    std::size_t next_ = 0;       // slot
    std::uint64_t filled_ = 0;   // bytes of it
    std::uint64_t done_ = 0;
};

}  // namespace headroom::model
