#pragma once

// A conversation of a GpuRunner: its pages on the devices, and its caches for the layers on the processor. For the runner's own files.

#include <algorithm>
#include <atomic>
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
        for (const Part& part : runner.parts_) {
            shape.layers = part.on_processor;
            caches.emplace_back(shape);
        }
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
        for (KvCache& cache : caches) cache.truncate(positions);
    }
    [[nodiscard]] std::uint64_t allocated_bytes() const noexcept override {
        const std::scoped_lock lock(runner.sequences_mutex_);
        KvShape shape = runner.transformer_.kv_shape();
        std::uint64_t bytes = 0;
        for (std::size_t i = 0; i < caches.size(); ++i) {
            shape.layers = runner.parts_[i].size() - runner.parts_[i].on_processor;
            bytes += pages.size() * shape.page_bytes() + caches[i].allocated_bytes();
        }
        return bytes;
    }
    // Room on the devices for `count` more positions, from pages that are backed already.
    [[nodiscard]] Result<> reserve(std::int64_t count) {
        if (positions + count > runner.context_) {
            return fail(ErrorKind::context_full, "The context holds {} tokens, {} are needed", runner.context_, positions + count);
        }
        const std::scoped_lock lock(runner.sequences_mutex_);
        if (!runner.some_on_devices()) return {};
        return runner.pages_->take(pages, pages_for(positions + count));
    }

    // Pages that it lacks for `count` more positions. Any thread: a change may be at the list.
    [[nodiscard]] std::size_t lacking(std::int64_t count) const {
        const std::scoped_lock lock(runner.sequences_mutex_);
        const std::size_t wanted = pages_for(positions + count);
        return wanted - std::min(wanted, pages.size());
    }

    GpuRunner& runner;
    std::int64_t positions = 0;
    std::atomic<std::size_t> wants_soon{0};  // pages that it has not and that its next steps are going to need
    std::vector<std::int32_t> pages;
    std::vector<KvCache> caches;  // of each part's layers on the processor
};

class GpuRunner::Alone {
public:
    explicit Alone(GpuRunner& runner) : runner_(runner) {
        if (runner.kept_out_) return;
        turn_.emplace(runner.alone_);
        runner.kept_out_ = true;
    }
    ~Alone() {
        if (turn_) runner_.kept_out_ = false;
    }
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;

private:
    GpuRunner& runner_;
    std::optional<residency::StepGate::Change> turn_;
};

class GpuRunner::Quiet {
public:
    Quiet(GpuRunner& runner, const Part& part) {
        if (!part.driver->unmaps_beside_work()) alone_.emplace(runner);
    }

private:
    std::optional<Alone> alone_;
};

}  // namespace headroom::model
