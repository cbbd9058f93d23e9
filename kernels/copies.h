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
HR_DEVICE void close_copies() {}
template <int kOpen>
HR_DEVICE void wait_for_copies() {}

#endif

}  // namespace headroom::device
