#include "core/model/gpu/expert_stream.h"

#include <algorithm>
#include <cstring>

namespace headroom::model {
namespace {

constexpr std::uint64_t kAlignment = 256;

std::uint64_t aligned(std::uint64_t bytes) noexcept { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Result<std::unique_ptr<ExpertStream>> ExpertStream::create(kernels::Kernels& kernels, const residency::PinnedSpans& pinned, gpu::DevicePointer room,
                                                           std::uint64_t bytes, std::int64_t experts) {
    std::unique_ptr<ExpertStream> made(new ExpertStream(kernels, pinned));
    gpu::Driver& driver = made->driver_;
    made->room_ = room;
    made->half_bytes_ = bytes / kHalves / kAlignment * kAlignment;
    HR_TRY(made->copies_, gpu::make_stream(driver));
    const std::uint64_t table_bytes = static_cast<std::uint64_t>(experts) * sizeof(kernels::ExpertAddresses);
    for (gpu::Buffer& table : made->tables_) {
        HR_TRY(table, gpu::Buffer::create(driver, table_bytes));
    }
    for (Group& group : made->groups_) {
        HR_TRY(group.filled, gpu::make_event(driver));
        HR_TRY(group.used, gpu::make_event(driver));
        HR_TRY(group.table, gpu::PinnedBuffer::create(driver, table_bytes));
    }
    return made;
}

ExpertStream::~ExpertStream() {
    if (copies_) (void)driver_.synchronize_stream(copies_.get());
}

bool ExpertStream::can_stream(std::span<const Matrix> matrices) const {
    return std::ranges::all_of(matrices, [&](const Matrix& matrix) {
        std::span<const std::byte> left = matrix.bytes;
        // Neighbours of one expert come together.
        if (3 * aligned(left.size()) > half_bytes_) return false;
        while (!left.empty()) {
            const auto [bytes, registered] = pinned_.stretch(left.data(), left.size());
            if (!registered) return false;
            left = left.subspan(bytes);
        }
        return true;
    });
}

Result<> ExpertStream::copy(gpu::DevicePointer to, std::span<const std::byte> from) {
    while (!from.empty()) {  // registered in pieces, which one copy may not span
        const auto [bytes, registered] = pinned_.stretch(from.data(), from.size());
        if (!registered) return fail(ErrorKind::internal, "An expert's pages are not registered");
        pieces_.push_back({.to = to, .from = from.data(), .bytes = bytes});
        to += bytes;
        from = from.subspan(bytes);
    }
    return {};
}

Result<> ExpertStream::stream(std::span<const Matrix> matrices, gpu::StreamHandle steps, Use use) {
    auto streamed = stream_groups(matrices, steps, use);
    if (!streamed) (void)driver_.synchronize_stream(copies_.get());  // the room is the logits' again
    return streamed;
}

Result<> ExpertStream::stream_groups(std::span<const Matrix> matrices, gpu::StreamHandle steps, Use use) {
    for (std::size_t i = 0; i < matrices.size(); ++next_) {
        Group& group = groups_[next_ % groups_.size()];
        if (next_ >= groups_.size()) HR_CHECK(driver_.synchronize_event(group.used.get()));  // its image was read
        if (next_ >= kHalves) HR_CHECK(driver_.wait_event(copies_.get(), groups_[(next_ - kHalves) % groups_.size()].used.get()));
        auto* table = group.table.as<kernels::ExpertAddresses>();
        std::memset(group.table.as<>(), 0, group.table.bytes());
        pieces_.clear();
        const gpu::DevicePointer half = room_ + next_ % kHalves * half_bytes_;
        for (std::uint64_t at = 0; i < matrices.size();) {
            std::size_t end = i;
            std::uint64_t bytes = 0;
            for (; end < matrices.size() && matrices[end].expert == matrices[i].expert; ++end) bytes += aligned(matrices[end].bytes.size());
            if (at + bytes > half_bytes_) break;
            for (; i < end; ++i) {
                HR_CHECK(copy(half + at, matrices[i].bytes));
                kernels::ExpertAddresses& entry = table[matrices[i].expert];
                (matrices[i].which == 0 ? entry.gate : matrices[i].which == 1 ? entry.up : entry.down) = reinterpret_cast<const std::uint8_t*>(half + at);
                at += aligned(matrices[i].bytes.size());
            }
        }
        HR_CHECK(driver_.copy_all_to_device(pieces_, copies_.get()));
        HR_CHECK(driver_.record_event(group.filled.get(), copies_.get()));
        HR_CHECK(driver_.wait_event(steps, group.filled.get()));
        const gpu::Buffer& there = tables_[next_ % kHalves];
        HR_CHECK(kernels::copy_words({kernels_, steps}, there.address(), group.table.on_device(), group.table.bytes()));
        HR_CHECK(use(there.as<kernels::ExpertAddresses>()));
        HR_CHECK(driver_.record_event(group.used.get(), steps));
    }
    return {};
}

}  // namespace headroom::model
