#pragma once

// Copies of whole rows to shared memory, several under way at once, that a warp starts for itself or for its part of the block (sync_part). All threads of the
// part wait for them. On NVIDIA's generation 9.0 and later the copy engine carries them out, and a lane starts a row; before, the warp copies
// piece by piece (kernels/copies.h).

#include "kernels/code_tiles.h"
#include "kernels/copies.h"

#if defined(HR_CODE_TILES)

namespace headroom::device {

inline constexpr int kMostCopies = 4;  // under way at once

#if defined(HR_CUDA) && __CUDA_ARCH__ >= 900

struct Arrival {
    alignas(8) std::uint64_t state;
};

// By one thread; the block's barrier comes behind.
HR_DEVICE void prepare_arrival(Arrival* arrival) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(arrival)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
// For memory that a step reads once. It would push everything else out of the second-level cache, the code of the next kernels too: so it is the first to
// leave it.
HR_DEVICE std::uint64_t read_once() {
    std::uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}
// Lane l, below `rows`, says from where row l comes and where it goes. bytes: of a row, a multiple of 16, as are the addresses.
HR_DEVICE void start_rows(void* to, const void* from, int rows, int bytes, Arrival* arrival) {
    if (lane() == 0) asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(arrival)), "r"(rows * bytes) : "memory");
    const std::uint64_t policy = read_once();
    sync_warp();
    if (lane() < rows) {
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
                     "l"(from), "r"(bytes), "r"(shared_address(arrival)), "l"(policy)
                     : "memory");
    }
}
HR_DEVICE void start_no_rows() {}
// turn: how often this arrival has been waited for before, modulo 2.
HR_DEVICE void await_rows(Arrival* arrival, int turn, int, int) {
    asm volatile(
        "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @!done bra again; }" ::"r"(shared_address(arrival)), "r"(turn)
        : "memory");
}

#else

struct Arrival {};

HR_DEVICE void prepare_arrival(Arrival*) {}
HR_DEVICE void start_rows(void* to, const void* from, int rows, int bytes, Arrival*) {
    const auto both = [](const void* address, int row) {
        const auto bits = reinterpret_cast<std::uintptr_t>(address);
        const auto low = static_cast<std::uint32_t>(shuffle(static_cast<int>(bits), row));
        const auto high = static_cast<std::uint32_t>(shuffle(static_cast<int>(bits >> 32), row));
        return static_cast<std::uintptr_t>(high) << 32 | low;
    };
    for (int row = 0; row < rows; ++row) {
        auto* into = reinterpret_cast<unsigned char*>(both(to, row));
        const auto* source = reinterpret_cast<const unsigned char*>(both(from, row));
        for (int i = 16 * lane(); i < bytes; i += 16 * kWarp) start_copy(into + i, source + i, true);
    }
    close_copies();
}
// Instead of start_rows where there is nothing to be copied any more.
HR_DEVICE void start_no_rows() { close_copies(); }
// open: how many later start_rows, or start_no_rows, there were; below kMostCopies.
HR_DEVICE void await_rows(Arrival*, int, int open, int count) {
    if (open == 0) wait_for_copies<0>();
    else if (open == 1) wait_for_copies<1>();
    else if (open == 2) wait_for_copies<2>();
    else wait_for_copies<3>();
    if (count == kWarp) sync_warp();
    else sync_part(warp() / (count / kWarp), count);
}

#endif

}  // namespace headroom::device

#endif
