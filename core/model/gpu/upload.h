#pragma once

// Copies from the mapped file to a device at the speed of the bus: pieces are gathered in pinned buffers, which all compute threads fill
// while those before are on their way.

#include <array>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/gpu/resources.h"

namespace headroom::model {

// Called with the bytes copied so far by this uploader.
using UploadProgress = std::function<void(std::uint64_t bytes)>;

// One thread, with the device current in it; the pool is used during copy() and finish().
class Uploader {
public:
    [[nodiscard]] static Result<Uploader> create(gpu::Driver& driver, ThreadPool& pool, UploadProgress progress, std::stop_token stop);

    // The source is read until finish() has returned, and has arrived then. Errors: cancelled, those of the driver.
    [[nodiscard]] Result<> copy(gpu::DevicePointer to, const void* from, std::uint64_t bytes);
    [[nodiscard]] Result<> finish();

    Uploader(Uploader&&) = default;
    ~Uploader();

private:
    Uploader(gpu::Driver& driver, ThreadPool& pool) : driver_(&driver), pool_(&pool) {}
    [[nodiscard]] Result<> send();  // what was gathered; on failure nothing is on its way any more
    [[nodiscard]] Result<> send_gathered();

    static constexpr std::uint64_t kBuffer = 16 << 20;
    struct Slot {
        gpu::PinnedBuffer memory;
        gpu::Event copied;
        bool used = false;
    };
    struct Piece {
        gpu::DevicePointer to = 0;
        const std::byte* from = nullptr;
        std::uint64_t bytes = 0;
        std::uint64_t at = 0;    // in the slot
        bool continues = false;  // the piece before, of the same copy: neighbours of different copies may lie in different allocations
    };
    gpu::Driver* driver_;
    ThreadPool* pool_;
    UploadProgress progress_;
    std::stop_token stop_;
    gpu::Stream stream_;
    std::array<Slot, 4> slots_;
    std::size_t next_ = 0;       // slot
    std::vector<Piece> pieces_;  // gathered for it, in units that one thread copies at once
    std::uint64_t filled_ = 0;   // bytes of it
    std::uint64_t done_ = 0;
};

}  // namespace headroom::model
