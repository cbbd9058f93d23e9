// What of a part is on its device: how it changes.

#include <algorithm>
#include <chrono>

#include <spdlog/spdlog.h>

#include "core/model/gpu/part_runner.h"

namespace headroom::model {

namespace {

constexpr std::uint64_t kWorthPinning = 64 << 10;  // small tensors may be converted copies, outside the file

}  // namespace

using residency::ResizeReport;

void PartRunner::count() {
    std::uint64_t held = plain_bytes_;
    if (segments_) held += segments_->total_bytes();
    held_.store(held, std::memory_order_relaxed);
    if (changed_) changed_();
}

void PartRunner::list_hand_overs() {
    handed_over_.clear();
    for (auto i = static_cast<std::size_t>(begin_); i < weights_.layers.size(); ++i) {
        const auto* mixture = std::get_if<DeviceMixture>(&weights_.layers[i].feed_forward);
        if (mixture != nullptr) handed_over_.push_back({.mixture = mixture, .first_block = experts_->first_block(mixture->layer)});
    }
}

void PartRunner::set_begin(std::int64_t layer) {
    begin_ = layer;
    graphs_.clear();  // they begin elsewhere
    if (experts_) list_hand_overs();
}

void PartRunner::adapt(ResizeReport& report) {
    if (experts_ && segments_ && begin_ == 0) experts_->adapt(report);
}

std::uint64_t PartRunner::missing_bytes(std::int64_t layer) const {
    const auto i = static_cast<std::size_t>(layer);
    std::uint64_t bytes = kv_.layer_cost(i, kv_.backed(static_cast<std::size_t>(begin_)));
    if (!weights_.layers[i].memory.memory.backed()) bytes += weights_.layers[i].memory.memory.held_when_backed();
    if (layer == 0 && !weights_.embedding_memory.memory.backed()) bytes += weights_.embedding_memory.memory.held_when_backed();
    return bytes;
}

std::uint64_t PartRunner::held_bytes(std::int64_t layer) const {
    return weights_.layers[static_cast<std::size_t>(layer)].memory.memory.held_when_backed() + kv_.layer_held(static_cast<std::size_t>(layer)) +
           (layer == 0 && !embedding_stays() ? weights_.embedding_memory.memory.held_when_backed() : 0);
}

Result<> PartRunner::load_layer(std::int64_t number, ResizeReport& report) {
    const auto start = std::chrono::steady_clock::now();
    const Growing growing(*this);
    const auto layer = static_cast<std::size_t>(number);
    std::size_t stream = 0;
    const auto copy = [&](gpu::DevicePointer to, const void* from, std::uint64_t bytes) {
        report.bytes_copied += bytes;
        return copier_.copy(to, from, bytes, ++stream % residency::Copier::kStreams);
    };
    const auto load = [&]() -> Result<> {
        HR_CHECK(kv_.extend_layer(layer, kv_.backed(static_cast<std::size_t>(begin_))));
        HR_CHECK(weights_.layers[layer].memory.load(copy));
        if (layer == 0 && !weights_.embedding_memory.memory.backed()) HR_CHECK(weights_.embedding_memory.load(copy));
        HR_TRY(const auto mark, copier_.mark());
        return copier_.await(mark);
    };
    auto loaded = load();
    if (!loaded) (void)copier_.await_all();
    count();
    report.moving_ms += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return loaded;
}

Result<> PartRunner::extend_kv(std::int64_t pages) {
    auto extended = kv_.extend(static_cast<std::size_t>(begin_), pages);
    count();
    return extended;
}

void PartRunner::release(std::int64_t kv_pages, ResizeReport& report) {
    const auto start = std::chrono::steady_clock::now();
    std::optional<Error> error;
    const auto drop = [&](residency::Region& region) {
        if (auto done = region.drop(); !done && !error) error = std::move(done.error());
    };
    kv_.shrink(static_cast<std::size_t>(begin_), kv_pages, error);
    for (std::size_t i = 0; i < static_cast<std::size_t>(begin_); ++i) drop(weights_.layers[i].memory.memory);
    if (begin_ > 0 && !embedding_stays()) drop(weights_.embedding_memory.memory);
    if (auto trimmed = segments_->trim(); !trimmed && !error) error = std::move(trimmed.error());
    if (error && report.limited_by.empty()) report.limited_by = error->message;
    count();
    report.releasing_ms += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

std::uint64_t PartRunner::full_bytes() const {
    if (!segments_) return bytes();
    std::uint64_t full = plain_bytes_ + (experts_ ? experts_->full_bytes() : 0);
    full += weights_.embedding_memory.memory.held_when_backed() + weights_.output_memory.memory.held_when_backed();
    for (const DeviceLayer& layer : weights_.layers) full += layer.memory.memory.held_when_backed();
    return full + kv_.held_bytes() + kv_.cost(0, kv_.backed(static_cast<std::size_t>(begin_)));
}

Result<> PartRunner::read_page(std::int64_t layer, std::int32_t page, void* to) {
    const gpu::DevicePointer from = kv_.address(static_cast<std::size_t>(layer)) + static_cast<std::uint64_t>(page) * kv_.page_bytes();
    HR_CHECK(driver_.copy_to_host(to, from, kv_.page_bytes(), stream_.get()));
    return driver_.synchronize_stream(stream_.get());
}

Result<> PartRunner::write_page(std::int64_t layer, std::int32_t page, const void* from) {
    const gpu::DevicePointer to = kv_.address(static_cast<std::size_t>(layer)) + static_cast<std::uint64_t>(page) * kv_.page_bytes();
    HR_CHECK(driver_.copy_to_device(to, from, kv_.page_bytes(), stream_.get()));
    return driver_.synchronize_stream(stream_.get());
}

Result<> PartRunner::copy_page(std::int32_t from, std::int32_t to) {
    for (auto layer = static_cast<std::size_t>(begin_); layer < weights_.layers.size(); ++layer) {
        const gpu::DevicePointer at = kv_.address(layer);
        HR_CHECK(driver_.copy_on_device(at + static_cast<std::uint64_t>(to) * kv_.page_bytes(), at + static_cast<std::uint64_t>(from) * kv_.page_bytes(),
                                        kv_.page_bytes(), stream_.get()));
    }
    return driver_.synchronize_stream(stream_.get());
}

void PartRunner::start_pinning() {
    std::vector<std::span<const std::byte>> spans = experts_ ? experts_->spans_to_pin() : std::vector<std::span<const std::byte>>();
    for (const DeviceLayer& layer : weights_.layers) {
        for (const DevicePieces::Piece& piece : layer.memory.pieces) {
            if (segments_ && piece.bytes >= kWorthPinning) spans.emplace_back(static_cast<const std::byte*>(piece.from), piece.bytes);
        }
    }
    if (spans.empty()) return;
    pinning_ = std::jthread([this, all = std::move(spans)](const std::stop_token& stop) {
        if (!driver_.make_current(device_)) return;
        copier_.pin(all, stop);
        if (!experts_ || stop.stop_requested()) return;
        if (const auto published = experts_->publish_in_memory(copier_.pinned()); !published) {
            spdlog::info("Missing experts are computed by the processor alone: {}", published.error().message);
        }
    });
}

void PartRunner::settle() {
    const std::scoped_lock lock(settling_);
    if (pinning_.joinable()) pinning_.join();
}

}  // namespace headroom::model
