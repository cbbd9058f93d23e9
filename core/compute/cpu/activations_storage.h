#pragma once

// The memory behind Activations: for the operators of this folder.

#include <cstdint>
#include <memory>
#include <new>

#include "core/compute/cpu/activations.h"

namespace headroom::cpu {

inline constexpr std::size_t kCacheLine = 64;

// Memory for trivial elements that begins on a cache line, grows and is never initialised.
template <class T>
class AlignedArray {
public:
    // Keeps nothing of what was there when it grows.
    void require(std::size_t count) {
        if (count <= capacity_) return;
        data_.reset();
        capacity_ = 0;
        data_.reset(static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t{kCacheLine})));
        capacity_ = count;
    }
    [[nodiscard]] T* data() const noexcept { return data_.get(); }

private:
    struct Free {
        void operator()(T* data) const noexcept { ::operator delete(data, std::align_val_t{kCacheLine}); }
    };
    std::unique_ptr<T, Free> data_;
    std::size_t capacity_ = 0;
};

// 256 activations with one scale: x[k] is about scale * q[k].
struct alignas(kCacheLine) Group256 {
    std::int8_t q[256];
    std::int16_t sums16[16];  // of 16 q each
    std::int16_t sums32[8];   // of 32 q each
    float scale;
    float unused[3];
};
// Eight neighbouring groups of 32 activations, each with its scale. Where the row ends inside, the rest is zero.
struct alignas(kCacheLine) Groups32 {
    std::int8_t q[256];
    std::int32_t sums[8];
    float scales[8];
};
static_assert(sizeof(Group256) == 320 && sizeof(Groups32) == 320);

// Four neighbouring groups of one token, side by side in sixteenths, for products of single tokens (rows-inl.h). Where the row ends inside,
// the rest is zero.
struct alignas(kCacheLine) Quad256 {
    std::int8_t q[16][4][16];     // [k / 16][group][k % 16]
    std::int16_t sums32[4][8];    // [group][k / 32]
    std::int16_t sums16[2][4][8]; // [k / 128][group][k / 16 % 8]
    float scales[4];
};
// The same for four neighbouring groups of 32.
struct alignas(kCacheLine) Quad32 {
    std::int8_t q[2][4][16];
    std::int32_t sums[4];
    float scales[4];
};
// The most tokens of a batch for which quads are made: the experts of one token need several, larger batches use panels.
inline constexpr std::int64_t kQuadTokens = 16;

struct Activations::Storage {
    const float* x = nullptr;
    std::int64_t tokens = 0;
    std::int64_t cols = 0;
    std::int64_t stride = 0;
    unsigned forms = 0;                // those that are made
    AlignedArray<Group256> groups_256; // [cols / 256, tokens]: neighbours in a panel's product are neighbours in memory
    AlignedArray<Groups32> groups_32;  // [ceil(cols / 256), tokens]
    AlignedArray<Quad256> quads_256;   // [ceil(cols / 1024), tokens], for at most kQuadTokens tokens
    AlignedArray<Quad32> quads_32;     // [ceil(cols / 128), tokens]
};

}  // namespace headroom::cpu
