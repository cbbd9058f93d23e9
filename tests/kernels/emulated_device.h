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
#define HR_THREADS(cuda, hip) cuda
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
#define HR_EARLY_KERNEL(name, Arguments, most_threads) HR_KERNEL(name, Arguments, most_threads)
#define HR_EARLY_KERNEL_OF(name, Arguments, most_threads, blocks) HR_KERNEL(name, Arguments, most_threads)
#define HR_CLUSTER_KERNEL(name, Arguments, most_threads, cluster) HR_KERNEL(name, Arguments, most_threads)
#define HR_ORDERED_KERNEL(name, Arguments, most_threads) HR_KERNEL(name, Arguments, most_threads)

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
void sync_part(int part, int count, Site at);
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
inline void sync_warp(Site at = Site::current()) { (void)emulated::lanes(0, at); }
inline void sync_part(int part, int count, Site at = Site::current()) { emulated::sync_part(part, count, at); }
inline int shuffle(int value, int lane, Site at = Site::current()) { return emulated::lanes(value, at)[lane]; }
inline float shuffle(float value, int lane, Site at = Site::current()) { return emulated::lanes(value, at)[lane]; }
inline int shuffle_xor(int value, int mask, Site at = Site::current()) { return emulated::lanes(value, at)[(emulated::place.thread & 31) ^ mask]; }
inline float shuffle_xor(float value, int mask, Site at = Site::current()) { return emulated::lanes(value, at)[(emulated::place.thread & 31) ^ mask]; }

inline unsigned largest_32(unsigned value, Site at = Site::current()) {
    const auto values = emulated::lanes(value, at);
    for (int i = 0; i < 32; ++i) value = values[i] > value ? values[i] : value;
    return value;
}
inline unsigned smallest_32(unsigned value, Site at = Site::current()) { return ~largest_32(~value, at); }

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
inline std::uint32_t load_word(const std::uint32_t* at) { return *at; }
inline void store_word(std::uint32_t* at, std::uint32_t value) { *at = value; }
inline void fence() {}
inline void fence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

// kernels/half_tiles.h
inline void load_tiles(const void* row, std::uint32_t (&tiles)[4], Site at = Site::current()) {
    const auto rows = emulated::lanes(row, at);
    const int lane = emulated::place.thread & 31;
    for (int i = 0; i < 4; ++i) std::memcpy(&tiles[i], static_cast<const unsigned char*>(rows[8 * i + lane / 4]) + lane % 4 * 4, 4);
}
inline void load_tiles_turned(const void* row, std::uint32_t (&tiles)[4], Site at = Site::current()) {
    const auto rows = emulated::lanes(row, at);
    const int lane = emulated::place.thread & 31;
    for (int i = 0; i < 4; ++i) {
        std::uint16_t two[2];
        for (int j = 0; j < 2; ++j) std::memcpy(&two[j], static_cast<const unsigned char*>(rows[8 * i + lane % 4 * 2 + j]) + lane / 4 * 2, 2);
        tiles[i] = two[0] | static_cast<std::uint32_t>(two[1]) << 16;
    }
}
inline void multiply_add(const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1, float (&c)[4], Site at = Site::current()) {
    struct Parts {
        std::uint32_t a[4], b[2];
    };
    const auto parts = emulated::lanes(Parts{{a[0], a[1], a[2], a[3]}, {b0, b1}}, at);
    const int lane = emulated::place.thread & 31;
    const auto half_of = [](std::uint32_t two, int i) { return half_to_float(static_cast<std::uint16_t>(i == 0 ? two : two >> 16)); };
    for (int i = 0; i < 4; ++i) {
        const int row = lane / 4, column = lane % 4 * 2 + i % 2;
        for (int k = 0; k < 16; ++k) {
            const float left = half_of(parts[row * 4 + k % 8 / 2].a[i / 2 + k / 8 * 2], k % 2);
            const float right = half_of(parts[column * 4 + k % 8 / 2].b[k / 8], k % 2);
            c[i] += left * right;
        }
    }
}
inline std::uint32_t pack_halves(float low, float high) { return float_to_half(low) | static_cast<std::uint32_t>(float_to_half(high)) << 16; }
inline std::uint32_t codes_to_halves(std::uint32_t codes, int pair, std::uint32_t scales) {
    const auto product = [&](int i) {
        return static_cast<float>(static_cast<std::int8_t>(codes >> (16 * pair + 8 * i))) * half_to_float(static_cast<std::uint16_t>(scales >> (16 * i)));
    };
    return pack_halves(product(0), product(1));
}
float fast_exp2(float x);

}  // namespace headroom::device
