#pragma once

// Blocks that run at the same time and write to each other's shared memory, where the device has them: NVIDIA's generation 9.0 and later. HR_CLUSTERS is
// defined there. A cluster is the neighbouring blocks along x of an HR_CLUSTER_KERNEL; a block's rank is its number in it.
//
// The emulator runs blocks one after another: what they write to each other is kept elsewhere, and the last of a cluster does what the others do on a device
// when everything has been written.

#include "kernels/portable.h"

#if defined(HR_EMULATED)
#define HR_CLUSTERS 1

namespace headroom::device {

namespace emulated {
inline unsigned char written[8][1 << 17];  // to the blocks of a cluster
template <class T>
T* written_to(T* mine, int rank) {
    return reinterpret_cast<T*>(written[rank] + (reinterpret_cast<unsigned char*>(mine) - dynamic_shared()));
}
}  // namespace emulated

inline void begin_cluster() {}
inline void await_begin() {}
inline void sync_cluster(Site at = Site::current()) { emulated::sync(at); }
template <class T>
T* of_block(T* mine, int rank) {
    return emulated::written_to(mine, rank);
}
template <class T>
T* written_here(T* mine, int rank) {
    return emulated::written_to(mine, rank);
}
inline int first_to_finish(int rank, int blocks) { return rank == blocks - 1 ? 0 : blocks; }

}  // namespace headroom::device

#elif defined(HR_CUDA) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define HR_CLUSTERS 1

namespace headroom::device {

// Every thread of a cluster's blocks comes to each of these once. Behind await_begin the other blocks are there to be written to: they have begun.
HR_DEVICE void begin_cluster() { asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory"); }
HR_DEVICE void await_begin() { asm volatile("barrier.cluster.wait;" ::: "memory"); }
// Behind it a block sees what all of them have written; after that none writes to another.
HR_DEVICE void sync_cluster() {
    asm volatile("barrier.cluster.arrive;" ::: "memory");
    asm volatile("barrier.cluster.wait;" ::: "memory");
}
// Where the block of that rank has what this one has at `mine`, in shared memory: to be written.
template <class T>
HR_DEVICE T* of_block(T* mine, int rank) {
    std::uint64_t there;
    asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(mine), "r"(rank));
    return reinterpret_cast<T*>(there);
}
// What has been written to the block of that rank, which is this one: to be read.
template <class T>
HR_DEVICE T* written_here(T* mine, int) {
    return mine;
}
// A block finishes the work of the ranks from this one to its own.
HR_DEVICE int first_to_finish(int rank, int) { return rank; }

}  // namespace headroom::device

#endif
