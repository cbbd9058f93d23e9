#pragma once

// Copies to shared memory that go on while a block computes, where the device has them (NVIDIA's generation 8.0 and later); elsewhere they are
// done at once. A thread closes groups of its copies and waits for the older groups; a barrier then makes them visible to the block.

#include "kernels/portable.h"

namespace headroom::device {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800

HR_DEVICE std::uint32_t shared_address(const void* at) { return static_cast<std::uint32_t>(__cvta_generic_to_shared(at)); }

// Starts to copy 16 bytes to shared memory; zeros where `there` is false (the source is not read then).
HR_DEVICE void start_copy(void* shared, const void* global, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global), "r"(there ? 16 : 0) : "memory");
}
// The same for the pieces first … last - 1 of kCount, some bytes apart, of what is read once: the second-level cache keeps what else it has.
template <int kCount, int kSharedStep, int kGlobalStep>
HR_DEVICE void start_copies(void* shared, const void* global, int first, int last) {
    const std::uint32_t to = shared_address(shared);
    const char* from = static_cast<const char*>(global);
    const auto piece = [&](int i) {
        asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(to + i * kSharedStep), "l"(from + i * kGlobalStep), "l"(kFirstToLeave)
                     : "memory");
    };
    HR_UNROLL
    for (int i = 0; i < kCount; ++i) {
        if (i >= first && i < last) piece(i);
    }
}
HR_DEVICE void close_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most kOpen of the groups that this thread has closed are not done.
template <int kOpen>
HR_DEVICE void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kOpen) : "memory");
}

#else

HR_DEVICE void start_copy(void* shared, const void* global, bool there) {
    struct alignas(16) Sixteen {
        std::uint32_t x[4];
    };
    *static_cast<Sixteen*>(shared) = there ? *static_cast<const Sixteen*>(global) : Sixteen{};
}
template <int kCount, int kSharedStep, int kGlobalStep>
HR_DEVICE void start_copies(void* shared, const void* global, int first, int last) {
    for (int i = first; i < last; ++i) start_copy(static_cast<char*>(shared) + i * kSharedStep, static_cast<const char*>(global) + i * kGlobalStep, true);
}
HR_DEVICE void close_copies() {}
template <int kOpen>
HR_DEVICE void wait_for_copies() {}

#endif

}  // namespace headroom::device
