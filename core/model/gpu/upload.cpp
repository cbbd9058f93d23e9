#include "core/model/gpu/upload.h"

#include <algorithm>
#include <cstring>

namespace headroom::model {
namespace {

constexpr std::int64_t kThreadPiece = 256 << 10;  // of a piece, to one thread
constexpr std::uint64_t kAlignment = 64;          // of copies within a slot

}  // namespace

Result<Uploader> Uploader::create(gpu::Driver& driver, ThreadPool& pool, UploadProgress progress, std::stop_token stop) {
    Uploader uploader(driver, pool);
    uploader.progress_ = std::move(progress);
    uploader.stop_ = std::move(stop);
    HR_TRY(uploader.stream_, gpu::make_stream(driver));
    for (Slot& slot : uploader.slots_) {
        HR_TRY(slot.memory, gpu::PinnedBuffer::create(driver, kPiece));
        HR_TRY(slot.copied, gpu::make_event(driver));
    }
    return uploader;
}

Uploader::~Uploader() {
    if (stream_) (void)driver_->synchronize_stream(stream_.get());  // the pinned buffers are read until then
}

Result<> Uploader::copy(gpu::DevicePointer to, const void* from, std::uint64_t bytes) {
    const auto* source = static_cast<const std::byte*>(from);
    while (bytes > 0) {
        Slot& slot = slots_[next_];
        if (filled_ == 0) {
            if (stop_.stop_requested()) return fail(ErrorKind::cancelled, "Loading was cancelled");
            if (slot.used) HR_CHECK(driver_->synchronize_event(slot.copied.get()));
        }
        const std::uint64_t count = std::min(bytes, kPiece - filled_);
        std::byte* target = slot.memory.as<std::byte>(filled_);
        pool_->parallel_for(static_cast<std::int64_t>(count), kThreadPiece, [&](std::int64_t begin, std::int64_t end, int) {
            std::memcpy(target + begin, source + begin, static_cast<std::size_t>(end - begin));
        });
        HR_CHECK(driver_->copy_to_device(to, target, count, stream_.get()));
        filled_ = std::min(kPiece, (filled_ + count + kAlignment - 1) / kAlignment * kAlignment);
        to += count;
        source += count;
        bytes -= count;
        done_ += count;
        if (filled_ == kPiece) {
            HR_CHECK(driver_->record_event(slot.copied.get(), stream_.get()));
            slot.used = true;
            filled_ = 0;
            next_ = (next_ + 1) % slots_.size();
            if (progress_) progress_(done_);
        }
    }
    return {};
}

Result<> Uploader::finish() {
    HR_CHECK(driver_->synchronize_stream(stream_.get()));
    for (Slot& slot : slots_) slot.used = false;
    filled_ = 0;
    if (progress_) progress_(done_);
    return {};
}

}  // namespace headroom::model
