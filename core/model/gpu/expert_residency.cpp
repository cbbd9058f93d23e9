#include "core/model/gpu/expert_residency.h"

#include <algorithm>
#include <cmath>
#include <numeric>


namespace headroom::model {
namespace {

using residency::Block;

// So many choices for each expert of the model and the past counts a third: some 500 tokens of a model that uses 8 of 128 experts.
constexpr double kMemory = 32;

std::uint64_t matrix_bytes(const cpu::Matrix& matrix) noexcept { return static_cast<std::uint64_t>(matrix.rows * matrix.row_bytes); }

}  // namespace

Result<std::unique_ptr<ExpertResidency>> ExpertResidency::create(const Environment& environment, std::uint64_t room, Uploader& uploader) {
    std::unique_ptr<ExpertResidency> made(new ExpertResidency(environment));
    const DevicePart& part = environment.part;
    std::vector<std::uint64_t> bytes;
    std::vector<Block> named;
    for (std::int64_t i = part.first; i < part.last; ++i) {
        made->first_block_.push_back(bytes.size());
        const auto* block = std::get_if<MixtureFeedForward>(&environment.transformer.layers[static_cast<std::size_t>(i)].feed_forward);
        if (block == nullptr) continue;
        for (std::int64_t e = 0; e < block->experts; ++e) {
            Source source{};
            std::uint64_t total = 0;
            for (std::size_t m = 0; const cpu::Matrix* matrix : {&block->gate, &block->up, &block->down}) {
                source.bytes[m] = matrix_bytes(*matrix);
                source.from[m] = reinterpret_cast<const std::uint8_t*>(matrix->data) + static_cast<std::uint64_t>(e) * source.bytes[m];
                total += source.bytes[m++];
            }
            if (e < part.experts[static_cast<std::size_t>(i - part.first)]) named.push_back(static_cast<Block>(bytes.size()));
            made->rank_.push_back(static_cast<std::uint32_t>(e));
            made->source_.push_back(source);
            bytes.push_back(total);
        }
    }
    made->first_block_.push_back(bytes.size());
    made->heat_.assign(bytes.size(), 0);
    made->published_.assign(bytes.size(), 0);
    HR_CHECK(made->make_streams());

    if (environment.pool != nullptr) {
        HR_TRY(made->store_, residency::BlockStore::elastic(*environment.pool, *environment.verdict, bytes));
        const std::vector<Block> wanted = made->missing_hottest_first();
        const auto coming = made->store_->plan_coming(wanted, ~std::uint64_t{0}, room);
        std::optional<Error> error;
        if (made->store_->map(coming.shelves, error) < coming.shelves.size()) return std::unexpected(std::move(*error));
        for (const auto& [block, slot] : coming.blocks) made->store_->place(block, slot);
    } else {
        HR_TRY(made->store_, residency::BlockStore::plain(made->driver_, bytes, named));
    }
    // In the order of the file: it may still have to be read from a disk.
    for (std::size_t layer = 0; layer + 1 < made->first_block_.size(); ++layer) {
        for (std::size_t m = 0; m < 3; ++m) {
            for (auto block = static_cast<Block>(made->first_block_[layer]); block < made->first_block_[layer + 1]; ++block) {
                if (!made->store_->has_slot(block)) continue;
                const Source& source = made->source_[block];
                const std::uint64_t offset = std::accumulate(source.bytes.begin(), source.bytes.begin() + static_cast<std::ptrdiff_t>(m), std::uint64_t{0});
                HR_CHECK(uploader.copy(made->store_->address(block) + offset, source.from[m], source.bytes[m]));
                made->published_[block] = 1;
            }
        }
    }
    HR_CHECK(uploader.finish());
    HR_CHECK(made->write_table());
    HR_CHECK(made->driver_.synchronize_stream(environment.steps));
    made->renew_snapshot();
    made->count();
    return made;
}

Result<> ExpertResidency::make_streams() {
    const std::uint64_t bytes = source_.size() * sizeof(kernels::ExpertAddresses);
    HR_TRY(table_, gpu::Buffer::create(driver_, 2 * bytes));
    HR_CHECK(driver_.fill(table_.address() + bytes, 0, bytes, environment_.steps));
    for (Staging& image : tables_) {
        HR_TRY(image.memory, gpu::PinnedBuffer::create(driver_, bytes));
        HR_TRY(image.copied, gpu::make_event(driver_));
    }
    if (environment_.pool == nullptr) return {};
    counted_.assign(source_.size(), 0);
    HR_TRY(counts_, gpu::Buffer::create(driver_, source_.size() * sizeof(std::int32_t)));
    HR_TRY(counts_here_, gpu::PinnedBuffer::create(driver_, counts_.bytes()));
    HR_CHECK(driver_.fill(counts_.address(), 0, counts_.bytes(), environment_.steps));
    HR_TRY(fence_, gpu::make_event(driver_));
    return {};
}

std::vector<Block> ExpertResidency::missing_hottest_first() const {
    std::vector<Block> missing;
    for (Block block = 0; block < store_->blocks(); ++block) {
        if (!store_->has_slot(block)) missing.push_back(block);
    }
    std::ranges::stable_sort(missing, [&](Block a, Block b) { return heat_[a] != heat_[b] ? heat_[a] > heat_[b] : rank_[a] < rank_[b]; });
    return missing;
}

void ExpertResidency::read_heat() {
    // Steps may be counting meanwhile: what they add now is seen next time.
    if (!driver_.copy_to_host(counts_here_.as<>(), counts_.address(), counts_.bytes(), copier_.stream(0)) ||
        !driver_.synchronize_stream(copier_.stream(0))) {
        return;  // the heat that is known will do
    }
    const auto* counts = counts_here_.as<std::int32_t>();
    std::uint64_t chosen = 0, chosen_here = 0;
    for (Block block = 0; block < heat_.size(); ++block) {
        const std::uint32_t fresh = static_cast<std::uint32_t>(counts[block]) - static_cast<std::uint32_t>(counted_[block]);
        counted_[block] = counts[block];
        chosen += fresh;
        if (published_[block] != 0) chosen_here += fresh;
        heat_[block] += static_cast<float>(fresh);
    }
    if (chosen == 0) return;
    // One layer's share of the choices is what was read since: the past fades with what comes, not with time.
    const auto used = static_cast<double>(heat_.size());
    const auto kept = static_cast<float>(std::exp(-static_cast<double>(chosen) / (kMemory * used)));
    for (float& heat : heat_) heat *= kept;
    chosen_ = static_cast<double>(kept) * (chosen_ + static_cast<double>(chosen));
    chosen_here_ = static_cast<double>(kept) * (chosen_here_ + static_cast<double>(chosen_here));
    hit_rate_.store(chosen_here_ / chosen_, std::memory_order_relaxed);
}

Result<> ExpertResidency::write_table() {
    Staging& image = tables_[next_table_];
    if (image.used) HR_CHECK(driver_.synchronize_event(image.copied.get()));
    auto* entries = image.memory.as<kernels::ExpertAddresses>();
    for (Block block = 0; block < source_.size(); ++block) {
        entries[block] = {};
        if (published_[block] == 0) continue;
        const auto* at = reinterpret_cast<const std::uint8_t*>(store_->address(block));
        const auto& bytes = source_[block].bytes;
        entries[block] = {at, at + bytes[0], at + bytes[0] + bytes[1]};
    }
    HR_CHECK(kernels::copy_words({environment_.kernels, environment_.steps}, table_.address(), image.memory.on_device(), image.memory.bytes()));
    next_table_ = (next_table_ + 1) % tables_.size();
    image.used = true;
    // Without its event the image could be overwritten too early: wait instead.
    if (!driver_.record_event(image.copied.get(), environment_.steps)) image.used = !driver_.synchronize_stream(environment_.steps);
    return {};
}

Result<> ExpertResidency::publish_in_memory(const residency::PinnedSpans& pinned) {
    const std::uint64_t bytes = source_.size() * sizeof(kernels::ExpertAddresses);
    HR_TRY(const gpu::PinnedBuffer image, gpu::PinnedBuffer::create(driver_, bytes));
    HR_TRY(const gpu::Event copied, gpu::make_event(driver_));
    auto* entries = image.as<kernels::ExpertAddresses>();
    for (Block block = 0; block < source_.size(); ++block) {
        const Source& source = source_[block];
        std::array<const std::uint8_t*, 3> at{};
        for (std::size_t m = 0; m < 3; ++m) at[m] = reinterpret_cast<const std::uint8_t*>(pinned.on_device(source.from[m], source.bytes[m]));
        const bool all = at[0] != nullptr && at[1] != nullptr && at[2] != nullptr;
        entries[block] = all ? kernels::ExpertAddresses{at[0], at[1], at[2]} : kernels::ExpertAddresses{};
    }
    {
        const residency::StepGate::Change change(environment_.gate);
        HR_CHECK(kernels::copy_words({environment_.kernels, environment_.steps}, table_.address() + bytes, image.on_device(), bytes));
        if (!driver_.record_event(copied.get(), environment_.steps)) return driver_.synchronize_stream(environment_.steps);
    }
    return residency::await_event(driver_, copied.get());
}

void ExpertResidency::renew_snapshot() {
    auto here = std::make_shared<Here>();
    here->experts = published_;
    here->all = true;
    for (std::size_t layer = 0; layer + 1 < first_block_.size(); ++layer) {
        const auto begin = published_.begin() + static_cast<std::ptrdiff_t>(first_block_[layer]);
        const auto end = published_.begin() + static_cast<std::ptrdiff_t>(first_block_[layer + 1]);
        here->complete.push_back(std::find(begin, end, 0) == end ? 1 : 0);
        here->all = here->all && here->complete.back() != 0;
    }
    here_ = std::move(here);
}

Result<> ExpertResidency::record_fence() {
    if (auto recorded = driver_.record_event(fence_.get(), environment_.steps); recorded) return {};
    return driver_.synchronize_stream(environment_.steps);
}

Result<> ExpertResidency::copy_block(Block block, gpu::DevicePointer to, std::size_t stream) {
    const Source& source = source_[block];
    for (std::size_t m = 0; m < 3; ++m) {
        HR_CHECK(copier_.copy(to, source.from[m], source.bytes[m], stream));
        to += source.bytes[m];
    }
    return {};
}

std::vector<std::span<const std::byte>> ExpertResidency::spans_to_pin() const {
    std::vector<std::span<const std::byte>> spans;
    for (Block block = 0; block < source_.size(); ++block) {
        if (environment_.pool == nullptr && published_[block] != 0) continue;
        for (std::size_t m = 0; m < 3; ++m) spans.push_back(matrix(block, m));
    }
    return spans;
}

void ExpertResidency::count() {
    mapped_.store(store_->mapped_bytes(), std::memory_order_relaxed);
    resident_.store(std::ranges::count(published_, 1), std::memory_order_relaxed);
    if (environment_.changed) environment_.changed();
}

}  // namespace headroom::model
