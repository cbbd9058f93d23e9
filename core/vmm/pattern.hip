// The two kernels of the pattern test for AMD cards (pattern.ptx.h has NVIDIA's). Compiled without any header: clang's builtins are all
// that is needed.
#define KERNEL extern "C" __attribute__((global, visibility("protected"), amdgpu_flat_work_group_size(1, 256)))

using u32 = unsigned int;
using u64 = unsigned long long;

static __attribute__((device)) inline u64 first() {
    return static_cast<u64>(__builtin_amdgcn_workgroup_id_x()) * 256 + __builtin_amdgcn_workitem_id_x();
}

// Launched with blocks of 256 threads; grid_size counts threads.
KERNEL void headroom_pattern_fill(u32* words, u64 count, u32 seed) {
    for (u64 i = first(); i < count; i += __builtin_amdgcn_grid_size_x()) words[i] = static_cast<u32>(i) * 2654435761u + seed;
}

KERNEL void headroom_pattern_check(const u32* words, u64 count, u32 seed, u32* wrong) {
    for (u64 i = first(); i < count; i += __builtin_amdgcn_grid_size_x()) {
        if (words[i] != static_cast<u32>(i) * 2654435761u + seed) __atomic_fetch_add(wrong, 1u, __ATOMIC_RELAXED);
    }
}
