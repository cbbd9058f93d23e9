#include "core/gpu/resources.h"

#include <spdlog/spdlog.h>

namespace headroom::gpu {
namespace {

template <class Free>
void free_or_log(Free free) {
    if (free()) return;
    if (const Result<> again = free(); !again) spdlog::warn("Memory was not given back: {}", again.error().message);
}

}  // namespace

Result<Buffer> Buffer::create(Driver& driver, std::uint64_t bytes) {
    Buffer buffer;
    if (bytes == 0) return buffer;
    HR_TRY(buffer.address_, driver.allocate(bytes));
    buffer.driver_ = &driver;
    buffer.bytes_ = bytes;
    return buffer;
}

Buffer::~Buffer() {
    if (address_ != 0) free_or_log([&] { return driver_->free(address_); });
}

Result<PinnedBuffer> PinnedBuffer::create(Driver& driver, std::uint64_t bytes) {
    PinnedBuffer buffer;
    if (bytes == 0) return buffer;
    HR_TRY(buffer.host_, driver.allocate_host(bytes));
    buffer.driver_ = &driver;
    buffer.bytes_ = bytes;
    HR_TRY(buffer.device_, driver.host_device_pointer(buffer.host_));
    return buffer;
}

PinnedBuffer::~PinnedBuffer() {
    if (host_ != nullptr) free_or_log([&] { return driver_->free_host(host_); });
}

Result<Stream> make_stream(Driver& driver) {
    HR_TRY(const StreamHandle stream, driver.create_stream());
    return Stream(driver, stream);
}

Result<Event> make_event(Driver& driver) {
    HR_TRY(const EventHandle event, driver.create_event(false));
    return Event(driver, event);
}

}  // namespace headroom::gpu
