#pragma once

// The differences between CUDA and HIP, and nothing else: kernels are written against these names. No header of either is needed for HIP
// (the objects are built without ROCm); CUDA's come with nvcc.
//
// A "warp" here is 32 lanes on every device: half a wavefront where the hardware's has 64 (gfx9). Warp functions take the lanes of one
// warp, all of them active; nothing may rely on two warps being in step.

#include <cstdint>

#if defined(HR_EMULATED)
#include "tests/kernels/emulated_device.h"  // the tests' third backend: plain C++
#else

#if defined(__HIP__)
#define HR_HIP 1
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define HR_UNIFORM
#else
#define HR_CUDA 1
#include <cuda_fp16.h>
#define HR_UNIFORM __grid_constant__
#endif

#define HR_DEVICE __device__ __forceinline__
#if defined(HR_HIP)
#undef HR_DEVICE
#define HR_DEVICE __device__ inline __attribute__((always_inline))
#endif

// Before a loop of constant length whose counter indexes registers.
#define HR_UNROLL _Pragma("unroll")

// HR_KERNEL(name, Arguments, threads) { … a.count … }: one kernel of HR_KERNELS, launched with at most `threads` threads a block.
// HR_KERNEL_OF(…, blocks): registers are limited so that a multiprocessor can hold so many blocks.
//
// On NVIDIA's cards from 9.0 on a kernel's blocks start while the kernel before on the stream is still at work (programmatic dependent
// launch), and wait before their first statement until that one has ended and everything it wrote is there. HR_EARLY_KERNEL leaves the
// waiting to the kernel: before wait_for_previous() it may read weights, and nothing that any kernel writes. HR_ORDERED_KERNEL also leaves it
// to the kernel when the next one may start: where that is after wait_for_previous(), the next one may read what was written before this one.
// HR_CLUSTER_KERNEL is an early kernel, two blocks to a multiprocessor, whose neighbouring blocks along x, `cluster` of them, reach each other's shared memory (kernels/clusters.h).
// HR_THREADS(cuda, hip): a number of threads that differs.
#if defined(HR_HIP)
#define HR_THREADS(cuda, hip) hip
#define HR_KERNEL_OF(name, Arguments, threads, blocks) HR_KERNEL(name, Arguments, threads)
#define HR_EARLY_KERNEL(name, Arguments, threads) HR_KERNEL(name, Arguments, threads)
#define HR_EARLY_KERNEL_OF(name, Arguments, threads, blocks) HR_KERNEL(name, Arguments, threads)
#define HR_ORDERED_KERNEL(name, Arguments, threads) HR_KERNEL(name, Arguments, threads)
// The arguments are read where the driver put them: a parameter by value would be copied to the thread's own memory wherever code indexes
// or points into it.
#define HR_KERNEL(name, Arguments, threads)                                                                                            \
    static HR_DEVICE void body_of_##name(const headroom::kernels::Arguments& a);                                                       \
    extern "C" __global__ __attribute__((amdgpu_flat_work_group_size(1, threads))) void headroom_##name(const headroom::kernels::Arguments) { \
        body_of_##name(*(const headroom::kernels::Arguments*)__builtin_amdgcn_kernarg_segment_ptr());                                  \
    }                                                                                                                                  \
    static HR_DEVICE void body_of_##name(const headroom::kernels::Arguments& a)
#else
#define HR_THREADS(cuda, hip) cuda
#define HR_KERNEL(name, Arguments, threads) HR_KERNEL_OF(name, Arguments, threads, 1)
#define HR_KERNEL_OF(name, Arguments, threads, blocks) \
    HR_ENTRY_OF(name, Arguments, __launch_bounds__(threads, blocks), headroom::device::let_next_start(), headroom::device::wait_for_previous())
#define HR_EARLY_KERNEL(name, Arguments, threads) HR_EARLY_KERNEL_OF(name, Arguments, threads, 1)
#define HR_EARLY_KERNEL_OF(name, Arguments, threads, blocks) \
    HR_ENTRY_OF(name, Arguments, __launch_bounds__(threads, blocks), headroom::device::let_next_start(), (void)0)
#define HR_CLUSTER_KERNEL(name, Arguments, threads, cluster) \
    HR_ENTRY_OF(name, Arguments, __cluster_dims__(cluster, 1, 1) __launch_bounds__(threads, 2), headroom::device::let_next_start(), (void)0)
#define HR_ORDERED_KERNEL(name, Arguments, threads) HR_ENTRY_OF(name, Arguments, __launch_bounds__(threads, 1), (void)0, (void)0)
#define HR_ENTRY_OF(name, Arguments, bounds, next, before)                                                       \
    static HR_DEVICE void body_of_##name(const headroom::kernels::Arguments& a);                                 \
    extern "C" __global__ void bounds headroom_##name(const __grid_constant__ headroom::kernels::Arguments a) { \
        next;                                                                                                    \
        before;                                                                                                  \
        body_of_##name(a);                                                                                       \
    }                                                                                                            \
    static HR_DEVICE void body_of_##name(const headroom::kernels::Arguments& a)
#endif

namespace headroom::device {

#if defined(HR_HIP)

HR_DEVICE int thread() { return static_cast<int>(__builtin_amdgcn_workitem_id_x()); }
HR_DEVICE int block_x() { return static_cast<int>(__builtin_amdgcn_workgroup_id_x()); }
HR_DEVICE int block_y() { return static_cast<int>(__builtin_amdgcn_workgroup_id_y()); }
HR_DEVICE int block_z() { return static_cast<int>(__builtin_amdgcn_workgroup_id_z()); }
HR_DEVICE int threads() { return static_cast<int>(__builtin_amdgcn_workgroup_size_x()); }
HR_DEVICE int grid_x() { return static_cast<int>(__builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x()); }
HR_DEVICE void sync() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
// The lane of the hardware's wavefront: 0 to 31 or to 63.
HR_DEVICE int wave_lane() { return static_cast<int>(__builtin_amdgcn_mbcnt_hi(~0U, __builtin_amdgcn_mbcnt_lo(~0U, 0U))); }
// What the lanes of the warp wrote before is there for all of them behind it.
HR_DEVICE void sync_warp() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
HR_DEVICE int shuffle(int value, int lane) {
    return __builtin_amdgcn_ds_bpermute(((wave_lane() & ~31) | lane) << 2, value);
}
HR_DEVICE float shuffle(float value, int lane) { return __builtin_bit_cast(float, shuffle(__builtin_bit_cast(int, value), lane)); }
HR_DEVICE int shuffle_xor(int value, int mask) { return __builtin_amdgcn_ds_bpermute((wave_lane() ^ mask) << 2, value); }
HR_DEVICE float shuffle_xor(float value, int mask) { return __builtin_bit_cast(float, shuffle_xor(__builtin_bit_cast(int, value), mask)); }
HR_DEVICE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
HR_DEVICE float rint(float x) { return __builtin_rintf(x); }
HR_DEVICE float sqrt(float x) { return __builtin_sqrtf(x); }
HR_DEVICE float half_to_float(std::uint16_t half) { return static_cast<float>(__builtin_bit_cast(_Float16, half)); }
HR_DEVICE std::uint16_t float_to_half(float value) { return __builtin_bit_cast(std::uint16_t, static_cast<_Float16>(value)); }
HR_DEVICE float bits_to_float(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
HR_DEVICE std::uint32_t float_to_bits(float value) { return __builtin_bit_cast(std::uint32_t, value); }
// c + the sum of the four products of signed bytes.
HR_DEVICE int dot4(int a, int b, int c) {
#if defined(__gfx1100__) || defined(__gfx1101__) || defined(__gfx1102__) || defined(__gfx1150__) || defined(__gfx1151__) || \
    defined(__gfx1200__) || defined(__gfx1201__)
    return __builtin_amdgcn_sudot4(true, a, true, b, c, false);
#elif defined(__gfx906__) || defined(__gfx90a__) || defined(__gfx1030__)
    return __builtin_amdgcn_sdot4(a, b, c, false);
#else
    for (int i = 0; i < 32; i += 8) c += static_cast<std::int8_t>(a >> i) * static_cast<std::int8_t>(b >> i);
    return c;
#endif
}
// Atomics and fences of the whole device.
HR_DEVICE int atomic_add(std::int32_t* at, int value) { return __hip_atomic_fetch_add(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
// Words that other blocks write while this one runs, without any order among them.
HR_DEVICE std::uint32_t load_word(const std::uint32_t* at) { return __hip_atomic_load(at, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
HR_DEVICE void store_word(std::uint32_t* at, std::uint32_t value) { __hip_atomic_store(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
HR_DEVICE void fence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
HR_DEVICE void fence_system() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }

#else

// For what leaves the second-level cache first. createpolicy.fractional.L2::evict_first with 1.0 makes this, but in no uniform register.
inline constexpr std::uint64_t kFirstToLeave = 0x12f0000000000000;

HR_DEVICE int thread() { return static_cast<int>(threadIdx.x); }
HR_DEVICE int block_x() { return static_cast<int>(blockIdx.x); }
HR_DEVICE int block_y() { return static_cast<int>(blockIdx.y); }
HR_DEVICE int block_z() { return static_cast<int>(blockIdx.z); }
HR_DEVICE int threads() { return static_cast<int>(blockDim.x); }
HR_DEVICE int grid_x() { return static_cast<int>(gridDim.x); }
HR_DEVICE void sync() { __syncthreads(); }
HR_DEVICE void sync_warp() { __syncwarp(); }
// A barrier of `count` threads of the block (whole warps), the part-th such group, below 15. Not on HIP.
HR_DEVICE void sync_part(int part, int count) {
    __syncwarp();
    asm volatile("barrier.sync %0, %1;" ::"r"(part + 1), "r"(count) : "memory");
}
HR_DEVICE int shuffle(int value, int lane) { return __shfl_sync(~0U, value, lane); }
HR_DEVICE float shuffle(float value, int lane) { return __shfl_sync(~0U, value, lane); }
HR_DEVICE int shuffle_xor(int value, int mask) { return __shfl_xor_sync(~0U, value, mask); }
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
// The largest and the smallest of the lanes' values, in every lane.
HR_DEVICE unsigned largest_32(unsigned value) { return __reduce_max_sync(~0U, value); }
HR_DEVICE unsigned smallest_32(unsigned value) { return __reduce_min_sync(~0U, value); }
#endif
HR_DEVICE float shuffle_xor(float value, int mask) { return __shfl_xor_sync(~0U, value, mask); }
HR_DEVICE float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
HR_DEVICE float rint(float x) { return rintf(x); }
HR_DEVICE float sqrt(float x) { return __fsqrt_rn(x); }
HR_DEVICE float half_to_float(std::uint16_t half) { return __half2float(__ushort_as_half(half)); }
HR_DEVICE std::uint16_t float_to_half(float value) { return __half_as_ushort(__float2half_rn(value)); }
HR_DEVICE float bits_to_float(std::uint32_t bits) { return __uint_as_float(bits); }
HR_DEVICE std::uint32_t float_to_bits(float value) { return __float_as_uint(value); }
HR_DEVICE int dot4(int a, int b, int c) { return __dp4a(a, b, c); }
HR_DEVICE int atomic_add(std::int32_t* at, int value) { return atomicAdd(at, value); }
HR_DEVICE std::uint32_t load_word(const std::uint32_t* at) {
    std::uint32_t value;
    asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}
HR_DEVICE void store_word(std::uint32_t* at, std::uint32_t value) { asm volatile("st.relaxed.gpu.global.b32 [%0], %1;" ::"l"(at), "r"(value) : "memory"); }
HR_DEVICE void fence() { __threadfence(); }
HR_DEVICE void fence_system() { __threadfence_system(); }

#endif

// The block's dynamic shared memory (as much as the launch asked for), aligned to 16 bytes.
HR_DEVICE unsigned char* dynamic_shared() {
    extern __shared__ __attribute__((aligned(16))) unsigned char headroom_dynamic_shared[];
    return headroom_dynamic_shared;
}

}  // namespace headroom::device

#endif

namespace headroom::device {

inline constexpr int kWarp = 32;

// See HR_EARLY_KERNEL.
HR_DEVICE void let_next_start() {
#if defined(HR_CUDA) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}
HR_DEVICE void wait_for_previous() {
#if defined(HR_CUDA) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

HR_DEVICE int lane() { return thread() & (kWarp - 1); }
HR_DEVICE int warp() { return thread() / kWarp; }

}  // namespace headroom::device
