#pragma once

// Copies from a mapped file to a device beside the work of others: on streams of its own, at the speed of the bus where the file's pages are
// registered, else staged.

#include <array>
#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "core/base/error.h"
#include "core/gpu/resources.h"
#include "core/residency/pinned_spans.h"

namespace headroom::residency {

// One thread at a time with the device current, but for pin(), which another may be in.
class Copier {
public:
    // One copy is prepared while another runs: a single stream would leave the bus idle in between.
    static constexpr std::size_t kStreams = 2;
    // When copies have arrived. Made by mark().
    using Mark = std::array<gpu::Event, kStreams>;

    explicit Copier(gpu::Driver& driver) noexcept : driver_(driver), pinned_(driver) {}
    [[nodiscard]] Result<> start();  // before anything else
    ~Copier();

    // Registers what will be copied (PinnedSpans::register_all).
    void pin(std::span<const std::span<const std::byte>> spans, const std::stop_token& stop) { pinned_.register_all(spans, stop); }

    [[nodiscard]] const PinnedSpans& pinned() const noexcept { return pinned_; }

    // Enqueued by mark() at the latest.
    [[nodiscard]] Result<> copy(gpu::DevicePointer to, const void* from, std::uint64_t bytes, std::size_t stream);
    [[nodiscard]] Result<Mark> mark();             // behind all copies so far
    [[nodiscard]] Result<> await(const Mark& mark);
    // After a failure: waits for whatever is on its way, and forgets what was not enqueued yet.
    [[nodiscard]] Result<> await_all();
    [[nodiscard]] gpu::StreamHandle stream(std::size_t i) const noexcept { return streams_[i].get(); }

private:
    struct Staging {
        gpu::PinnedBuffer memory;
        gpu::Event copied;
        bool used = false;
    };
    [[nodiscard]] Result<> flush(std::size_t stream);
    [[nodiscard]] Result<> copy_staged(gpu::DevicePointer to, const std::byte* from, std::uint64_t bytes, std::size_t stream);

    gpu::Driver& driver_;
    std::array<gpu::Stream, kStreams> streams_;
    std::array<std::vector<gpu::Driver::HostPiece>, kStreams> pending_;
    std::array<Staging, 4> staging_;
    std::size_t next_ = 0;
    PinnedSpans pinned_;
};

// Waits without the driver's own waiting, which would take a core from those who compute.
[[nodiscard]] Result<> await_event(gpu::Driver& driver, gpu::EventHandle event);

}  // namespace headroom::residency
