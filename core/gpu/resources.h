#pragma once

// Driver objects that destroy themselves. Each belongs to the device that was current when it was made, which has to be current in the
// thread that destroys it. A failure to destroy is tried once more and then logged: nothing else can be done.

#include <cstdint>
#include <utility>

#include "core/base/error.h"
#include "core/gpu/driver.h"

namespace headroom::gpu {

// VRAM of a plain allocation, aligned to 256 bytes.
class Buffer {
public:
    Buffer() = default;
    // bytes 0: an empty buffer. Errors: out_of_memory, device.
    [[nodiscard]] static Result<Buffer> create(Driver& driver, std::uint64_t bytes);
    Buffer(Buffer&& other) noexcept { swap(other); }
    Buffer& operator=(Buffer&& other) noexcept {
        Buffer taken(std::move(other));
        swap(taken);
        return *this;
    }
    ~Buffer();

    [[nodiscard]] DevicePointer address() const noexcept { return address_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
    template <class T>
    [[nodiscard]] T* as(std::uint64_t offset = 0) const noexcept {
        return reinterpret_cast<T*>(address_ + offset);
    }

private:
    void swap(Buffer& other) noexcept {
        std::swap(driver_, other.driver_);
        std::swap(address_, other.address_);
        std::swap(bytes_, other.bytes_);
    }
    Driver* driver_ = nullptr;
    DevicePointer address_ = 0;
    std::uint64_t bytes_ = 0;
};

// Pinned host memory, which kernels see under the same address.
class PinnedBuffer {
public:
    PinnedBuffer() = default;
    [[nodiscard]] static Result<PinnedBuffer> create(Driver& driver, std::uint64_t bytes);
    PinnedBuffer(PinnedBuffer&& other) noexcept { swap(other); }
    PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
        PinnedBuffer taken(std::move(other));
        swap(taken);
        return *this;
    }
    ~PinnedBuffer();

    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
    template <class T = std::byte>
    [[nodiscard]] T* as(std::uint64_t offset = 0) const noexcept {
        return reinterpret_cast<T*>(static_cast<std::byte*>(host_) + offset);
    }
    // Where kernels see it.
    template <class T = std::byte>
    [[nodiscard]] T* on_device(std::uint64_t offset = 0) const noexcept {
        return reinterpret_cast<T*>(device_ + offset);
    }

private:
    void swap(PinnedBuffer& other) noexcept {
        std::swap(driver_, other.driver_);
        std::swap(host_, other.host_);
        std::swap(device_, other.device_);
        std::swap(bytes_, other.bytes_);
    }
    Driver* driver_ = nullptr;
    void* host_ = nullptr;
    DevicePointer device_ = 0;
    std::uint64_t bytes_ = 0;
};

// A handle with the driver's function that destroys it.
template <class Handle, Result<> (Driver::*destroy)(Handle)>
class Owned {
public:
    Owned() = default;
    Owned(Driver& driver, Handle handle) noexcept : driver_(&driver), handle_(handle) {}
    Owned(Owned&& other) noexcept : driver_(other.driver_), handle_(std::exchange(other.handle_, nullptr)) {}
    Owned& operator=(Owned&& other) noexcept {
        std::swap(driver_, other.driver_);
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Owned() {
        if (handle_ != nullptr && !(driver_->*destroy)(handle_)) (void)(driver_->*destroy)(handle_);
    }
    [[nodiscard]] Handle get() const noexcept { return handle_; }
    explicit operator bool() const noexcept { return handle_ != nullptr; }

private:
    Driver* driver_ = nullptr;
    Handle handle_ = nullptr;
};
using Stream = Owned<StreamHandle, &Driver::destroy_stream>;
using Event = Owned<EventHandle, &Driver::destroy_event>;
using GraphExec = Owned<GraphExecHandle, &Driver::destroy_graph_exec>;

[[nodiscard]] Result<Stream> make_stream(Driver& driver);
[[nodiscard]] Result<Event> make_event(Driver& driver);

// Records what `enqueue` enqueues on the stream as a graph. The stream is usable again after any outcome.
template <class Enqueue>
[[nodiscard]] Result<GraphExec> capture(Driver& driver, StreamHandle stream, Enqueue enqueue) {
    HR_CHECK(driver.begin_capture(stream));
    const Result<> enqueued = enqueue();
    const Result<GraphHandle> graph = driver.end_capture(stream);
    if (!enqueued) {
        if (graph) (void)driver.destroy_graph(*graph);
        return std::unexpected(enqueued.error());
    }
    HR_CHECK(graph);
    const Result<GraphExecHandle> exec = driver.instantiate_graph(*graph);
    const Result<> destroyed = driver.destroy_graph(*graph);
    HR_CHECK(exec);
    GraphExec owned(driver, *exec);
    HR_CHECK(destroyed);
    return owned;
}

}  // namespace headroom::gpu
