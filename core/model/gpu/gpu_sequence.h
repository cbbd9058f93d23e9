#pragma once

// A conversation of a GpuRunner: its pages on the devices, and its cache for the layers on the processor. For the runner's own files.

#include <algorithm>
#include <mutex>

#include "core/model/gpu/gpu_runner.h"

namespace headroom::model {

inline std::size_t pages_for(std::int64_t positions) noexcept {
    return static_cast<std::size_t>((positions + cpu::kPagePositions - 1) / cpu::kPagePositions);
}

class GpuRunner::GpuSequence final : public Sequence {
public:
    explicit GpuSequence(GpuRunner& of) : runner(of) {
        const std::scoped_lock lock(runner.sequences_mutex_);
        KvShape shape = runner.transformer_.kv_shape();
        shape.layers = runner.cpu_layers_;
        cache = KvCache(shape);
        runner.sequences_.insert(this);
    }
    ~GpuSequence() override {
        const std::scoped_lock lock(runner.sequences_mutex_);
        runner.pages_->give_back(pages, 0);
        runner.sequences_.erase(this);
    }

    [[nodiscard]] std::int64_t length() const noexcept override { return positions; }
    void truncate(std::int64_t kept) noexcept override {
        const std::scoped_lock lock(runner.sequences_mutex_);
        positions = std::min(positions, kept);
        runner.pages_->give_back(pages, pages_for(positions));
        cache.truncate(positions);
    }
    [[nodiscard]] std::uint64_t allocated_bytes() const noexcept override {
        const std::scoped_lock lock(runner.sequences_mutex_);
        KvShape shape = runner.transformer_.kv_shape();
        shape.layers -= runner.cpu_layers_;
        return pages.size() * shape.page_bytes() + cache.allocated_bytes();
    }
    // Room on the device for `count` more positions, from pages that are backed already.
    [[nodiscard]] Result<> reserve(std::int64_t count) {
        if (positions + count > runner.context_) {
            return fail(ErrorKind::context_full, "The context holds {} tokens, {} are needed", runner.context_, positions + count);
        }
        const std::scoped_lock lock(runner.sequences_mutex_);
        if (runner.cpu_layers_ == static_cast<std::int64_t>(runner.transformer_.layers.size())) return {};
        return runner.pages_->take(pages, pages_for(positions + count));
    }

    GpuRunner& runner;
    std::int64_t positions = 0;
    std::vector<std::int32_t> pages;
    KvCache cache;  // of the layers on the processor
};

}  // namespace headroom::model
