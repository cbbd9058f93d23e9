#pragma once

// The third backend of kernels/portable.h: device code as plain C++ of the processor. Each thread of a block is a fiber; blocks run one
// after another; barriers and warp functions are where fibers wait for each other (emulator.cpp). Only for tests.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__ static
#define __forceinline__ inline
#define HR_UNIFORM
#define HR_DEVICE inline
#define HR_UNROLL

// Makes the kernel known to the emulator when the program starts.
#define HR_KERNEL(name, Arguments, most_threads)                                                                                     \
    static void headroom_##name(const headroom::kernels::Arguments& a);                                                              \
    static const headroom::device::emulated::Registration headroom_registered_##name(                                                \
        #name, sizeof(headroom::kernels::Arguments), most_threads,                                                                   \
        [](const void* a) { headroom_##name(*static_cast<const headroom::kernels::Arguments*>(a)); });                               \
    static void headroom_##name(const headroom::kernels::Arguments& a)
#define HR_KERNEL_OF(name, Arguments, most_threads, blocks) HR_KERNEL(name, Arguments, most_threads)

namespace headroom::device {

using Site = std::source_location;  // of a barrier or warp function in the device code: all threads have to come to the same one

namespace emulated {

struct Registration {
    Registration(const char* name, std::size_t argument_bytes, int most_threads, void (*run)(const void* arguments));
};

struct Place {
    int thread, block_x, block_y, block_z, threads, grid_x;
};
extern Place place;  // of the fiber that runs

unsigned char* dynamic_shared();
void sync(Site at);
// Hands in this lane's bytes (at most kMostExchanged) and waits for the warp's other lanes; lane i's are at i * kMostExchanged of what comes
// back, until this lane's next but one exchange.
inline constexpr std::size_t kMostExchanged = 128;
const unsigned char* exchange(const void* mine, std::size_t bytes, Site at);

// The values of the warp's lanes.
template <class T>
struct Lanes {
    const unsigned char* data;
    T operator[](int lane) const {
        T value;
        std::memcpy(&value, data + (lane & 31) * kMostExchanged, sizeof value);
        return value;
    }
};
template <class T>
Lanes<T> lanes(const T& mine, Site at) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kMostExchanged);
    return {exchange(&mine, sizeof mine, at)};
}

}  // namespace emulated

inline int thread() { return emulated::place.thread; }
inline int block_x() { return emulated::place.block_x; }
inline int block_y() { return emulated::place.block_y; }
inline int block_z() { return emulated::place.block_z; }
inline int threads() { return emulated::place.threads; }
inline int grid_x() { return emulated::place.grid_x; }
inline unsigned char* dynamic_shared() { return emulated::dynamic_shared(); }

inline void sync(Site at = Site::current()) { emulated::sync(at); }
inline int shuffle(int value, int lane, Site at = Site::current()) { return emulated::lanes(value, at)[lane]; }
inline float shuffle(float value, int lane, Site at = Site::current()) { return emulated::lanes(value, at)[lane]; }
inline int shuffle_xor(int value, int mask, Site at = Site::current()) { return emulated::lanes(value, at)[(emulated::place.thread & 31) ^ mask]; }
inline float shuffle_xor(float value, int mask, Site at = Site::current()) { return emulated::lanes(value, at)[(emulated::place.thread & 31) ^ mask]; }

float fma(float a, float b, float c);
float rint(float x);
float sqrt(float x);
float half_to_float(std::uint16_t half);
std::uint16_t float_to_half(float value);
inline float bits_to_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline std::uint32_t float_to_bits(float value) { return std::bit_cast<std::uint32_t>(value); }
inline int dot4(int a, int b, int c) {
    for (int i = 0; i < 32; i += 8) c += static_cast<std::int8_t>(a >> i) * static_cast<std::int8_t>(b >> i);
    return c;
}

inline int atomic_add(std::int32_t* at, int value) {
    const int before = *at;
    *at = before + value;
    return before;
}
inline void fence() {}
inline void fence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

}  // namespace headroom::device
