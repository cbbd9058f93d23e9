#include "core/model/gpu/upload.h"

#include <algorithm>
#include <cstring>

namespace headroom::model {
namespace {

constexpr std::uint64_t kUnit = 256 << 10;   // of a piece, to one thread
constexpr std::uint64_t kAlignment = 64;     // of pieces within a slot

}  // namespace

Result<Uploader> Uploader::create(gpu::Driver& driver, ThreadPool& pool, UploadProgress progress, std::stop_token stop) {
    Uploader uploader(driver, pool);
    uploader.progress_ = std::move(progress);
    uploader.stop_ = std::move(stop);
    HR_TRY(uploader.stream_, gpu::make_stream(driver));
    for (Slot& slot : uploader.slots_) {
        HR_TRY(slot.memory, gpu::PinnedBuffer::create(driver, kBuffer));
        HR_TRY(slot.copied, gpu::make_event(driver));
    }
    return uploader;
}

Uploader::~Uploader() {
    if (stream_) (void)driver_->synchronize_stream(stream_.get());  // the pinned buffers are read until then
}

Result<> Uploader::copy(gpu::DevicePointer to, const void* from, std::uint64_t bytes) {
    const auto* source = static_cast<const std::byte*>(from);
    bool continues = false;
    while (bytes > 0) {
        const std::uint64_t count = std::min({bytes, kUnit, kBuffer - filled_});
        pieces_.push_back({.to = to, .from = source, .bytes = count, .at = filled_, .continues = continues});
        filled_ = std::min(kBuffer, (filled_ + count + kAlignment - 1) / kAlignment * kAlignment);
        to += count;
        source += count;
        bytes -= count;
        continues = filled_ < kBuffer;
        if (!continues) HR_CHECK(send());
    }
    return {};
}

Result<> Uploader::send() {
    auto sent = send_gathered();
    if (!sent) (void)driver_->synchronize_stream(stream_.get());  // whoever fails gives up the memory that copies are on their way to
    return sent;
}

Result<> Uploader::send_gathered() {
    if (stop_.stop_requested()) return fail(ErrorKind::cancelled, "Loading was cancelled");
    Slot& slot = slots_[next_];
    if (slot.used) HR_CHECK(driver_->synchronize_event(slot.copied.get()));
    std::byte* memory = slot.memory.as<std::byte>();
    pool_->parallel_for(static_cast<std::int64_t>(pieces_.size()), 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
            std::memcpy(memory + pieces_[i].at, pieces_[i].from, pieces_[i].bytes);
        }
    });
    std::vector<gpu::Driver::HostPiece> copies;
    for (const Piece& piece : pieces_) {
        done_ += piece.bytes;
        if (piece.continues) copies.back().bytes += piece.bytes;
        else copies.push_back({.to = piece.to, .from = memory + piece.at, .bytes = piece.bytes});
    }
    pieces_.clear();
    filled_ = 0;
    HR_CHECK(driver_->copy_all_to_device(copies, stream_.get()));
    HR_CHECK(driver_->record_event(slot.copied.get(), stream_.get()));
    slot.used = true;
    next_ = (next_ + 1) % slots_.size();
    if (progress_) progress_(done_);
    return {};
}

Result<> Uploader::finish() {
    if (!pieces_.empty()) HR_CHECK(send());
    HR_CHECK(driver_->synchronize_stream(stream_.get()));
    for (Slot& slot : slots_) slot.used = false;
    return {};
}

}  // namespace headroom::model
