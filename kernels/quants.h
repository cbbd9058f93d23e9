#pragma once

// The quantized types as products take them apart. A type is a structure:
//
//   Raw        what one lane loads of a block
//   load       reads it: l is the lane's number in the group of 8 that share a superblock; 32-wide blocks belong to one lane
//   unpack     makes 32 codes of it: two runs of 16 neighbouring elements, four codes to a word
//   offset     where run c of lane l begins in the superblock (32-wide blocks: 16 c). Lanes 4 to 7 may take their runs in the other order,
//              so that 8 lanes read activations from different banks of shared memory
//   factors    d, and dmin or m above it, as halves
//
// A code's value is code - kBias. Rows of blocks are aligned to what their size allows: 2, 4, 8 or 16 bytes. Nothing is read beyond a block.

#include "core/compute/cpu/blocks.h"
#include "kernels/arithmetic.h"

namespace headroom::device {

struct alignas(16) Words4 {
    int w[4];
};
struct alignas(8) Words2 {
    int w[2];
};

// kOnce: global memory that a step reads once. It is the first to leave the second-level cache, which then keeps the code of the kernels that come next.
template <bool kOnce = false>
HR_DEVICE Words4 load_16(const void* at) {
#if defined(HR_CUDA) && __CUDA_ARCH__ >= 800
    if constexpr (kOnce) {
        Words4 x;
        asm("ld.global.L2::cache_hint.v4.s32 {%0, %1, %2, %3}, [%4], %5;" : "=r"(x.w[0]), "=r"(x.w[1]), "=r"(x.w[2]), "=r"(x.w[3]) : "l"(at), "l"(kFirstToLeave));
        return x;
    }
#endif
    return *static_cast<const Words4*>(at);
}
HR_DEVICE Words2 load_8(const void* at) { return *static_cast<const Words2*>(at); }
template <bool kOnce = false>
HR_DEVICE int load_4(const void* at) {
#if defined(HR_CUDA) && __CUDA_ARCH__ >= 800
    if constexpr (kOnce) {
        int x;
        asm("ld.global.L2::cache_hint.s32 %0, [%1], %2;" : "=r"(x) : "l"(at), "l"(kFirstToLeave));
        return x;
    }
#endif
    return *static_cast<const int*>(at);
}
HR_DEVICE int load_2(const void* at) { return *static_cast<const std::uint16_t*>(at); }

// (high : low) >> shift, the low word of it; shift below 32.
HR_DEVICE int funnel(int low, int high, int shift) {
#if defined(HR_CUDA)
    return static_cast<int>(__funnelshift_r(static_cast<unsigned>(low), static_cast<unsigned>(high), static_cast<unsigned>(shift)));
#else
    const std::uint64_t both = static_cast<std::uint64_t>(static_cast<std::uint32_t>(high)) << 32 | static_cast<std::uint32_t>(low);
    return static_cast<int>(both >> shift);
#endif
}

// N words from an address that is a multiple of 2.
template <bool kOnce = false, int N>
HR_DEVICE void load_words(const std::uint8_t* at, int (&out)[N]) {
    const auto odd = static_cast<int>(reinterpret_cast<std::uintptr_t>(at) & 2U);
    const std::uint8_t* aligned = at - odd;
    int words[N + 1];
    HR_UNROLL
    for (int i = 0; i < N; ++i) words[i] = load_4<kOnce>(aligned + 4 * i);
    words[N] = load_2(at + 4 * N - 2);
    HR_UNROLL
    for (int i = 0; i < N; ++i) out[i] = funnel(words[i], words[i + 1], odd * 8);
}

// The levels of IQ4 for the eight nibbles of a word: those of the low nibbles and those of the high ones.
HR_DEVICE void levels(int nibbles, int& low, int& high) {
    constexpr auto four = [](int first) {
        std::uint32_t packed = 0;
        for (int i = 0; i < 4; ++i) packed |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(cpu::kNonlinearLevels[first + i])) << (8 * i);
        return packed;
    };
    constexpr std::uint32_t table[4] = {four(0), four(4), four(8), four(12)};
    const auto bits = static_cast<std::uint32_t>(nibbles);
#if defined(HR_CUDA)
    // A selector of __byte_perm has four nibbles: eight levels at a time, then the half of the table by the nibble's top bit.
    const auto take = [&](std::uint32_t selector) {
        const std::uint32_t first = __byte_perm(table[0], table[1], selector & 0x7777U);
        const std::uint32_t second = __byte_perm(table[2], table[3], selector & 0x7777U);
        return __byte_perm(first, second, 0x3210U | ((selector & 0x8888U) >> 1));
    };
    const std::uint32_t even = take(bits & 0xffffU), odd = take(bits >> 16);
    low = static_cast<int>(__byte_perm(even, odd, 0x6420U));
    high = static_cast<int>(__byte_perm(even, odd, 0x7531U));
#elif defined(HR_HIP)
    const auto take = [&](std::uint32_t four_of_them) {
        const std::uint32_t selector = four_of_them & 0x07070707U;
        const std::uint32_t first = __builtin_amdgcn_perm(table[1], table[0], selector);
        const std::uint32_t second = __builtin_amdgcn_perm(table[3], table[2], selector);
        return static_cast<int>(__builtin_amdgcn_perm(second, first, 0x03020100U | ((four_of_them & 0x08080808U) >> 1)));
    };
    low = take(bits & 0x0f0f0f0fU);
    high = take((bits >> 4) & 0x0f0f0f0fU);
#else
    const auto take = [&](std::uint32_t four_of_them) {
        std::uint32_t out = 0;
        for (int i = 0; i < 32; i += 8) {
            const std::uint32_t n = (four_of_them >> i) & 15U;
            out |= ((table[n / 4] >> (8 * (n % 4))) & 255U) << i;
        }
        return static_cast<int>(out);
    };
    low = take(bits);
    high = take(bits >> 4);
#endif
}

HR_DEVICE float low_half(std::uint32_t halves) { return half_to_float(static_cast<std::uint16_t>(halves)); }
HR_DEVICE float high_half(std::uint32_t halves) { return half_to_float(static_cast<std::uint16_t>(halves >> 16)); }

// Four neighbouring bits of `bits`, from bit `first` on, as bit 4 of the bytes of a word.
HR_DEVICE int fifth_bits(int bits, int first) { return static_cast<int>((((static_cast<std::uint32_t>(bits) >> first) & 15U) * 0x00204081U) & 0x01010101U) << 4; }

// What a lane has of a superblock.
struct Share {
    int q[2][4];
    int scale[2];
    int minimum[2];  // types with minima
};

// ---- Types with 256-wide superblocks ----

// The scales and minima of Q4_K and Q5_K; head: the first 16 bytes of the block. Lane l has runs of sub-blocks j and j + 1 (l < 4: in this
// order), j = 2 (l / 2): lanes below 4 need the plain ones, the others the spread ones.
HR_DEVICE void scales_q4_k(const Words4& head, int l, Share& s) {
    const bool spread = l >= 4;
    // Both ways in one: a word, and the two upper bits of a second one where the scales are spread.
    const int low = spread ? 0x0f0f0f0f : 0x3f3f3f3f, high = spread ? 0x30303030 : 0;
    const int scales = ((spread ? head.w[3] : head.w[1]) & low) | ((head.w[1] >> 2) & high);
    const int minima = ((spread ? head.w[3] >> 4 : head.w[2]) & low) | ((head.w[2] >> 2) & high);
    const int first = 8 * ((l & 2) | (l >> 2)), second = first ^ 8;
    s.scale[0] = (scales >> first) & 63;
    s.scale[1] = (scales >> second) & 63;
    s.minimum[0] = (minima >> first) & 63;
    s.minimum[1] = (minima >> second) & 63;
}

struct WeightsQ4K {
    using Layout = cpu::Q4K;
    static constexpr int kElements = 256, kBytes = Layout::kBytes, kRun = 32, kBias = 0;
    static constexpr bool kMinima = true;
    struct Raw {
        Words4 head, low;
    };
    template <bool kOnce = false>
    static HR_DEVICE Raw load(const std::uint8_t* block, int l) { return {load_16<kOnce>(block), load_16<kOnce>(block + Layout::kLow + 16 * l)}; }
    static HR_DEVICE int offset(int l, int c) { return 64 * (l >> 1) + 16 * (l & 1) + 32 * ((l >> 2) ^ c); }
    static HR_DEVICE std::uint32_t factors(const Raw& raw) { return static_cast<std::uint32_t>(raw.head.w[0]); }
    static HR_DEVICE void unpack(const Raw& raw, int l, Share& s) {
        scales_q4_k(raw.head, l, s);
        const int first = l & 4, second = first ^ 4;
        HR_UNROLL
        for (int i = 0; i < 4; ++i) {
            s.q[0][i] = (raw.low.w[i] >> first) & 0x0f0f0f0f;
            s.q[1][i] = (raw.low.w[i] >> second) & 0x0f0f0f0f;
        }
    }
};

struct WeightsQ5K {
    using Layout = cpu::Q5K;
    static constexpr int kElements = 256, kBytes = Layout::kBytes, kRun = 32, kBias = 0;
    static constexpr bool kMinima = true;
    struct Raw {
        Words4 head, low, high;
    };
    template <bool kOnce = false>
    static HR_DEVICE Raw load(const std::uint8_t* block, int l) {
        return {load_16<kOnce>(block), load_16<kOnce>(block + Layout::kLow + 16 * l), load_16<kOnce>(block + Layout::kHigh + 16 * (l & 1))};
    }
    static HR_DEVICE int offset(int l, int c) { return WeightsQ4K::offset(l, c); }
    static HR_DEVICE std::uint32_t factors(const Raw& raw) { return static_cast<std::uint32_t>(raw.head.w[0]); }
    static HR_DEVICE void unpack(const Raw& raw, int l, Share& s) {
        scales_q4_k(raw.head, l, s);
        const int first = l & 4, second = first ^ 4;
        const int j = 2 * (l >> 1) + (l >> 2);
        HR_UNROLL
        for (int i = 0; i < 4; ++i) {
            s.q[0][i] = ((raw.low.w[i] >> first) & 0x0f0f0f0f) | (((raw.high.w[i] >> j) & 0x01010101) << 4);
            s.q[1][i] = ((raw.low.w[i] >> second) & 0x0f0f0f0f) | (((raw.high.w[i] >> (j ^ 1)) & 0x01010101) << 4);
        }
    }
};

struct WeightsQ6K {
    using Layout = cpu::Q6K;
    static constexpr int kElements = 256, kBytes = Layout::kBytes, kRun = 16, kBias = 32;
    static constexpr bool kMinima = false;
    struct Raw {
        int low[4], high[4];
        int scale[2];
        int d;
    };
    static HR_DEVICE int offset(int l, int c) { return 128 * (l >> 2) + 16 * (l & 3) + 64 * ((l >> 2) ^ c); }
    template <bool kOnce = false>
    static HR_DEVICE Raw load(const std::uint8_t* block, int l) {
        Raw raw;
        load_words<kOnce>(block + Layout::kLow + 16 * l, raw.low);
        load_words<kOnce>(block + Layout::kHigh + 32 * (l >> 2) + 16 * (l & 1), raw.high);
        HR_UNROLL
        for (int c = 0; c < 2; ++c) raw.scale[c] = static_cast<std::int8_t>(block[Layout::kScales + offset(l, c) / 16]);
        raw.d = load_2(block + Layout::kD);
        return raw;
    }
    static HR_DEVICE std::uint32_t factors(const Raw& raw) { return static_cast<std::uint32_t>(raw.d); }
    static HR_DEVICE void unpack(const Raw& raw, int l, Share& s) {
        HR_UNROLL
        for (int c = 0; c < 2; ++c) {
            const int upper = (l >> 2) ^ c;
            s.scale[c] = raw.scale[c];
            HR_UNROLL
            for (int i = 0; i < 4; ++i) {
                s.q[c][i] = ((raw.low[i] >> (4 * upper)) & 0x0f0f0f0f) | (((raw.high[i] >> ((l & 2) + 4 * upper)) & 0x03030303) << 4);
            }
        }
    }
};

// Q2_K and Q3_K: lanes share 32 low bytes of a half by columns of 16 (l & 1) and pairs of quarters (l & 2).
HR_DEVICE int quarter_q3_k(int l, int c) { return (l & 2) + ((l >> 2) ^ c); }
HR_DEVICE int offset_q3_k(int l, int c) { return 128 * (l >> 2) + 32 * quarter_q3_k(l, c) + 16 * (l & 1); }

struct WeightsQ2K {
    using Layout = cpu::Q2K;
    static constexpr int kElements = 256, kBytes = Layout::kBytes, kRun = 16, kBias = 0;
    static constexpr bool kMinima = true;
    struct Raw {
        int low[4];
        int scale[2];
        int factors;
    };
    static HR_DEVICE int offset(int l, int c) { return offset_q3_k(l, c); }
    static HR_DEVICE Raw load(const std::uint8_t* block, int l) {
        Raw raw;
        HR_UNROLL
        for (int i = 0; i < 4; ++i) raw.low[i] = load_4(block + Layout::kLow + 32 * (l >> 2) + 16 * (l & 1) + 4 * i);
        HR_UNROLL
        for (int c = 0; c < 2; ++c) raw.scale[c] = block[Layout::kScales + offset(l, c) / 16];
        raw.factors = load_4(block + Layout::kD);
        return raw;
    }
    static HR_DEVICE std::uint32_t factors(const Raw& raw) { return static_cast<std::uint32_t>(raw.factors); }
    static HR_DEVICE void unpack(const Raw& raw, int l, Share& s) {
        HR_UNROLL
        for (int c = 0; c < 2; ++c) {
            s.scale[c] = raw.scale[c] & 15;
            s.minimum[c] = raw.scale[c] >> 4;
            HR_UNROLL
            for (int i = 0; i < 4; ++i) s.q[c][i] = (raw.low[i] >> (2 * quarter_q3_k(l, c))) & 0x03030303;
        }
    }
};

struct WeightsQ3K {
    using Layout = cpu::Q3K;
    static constexpr int kElements = 256, kBytes = Layout::kBytes, kRun = 16, kBias = 4;
    static constexpr bool kMinima = false;
    struct Raw {
        int low[4], mask[4];
        int scales[3];
        int d;
    };
    static HR_DEVICE int offset(int l, int c) { return offset_q3_k(l, c); }
    static HR_DEVICE Raw load(const std::uint8_t* block, int l) {
        Raw raw;
        load_words(block + Layout::kLow + 32 * (l >> 2) + 16 * (l & 1), raw.low);
        load_words(block + Layout::kMask + 16 * (l & 1), raw.mask);
        load_words(block + Layout::kScales, raw.scales);
        raw.d = load_2(block + Layout::kD);
        return raw;
    }
    static HR_DEVICE std::uint32_t factors(const Raw& raw) { return static_cast<std::uint32_t>(raw.d); }
    static HR_DEVICE void unpack(const Raw& raw, int l, Share& s) {
        HR_UNROLL
        for (int c = 0; c < 2; ++c) {
            const int quarter = quarter_q3_k(l, c);
            const int j = offset(l, c) / 16, byte = 8 * (j & 3);
            const int low = ((j & 4) != 0 ? raw.scales[1] : raw.scales[0]) >> (byte + 4 * (j >> 3));
            s.scale[c] = ((low & 15) | (((raw.scales[2] >> (byte + 2 * (j >> 2))) & 3) << 4)) - 32;
            HR_UNROLL
            for (int i = 0; i < 4; ++i) {
                s.q[c][i] = ((raw.low[i] >> (2 * quarter)) & 0x03030303) | (((raw.mask[i] >> (4 * (l >> 2) + quarter)) & 0x01010101) << 2);
            }
        }
    }
};

struct WeightsIq4Xs {
    using Layout = cpu::Iq4Xs;
    static constexpr int kElements = 256, kBytes = Layout::kBytes, kRun = 32, kBias = 0;
    static constexpr bool kMinima = false;
    struct Raw {
        Words2 head, low[2];
    };
    static HR_DEVICE int offset(int l, int c) { return 32 * l + 16 * c; }
    static HR_DEVICE Raw load(const std::uint8_t* block, int l) {
        const std::uint8_t* low = block + Layout::kLow + 16 * l;
        return {load_8(block), {load_8(low), load_8(low + 8)}};
    }
    static HR_DEVICE std::uint32_t factors(const Raw& raw) { return static_cast<std::uint32_t>(raw.head.w[0]) & 0xffffU; }
    static HR_DEVICE void unpack(const Raw& raw, int l, Share& s) {
        const int high = raw.head.w[0] >> 16;
        s.scale[0] = s.scale[1] = (((raw.head.w[1] >> (4 * l)) & 15) | (((high >> (2 * l)) & 3) << 4)) - 32;
        HR_UNROLL
        for (int i = 0; i < 4; ++i) levels(raw.low[i / 2].w[i % 2], s.q[0][i], s.q[1][i]);
    }
};

// ---- Types with 32-wide blocks ----

struct WeightsQ40 {
    using Layout = cpu::Q40;
    static constexpr int kElements = 32, kBytes = Layout::kBytes, kBias = 8;
    static constexpr bool kMinima = false;
    struct Raw {
        int low[4];
        int d;
    };
    static HR_DEVICE Raw load(const std::uint8_t* block, int) {
        Raw raw;
        load_words(block + Layout::kLow, raw.low);
        raw.d = load_2(block + Layout::kD);
        return raw;
    }
    static HR_DEVICE std::uint32_t factors(const Raw& raw) { return static_cast<std::uint32_t>(raw.d); }
    static HR_DEVICE void unpack(const Raw& raw, int, Share& s) {
        HR_UNROLL
        for (int i = 0; i < 4; ++i) {
            s.q[0][i] = raw.low[i] & 0x0f0f0f0f;
            s.q[1][i] = (raw.low[i] >> 4) & 0x0f0f0f0f;
        }
    }
};

struct WeightsIq4Nl {
    using Layout = cpu::Iq4Nl;
    static constexpr int kElements = 32, kBytes = Layout::kBytes, kBias = 0;
    static constexpr bool kMinima = false;
    using Raw = WeightsQ40::Raw;
    static HR_DEVICE Raw load(const std::uint8_t* block, int l) { return WeightsQ40::load(block, l); }
    static HR_DEVICE std::uint32_t factors(const Raw& raw) { return WeightsQ40::factors(raw); }
    static HR_DEVICE void unpack(const Raw& raw, int, Share& s) {
        HR_UNROLL
        for (int i = 0; i < 4; ++i) levels(raw.low[i], s.q[0][i], s.q[1][i]);
    }
};

struct WeightsQ41 {
    using Layout = cpu::Q41;
    static constexpr int kElements = 32, kBytes = Layout::kBytes, kBias = 0;
    static constexpr bool kMinima = true;
    struct Raw {
        int factors;
        int low[4];
    };
    static HR_DEVICE Raw load(const std::uint8_t* block, int) {
        Raw raw;
        raw.factors = load_4(block + Layout::kD);
        HR_UNROLL
        for (int i = 0; i < 4; ++i) raw.low[i] = load_4(block + Layout::kLow + 4 * i);
        return raw;
    }
    static HR_DEVICE std::uint32_t factors(const Raw& raw) { return static_cast<std::uint32_t>(raw.factors); }
    static HR_DEVICE void unpack(const Raw& raw, int, Share& s) {
        HR_UNROLL
        for (int i = 0; i < 4; ++i) {
            s.q[0][i] = raw.low[i] & 0x0f0f0f0f;
            s.q[1][i] = (raw.low[i] >> 4) & 0x0f0f0f0f;
        }
    }
};

struct WeightsQ50 {
    using Layout = cpu::Q50;
    static constexpr int kElements = 32, kBytes = Layout::kBytes, kBias = 16;
    static constexpr bool kMinima = false;
    struct Raw {
        int words[5];  // the high bits, then the low ones
        int d;
    };
    static HR_DEVICE Raw load(const std::uint8_t* block, int) {
        Raw raw;
        load_words(block + Layout::kHigh, raw.words);
        raw.d = load_2(block + Layout::kD);
        return raw;
    }
    static HR_DEVICE std::uint32_t factors(const Raw& raw) { return static_cast<std::uint32_t>(raw.d); }
    static HR_DEVICE void unpack(const Raw& raw, int, Share& s) {
        HR_UNROLL
        for (int i = 0; i < 4; ++i) {
            s.q[0][i] = (raw.words[i + 1] & 0x0f0f0f0f) | fifth_bits(raw.words[0], 4 * i);
            s.q[1][i] = ((raw.words[i + 1] >> 4) & 0x0f0f0f0f) | fifth_bits(raw.words[0], 16 + 4 * i);
        }
    }
};

struct WeightsQ51 {
    using Layout = cpu::Q51;
    static constexpr int kElements = 32, kBytes = Layout::kBytes, kBias = 0;
    static constexpr bool kMinima = true;
    struct Raw {
        int factors;
        int words[5];
    };
    static HR_DEVICE Raw load(const std::uint8_t* block, int) {
        Raw raw;
        raw.factors = load_4(block + Layout::kD);
        HR_UNROLL
        for (int i = 0; i < 5; ++i) raw.words[i] = load_4(block + Layout::kHigh + 4 * i);
        return raw;
    }
    static HR_DEVICE std::uint32_t factors(const Raw& raw) { return static_cast<std::uint32_t>(raw.factors); }
    static HR_DEVICE void unpack(const Raw& raw, int, Share& s) {
        HR_UNROLL
        for (int i = 0; i < 4; ++i) {
            s.q[0][i] = (raw.words[i + 1] & 0x0f0f0f0f) | fifth_bits(raw.words[0], 4 * i);
            s.q[1][i] = ((raw.words[i + 1] >> 4) & 0x0f0f0f0f) | fifth_bits(raw.words[0], 16 + 4 * i);
        }
    }
};

struct WeightsQ80 {
    using Layout = cpu::Q80;
    static constexpr int kElements = 32, kBytes = Layout::kBytes, kBias = 0;
    static constexpr bool kMinima = false;
    struct Raw {
        int words[8];
        int d;
    };
    static HR_DEVICE Raw load(const std::uint8_t* block, int) {
        Raw raw;
        load_words(block + Layout::kLow, raw.words);
        raw.d = load_2(block + Layout::kD);
        return raw;
    }
    static HR_DEVICE std::uint32_t factors(const Raw& raw) { return static_cast<std::uint32_t>(raw.d); }
    static HR_DEVICE void unpack(const Raw& raw, int, Share& s) {
        HR_UNROLL
        for (int i = 0; i < 8; ++i) s.q[i / 4][i % 4] = raw.words[i];
    }
};

}  // namespace headroom::device
