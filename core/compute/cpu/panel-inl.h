// Unpacking of panels and their products with activations, once for each Highway target.

#if defined(HEADROOM_PANEL_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADROOM_PANEL_INL
#undef HEADROOM_PANEL_INL
#else
#define HEADROOM_PANEL_INL
#endif

#include <hwy/highway.h>

#include <type_traits>

#include "core/compute/cpu/blocks.h"
#include "core/compute/cpu/panel.h"
#include "core/compute/cpu/vector-inl.h"

#if HEADROOM_KERNELS

HWY_BEFORE_NAMESPACE();
namespace headroom::cpu::HWY_NAMESPACE {

constexpr int kRows = kLanes;

// ---- Loads ----

// The addresses of the panel's rows, at the current block, and what is fetched meanwhile: a part of the next tile, as long as the blocks.
struct RowPointers {
    const std::byte* const* rows;
    const std::byte* ahead;
    const std::byte* operator[](int row) const { return rows[row]; }
};

#if HWY_TARGET == HWY_AVX3_DL
HWY_INLINE VU load_quarters(const RowPointers& rows, int first, std::ptrdiff_t offset) {
    const auto load = [&](int row) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[first + row] + offset)); };
    // Twice as quick as masked broadcasts on Zen 4.
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(load(0)), load(4), 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(load(8)), load(12), 1);
    return VU{_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1)};
}
// The halves in the low 16 bits of each lane.
HWY_INLINE VF halves_to_floats(VU v) { return VF{_mm512_cvtph_ps(_mm512_cvtepi32_epi16(v.raw))}; }
HWY_INLINE VU lookup_bytes(__m128i table, VU v) { return VU{_mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), v.raw)}; }
#else
HWY_INLINE VU load_quarters(const RowPointers& rows, int first, std::ptrdiff_t offset) {
    const auto load = [&](int row) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[first + row] + offset)); };
    return VU{_mm256_inserti128_si256(_mm256_castsi128_si256(load(0)), load(4), 1)};
}
HWY_INLINE VF halves_to_floats(VU v) {
    const __m256i low = _mm256_and_si256(v.raw, _mm256_set1_epi32(0xffff));
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);
    return VF{_mm256_cvtph_ps(_mm256_castsi256_si128(packed))};
}
HWY_INLINE VU lookup_bytes(__m128i table, VU v) { return VU{_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), v.raw)}; }
#endif

// The locality of __builtin_prefetch that stops at the second-level cache. Measured on Zen 4, single-token products: 27 GB/s, against 20 with
// the first level as the aim, whose few places for misses the loads need themselves.
constexpr int kToSecondLevel = 2;

// Sixteen bytes of each row, turned: column c holds bytes 4c … 4c + 3 of every row.
struct Columns {
    VU c0, c1, c2, c3;
};
HWY_INLINE Columns load_columns(const RowPointers& rows, std::ptrdiff_t offset) {
    const hn::Repartition<std::uint64_t, DU> d64;
    const DU d32;
    // As many bytes as are loaded here, spread over the loads: a burst would wait for free places in the queue of misses.
    HEADROOM_UNROLL
    for (int line = 0; line < kRows / 4; ++line) __builtin_prefetch(rows.ahead + offset * kRows + line * 64, 0, kToSecondLevel);
    const VU r0 = load_quarters(rows, 0, offset), r1 = load_quarters(rows, 1, offset);
    const VU r2 = load_quarters(rows, 2, offset), r3 = load_quarters(rows, 3, offset);
    const auto low01 = hn::BitCast(d64, hn::InterleaveLower(d32, r0, r1)), high01 = hn::BitCast(d64, hn::InterleaveUpper(d32, r0, r1));
    const auto low23 = hn::BitCast(d64, hn::InterleaveLower(d32, r2, r3)), high23 = hn::BitCast(d64, hn::InterleaveUpper(d32, r2, r3));
    return {hn::BitCast(d32, hn::InterleaveLower(d64, low01, low23)), hn::BitCast(d32, hn::InterleaveUpper(d64, low01, low23)),
            hn::BitCast(d32, hn::InterleaveLower(d64, high01, high23)), hn::BitCast(d32, hn::InterleaveUpper(d64, high01, high23))};
}

template <class F>
HWY_INLINE Columns each(const Columns& a, F f) {
    return {f(a.c0), f(a.c1), f(a.c2), f(a.c3)};
}
template <class F>
HWY_INLINE Columns each(const Columns& a, const Columns& b, F f) {
    return {f(a.c0, b.c0), f(a.c1, b.c1), f(a.c2, b.c2), f(a.c3, b.c3)};
}
// What the types' codes() asks for: sixteen bytes of each row as columns (panels), or of each block as they lie (rows-inl.h).
struct PanelPieces {
    using Piece = Columns;
    using Pointers = RowPointers;
    static HWY_INLINE Columns load(const RowPointers& rows, std::ptrdiff_t offset) { return load_columns(rows, offset); }
};

// Stores the codes of 16 elements of each row, the first of them element k.
HWY_INLINE void store_codes(Panel& panel, int k, const Columns& v) {
    const DU d;
    hn::Store(v.c0, d, reinterpret_cast<std::uint32_t*>(panel.q[k / 4]));
    hn::Store(v.c1, d, reinterpret_cast<std::uint32_t*>(panel.q[k / 4 + 1]));
    hn::Store(v.c2, d, reinterpret_cast<std::uint32_t*>(panel.q[k / 4 + 2]));
    hn::Store(v.c3, d, reinterpret_cast<std::uint32_t*>(panel.q[k / 4 + 3]));
}

// Unpacks the codes of a superblock of each row.
template <class Type>
HWY_INLINE void unpack_codes(const RowPointers& rows, Panel& panel) {
    Type::template codes<PanelPieces>(rows, [&](int k, const Columns& v) { store_codes(panel, k, v); });
}
// Unpacks the codes of a 32-wide block of each row.
template <class Type>
HWY_INLINE void unpack_codes(const RowPointers& rows, Panel& panel, int block) {
    Type::template codes<PanelPieces>(rows, [&](int k, const Columns& v) { store_codes(panel, 32 * block + k, v); });
}

HWY_INLINE VU mask(VU v, std::uint32_t bits) { return hn::And(v, hn::Set(DU(), bits)); }
template <int kBits>
HWY_INLINE VU right(VU v) {
    if constexpr (kBits == 0) return v;
    else return hn::ShiftRight<kBits>(v);
}
// Shift to the left by kBits, to the right when negative.
template <int kBits>
HWY_INLINE VU left(VU v) {
    if constexpr (kBits < 0) return hn::ShiftRight<-kBits>(v);
    else if constexpr (kBits == 0) return v;
    else return hn::ShiftLeft<kBits>(v);
}
HWY_INLINE VU low_nibbles(VU v) { return mask(v, 0x0f0f0f0fU); }
HWY_INLINE VU high_nibbles(VU v) { return mask(hn::ShiftRight<4>(v), 0x0f0f0f0fU); }

// ---- How codes meet activations ----

// Four activations, as one 32-bit value to be spread over the lanes.
HWY_INLINE std::int32_t four(const std::int8_t* x) {
    std::int32_t value;
    __builtin_memcpy(&value, x, sizeof value);
    return value;
}

#if HWY_TARGET == HWY_AVX3_DL
// VNNI adds the products of four unsigned codes and four activations to a 32-bit lane. The instructions are written out: Highway's
// name for this target does not enable their intrinsics.
struct Dot {
    static constexpr bool kAlwaysUnsigned = true;
    template <int kMaxCode>
    static constexpr int kGroupsToFlush = 64;
    template <bool kSigned>
    static HWY_INLINE VI add(VI sum, const std::uint8_t* codes, const std::int8_t* x) {
        __m512i s = sum.raw;
        asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(s) : "v"(_mm512_load_si512(codes)), "m"(*reinterpret_cast<const std::int32_t*>(x)));
        return VI{s};
    }
    static HWY_INLINE VI scale_form(VI scale) { return scale; }
    static HWY_INLINE VI flush_scaled(VI total, VI sum, VI scale) { return hn::Add(total, hn::Mul(sum, scale)); }
    static HWY_INLINE VI flush(VI total, VI sum) { return hn::Add(total, sum); }
};
// total + a pair of int16 in each lane times the pair at x.
HWY_INLINE VI add_pairs(VI total, VI pairs, const std::int16_t* x) {
    __m512i s = total.raw;
    asm("vpdpwssd %2%{1to16%}, %1, %0" : "+v"(s) : "v"(pairs.raw), "m"(*reinterpret_cast<const std::int32_t*>(x)));
    return VI{s};
}
#else
// Without VNNI the products are added in pairs of 16-bit lanes; as many as fit, then the integer scale widens them.
struct Dot {
    static constexpr bool kAlwaysUnsigned = false;
    template <int kMaxCode>
    static constexpr int kGroupsToFlush = 32767 / (2 * 127 * kMaxCode);
    template <bool kSigned>
    static HWY_INLINE VI add(VI sum, const std::uint8_t* codes, const std::int8_t* x) {
        const __m256i w = _mm256_load_si256(reinterpret_cast<const __m256i*>(codes));
        const __m256i v = _mm256_set1_epi32(four(x));
        const __m256i products = kSigned ? _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(v, w)) : _mm256_maddubs_epi16(w, v);
        return VI{_mm256_add_epi16(sum.raw, products)};
    }
    // The scale twice, a 16-bit value for each half of the lane.
    static HWY_INLINE VI scale_form(VI scale) {
        return VI{_mm256_or_si256(_mm256_slli_epi32(scale.raw, 16), _mm256_and_si256(scale.raw, _mm256_set1_epi32(0xffff)))};
    }
    static HWY_INLINE VI flush_scaled(VI total, VI sum, VI scale) { return hn::Add(total, VI{_mm256_madd_epi16(sum.raw, scale.raw)}); }
    static HWY_INLINE VI flush(VI total, VI sum) { return flush_scaled(total, sum, VI{_mm256_set1_epi16(1)}); }
};
HWY_INLINE VI add_pairs(VI total, VI pairs, const std::int16_t* x) {
    std::int32_t pair;
    __builtin_memcpy(&pair, x, sizeof pair);
    return hn::Add(total, VI{_mm256_madd_epi16(pairs.raw, _mm256_set1_epi32(pair))});
}
#endif

// What the kernels must know of a type. Codes are stored plus kOffset, so that they are unsigned; products with sums of activations take
// the offset out again, exactly. Codes that would not fit seven bits stay signed where unsigned ones have no room (Dot).
template <int kMax, int kOffsetIfUnsigned>
struct Codes {
    static constexpr int kMaxCode = kMax;
    static constexpr bool kSigned = kMax > 127 && !Dot::kAlwaysUnsigned;
    static constexpr int kOffset = kSigned ? 0 : kOffsetIfUnsigned;
    static constexpr int kGroupsToFlush = Dot::kGroupsToFlush<kSigned ? 128 : kMax>;
};

// ---- Types with 256-wide superblocks ----

template <class Type, int j>
HWY_INLINE void store_scale(Panel& panel, VI scale) {
    hn::Store(Dot::scale_form(scale), DI(), panel.scales[j]);
}
// Four scales, a byte each.
template <class Type, int j>
HWY_INLINE void store_unsigned_scales(Panel& panel, VU bytes) {
    const DI d;
    store_scale<Type, j>(panel, hn::BitCast(d, mask(bytes, 255)));
    store_scale<Type, j + 1>(panel, hn::BitCast(d, mask(hn::ShiftRight<8>(bytes), 255)));
    store_scale<Type, j + 2>(panel, hn::BitCast(d, mask(hn::ShiftRight<16>(bytes), 255)));
    store_scale<Type, j + 3>(panel, hn::BitCast(d, hn::ShiftRight<24>(bytes)));
}
// Four minima, a byte each, as two pairs.
HWY_INLINE void store_minima(Panel& panel, int pair, VU bytes) {
    const DI d;
    const VU first = hn::Or(mask(bytes, 0xff), mask(hn::ShiftLeft<8>(bytes), 0xff0000));
    const VU second = hn::Or(mask(hn::ShiftRight<16>(bytes), 0xff), mask(hn::ShiftRight<8>(bytes), 0xff0000));
    hn::Store(hn::BitCast(d, first), d, panel.mins[pair]);
    hn::Store(hn::BitCast(d, second), d, panel.mins[pair + 1]);
}
// Two scales of a type whose codes carry an offset: the pair of minima is -offset * scale.
template <class Type, int j>
HWY_INLINE void store_offset_scales(Panel& panel, VI first, VI second) {
    const DI d;
    store_scale<Type, j>(panel, first);
    store_scale<Type, j + 1>(panel, second);
    if constexpr (Type::kOffset != 0) {
        const VI factor = hn::Set(d, -Type::kOffset);
        const VI low = hn::And(hn::Mul(first, factor), hn::Set(d, 0xffff));
        hn::Store(hn::Or(low, hn::ShiftLeft<16>(hn::Mul(second, factor))), d, panel.mins[j / 2]);
    }
}
template <class Type, int j>
HWY_INLINE void store_signed_scales(Panel& panel, VU bytes) {
    const DI d;
    const VI v = hn::BitCast(d, bytes);
    store_offset_scales<Type, j>(panel, hn::ShiftRight<24>(hn::ShiftLeft<24>(v)), hn::ShiftRight<24>(hn::ShiftLeft<16>(v)));
    store_offset_scales<Type, j + 2>(panel, hn::ShiftRight<24>(hn::ShiftLeft<8>(v)), hn::ShiftRight<24>(v));
}
HWY_INLINE void store_d(Panel& panel, VU bits) { hn::Store(halves_to_floats(bits), DF(), panel.d[0]); }
HWY_INLINE void store_dmin(Panel& panel, VU bits) { hn::Store(halves_to_floats(bits), DF(), panel.m[0]); }

// d, dmin and the scales of Q4_K and Q5_K.
template <class Type>
HWY_INLINE void unpack_head_q4_k(const RowPointers& rows, Panel& panel) {
    const Columns head = load_columns(rows, 0);
    store_d(panel, mask(head.c0, 0xffff));
    store_dmin(panel, hn::ShiftRight<16>(head.c0));
    store_unsigned_scales<Type, 0>(panel, mask(head.c1, 0x3f3f3f3fU));
    store_unsigned_scales<Type, 4>(panel, hn::Or(low_nibbles(head.c3), mask(hn::ShiftRight<2>(head.c1), 0x30303030U)));
    store_minima(panel, 0, mask(head.c2, 0x3f3f3f3fU));
    store_minima(panel, 2, hn::Or(high_nibbles(head.c3), mask(hn::ShiftRight<2>(head.c2), 0x30303030U)));
}

struct TypeQ4K : Codes<15, 0> {
    static constexpr int kBytes = Q4K::kBytes, kWidth = 32;
    static constexpr bool kMinima = true;
    static HWY_INLINE void unpack(const RowPointers& rows, Panel& panel) {
        unpack_head_q4_k<TypeQ4K>(rows, panel);
        unpack_codes<TypeQ4K>(rows, panel);
    }
    template <class P, class Store>
    static HWY_INLINE void codes(const typename P::Pointers& rows, Store put) {
        HEADROOM_UNROLL
        for (int chunk = 0; chunk < 8; ++chunk) {
            const auto q = P::load(rows, Q4K::kLow + 16 * chunk);
            const int k = 64 * (chunk / 2) + 16 * (chunk % 2);
            put(k, each(q, low_nibbles));
            put(k + 32, each(q, high_nibbles));
        }
    }
};

struct TypeQ5K : Codes<31, 0> {
    static constexpr int kBytes = Q5K::kBytes, kWidth = 32;
    static constexpr bool kMinima = true;
    // Sub-blocks 2j and 2j + 1 of one half (16 elements) of each.
    template <class P, int j, class Store>
    static HWY_INLINE void pair(const typename P::Pointers& rows, int half, const typename P::Piece& high, Store put) {
        const auto q = P::load(rows, Q5K::kLow + 32 * j + 16 * half);
        const auto fifth = [](VU h, auto bit) { return mask(left<4 - decltype(bit)::value>(h), 0x10101010U); };
        using Low = std::integral_constant<int, 2 * j>;
        using High = std::integral_constant<int, 2 * j + 1>;
        put(64 * j + 16 * half, each(q, high, [&](VU v, VU h) { return hn::Or(low_nibbles(v), fifth(h, Low())); }));
        put(64 * j + 32 + 16 * half, each(q, high, [&](VU v, VU h) { return hn::Or(high_nibbles(v), fifth(h, High())); }));
    }
    template <class P, class Store>
    static HWY_INLINE void codes(const typename P::Pointers& rows, Store put) {
        HEADROOM_UNROLL
        for (int half = 0; half < 2; ++half) {
            const auto high = P::load(rows, Q5K::kHigh + 16 * half);
            pair<P, 0>(rows, half, high, put);
            pair<P, 1>(rows, half, high, put);
            pair<P, 2>(rows, half, high, put);
            pair<P, 3>(rows, half, high, put);
        }
    }
    static HWY_INLINE void unpack(const RowPointers& rows, Panel& panel) {
        unpack_head_q4_k<TypeQ5K>(rows, panel);
        unpack_codes<TypeQ5K>(rows, panel);
    }
};

struct TypeQ6K : Codes<63, 32> {
    static constexpr int kBytes = Q6K::kBytes, kWidth = 16;
    static constexpr bool kMinima = false;
    static HWY_INLINE void unpack(const RowPointers& rows, Panel& panel) {
        store_d(panel, hn::ShiftRight<16>(load_columns(rows, Q6K::kD - 14).c3));
        const Columns scales = load_columns(rows, Q6K::kScales);
        store_signed_scales<TypeQ6K, 0>(panel, scales.c0);
        store_signed_scales<TypeQ6K, 4>(panel, scales.c1);
        store_signed_scales<TypeQ6K, 8>(panel, scales.c2);
        store_signed_scales<TypeQ6K, 12>(panel, scales.c3);
        unpack_codes<TypeQ6K>(rows, panel);
    }
    template <class P, class Store>
    static HWY_INLINE void codes(const typename P::Pointers& rows, Store put) {
        HEADROOM_UNROLL
        for (int chunk = 0; chunk < 4; ++chunk) {
            const int half = chunk / 2, part = 16 * (chunk % 2), k = 128 * half + part;
            const auto high = P::load(rows, Q6K::kHigh + 32 * half + part);
            const auto first = P::load(rows, Q6K::kLow + 64 * half + part);
            const auto second = P::load(rows, Q6K::kLow + 64 * half + 32 + part);
            const auto top = [](VU h) { return mask(h, 0x30303030U); };
            put(k, each(first, high, [&](VU v, VU h) { return hn::Or(low_nibbles(v), top(hn::ShiftLeft<4>(h))); }));
            put(k + 32, each(second, high, [&](VU v, VU h) { return hn::Or(low_nibbles(v), top(hn::ShiftLeft<2>(h))); }));
            put(k + 64, each(first, high, [&](VU v, VU h) { return hn::Or(high_nibbles(v), top(h)); }));
            put(k + 96, each(second, high, [&](VU v, VU h) { return hn::Or(high_nibbles(v), top(hn::ShiftRight<2>(h))); }));
        }
    }
};

struct TypeQ2K : Codes<3, 0> {
    static constexpr int kBytes = Q2K::kBytes, kWidth = 16;
    static constexpr bool kMinima = true;
    static HWY_INLINE void unpack(const RowPointers& rows, Panel& panel) {
        const VU ds = load_columns(rows, Q2K::kD - 12).c3;
        store_d(panel, mask(ds, 0xffff));
        store_dmin(panel, hn::ShiftRight<16>(ds));
        const Columns scales = load_columns(rows, Q2K::kScales);
        store_unsigned_scales<TypeQ2K, 0>(panel, low_nibbles(scales.c0));
        store_unsigned_scales<TypeQ2K, 4>(panel, low_nibbles(scales.c1));
        store_unsigned_scales<TypeQ2K, 8>(panel, low_nibbles(scales.c2));
        store_unsigned_scales<TypeQ2K, 12>(panel, low_nibbles(scales.c3));
        store_minima(panel, 0, high_nibbles(scales.c0));
        store_minima(panel, 2, high_nibbles(scales.c1));
        store_minima(panel, 4, high_nibbles(scales.c2));
        store_minima(panel, 6, high_nibbles(scales.c3));
        unpack_codes<TypeQ2K>(rows, panel);
    }
    template <class P, class Store>
    static HWY_INLINE void codes(const typename P::Pointers& rows, Store put) {
        HEADROOM_UNROLL
        for (int chunk = 0; chunk < 4; ++chunk) {
            const auto q = P::load(rows, Q2K::kLow + 16 * chunk);
            const int k = 128 * (chunk / 2) + 16 * (chunk % 2);
            const auto two = [](VU v) { return mask(v, 0x03030303U); };
            put(k, each(q, two));
            put(k + 32, each(q, [&](VU v) { return two(hn::ShiftRight<2>(v)); }));
            put(k + 64, each(q, [&](VU v) { return two(hn::ShiftRight<4>(v)); }));
            put(k + 96, each(q, [&](VU v) { return two(hn::ShiftRight<6>(v)); }));
        }
    }
};

struct TypeQ3K : Codes<7, 4> {
    static constexpr int kBytes = Q3K::kBytes, kWidth = 16;
    static constexpr bool kMinima = false;
    template <int j>
    static HWY_INLINE void unpack_scales(Panel& panel, VU low, VU high) {  // low: four nibbles, high: their upper bits in 0x30
        const DI d;
        const VI v = hn::BitCast(d, hn::Or(low, mask(high, 0x30303030U)));
        const VI bias = hn::Set(d, 32);
        const VI byte = hn::Set(d, 255);
        store_offset_scales<TypeQ3K, j>(panel, hn::Sub(hn::And(v, byte), bias), hn::Sub(hn::And(hn::ShiftRight<8>(v), byte), bias));
        store_offset_scales<TypeQ3K, j + 2>(panel, hn::Sub(hn::And(hn::ShiftRight<16>(v), byte), bias), hn::Sub(hn::ShiftRight<24>(v), bias));
    }
    // 16 elements of sub-blocks 32 apart; the third bits of half h are bits 4h … 4h + 3 of the mask.
    template <class P, int half, class Store>
    static HWY_INLINE void half_codes(const typename P::Pointers& rows, int part, Store put) {
        const auto q = P::load(rows, Q3K::kLow + 32 * half + part);
        const auto high = P::load(rows, Q3K::kMask + part);
        const int k = 128 * half + part;
        const auto code = [](VU low, VU bit) { return hn::Or(mask(low, 0x03030303U), mask(bit, 0x04040404U)); };
        put(k, each(q, high, [&](VU v, VU h) { return code(v, left<2 - 4 * half>(h)); }));
        put(k + 32, each(q, high, [&](VU v, VU h) { return code(hn::ShiftRight<2>(v), left<1 - 4 * half>(h)); }));
        put(k + 64, each(q, high, [&](VU v, VU h) { return code(hn::ShiftRight<4>(v), left<0 - 4 * half>(h)); }));
        put(k + 96, each(q, high, [&](VU v, VU h) { return code(hn::ShiftRight<6>(v), left<-1 - 4 * half>(h)); }));
    }
    template <class P, class Store>
    static HWY_INLINE void codes(const typename P::Pointers& rows, Store put) {
        half_codes<P, 0>(rows, 0, put);
        half_codes<P, 0>(rows, 16, put);
        half_codes<P, 1>(rows, 0, put);
        half_codes<P, 1>(rows, 16, put);
    }
    static HWY_INLINE void unpack(const RowPointers& rows, Panel& panel) {
        // Sixteen bytes up to the block's end: two bytes of codes, the scales, d.
        const Columns tail = load_columns(rows, Q3K::kScales - 2);
        const auto join = [](VU a, VU b) { return hn::Or(hn::ShiftRight<16>(a), hn::ShiftLeft<16>(b)); };
        const VU s0 = join(tail.c0, tail.c1), s1 = join(tail.c1, tail.c2), top = join(tail.c2, tail.c3);
        store_d(panel, hn::ShiftRight<16>(tail.c3));
        unpack_scales<0>(panel, low_nibbles(s0), hn::ShiftLeft<4>(top));
        unpack_scales<4>(panel, low_nibbles(s1), hn::ShiftLeft<2>(top));
        unpack_scales<8>(panel, high_nibbles(s0), top);
        unpack_scales<12>(panel, high_nibbles(s1), hn::ShiftRight<2>(top));
        unpack_codes<TypeQ3K>(rows, panel);
    }
};

// The levels of the nonlinear types, plus the offset of Type.
template <class Type>
HWY_INLINE __m128i level_table() {
    const __m128i levels = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kNonlinearLevels));
    return _mm_add_epi8(levels, _mm_set1_epi8(static_cast<char>(Type::kOffset)));
}

struct TypeIq4Xs : Codes<255, 128> {
    static constexpr int kBytes = Iq4Xs::kBytes, kWidth = 32;
    static constexpr bool kMinima = false;
    template <int j>
    static HWY_INLINE VI scale(VU low, VU high) {
        const VU v = hn::Or(mask(right<4 * j>(low), 15), mask(left<4 - 2 * j>(high), 0x30));
        return hn::Sub(hn::BitCast(DI(), v), hn::Set(DI(), 32));
    }
    static HWY_INLINE void unpack(const RowPointers& rows, Panel& panel) {
        const Columns head = load_columns(rows, 0);
        store_d(panel, mask(head.c0, 0xffff));
        const VU low = head.c1, high = hn::ShiftRight<16>(head.c0);
        store_offset_scales<TypeIq4Xs, 0>(panel, scale<0>(low, high), scale<1>(low, high));
        store_offset_scales<TypeIq4Xs, 2>(panel, scale<2>(low, high), scale<3>(low, high));
        store_offset_scales<TypeIq4Xs, 4>(panel, scale<4>(low, high), scale<5>(low, high));
        store_offset_scales<TypeIq4Xs, 6>(panel, scale<6>(low, high), scale<7>(low, high));
        unpack_codes<TypeIq4Xs>(rows, panel);
    }
    template <class P, class Store>
    static HWY_INLINE void codes(const typename P::Pointers& rows, Store put) {
        const __m128i table = level_table<TypeIq4Xs>();
        HEADROOM_UNROLL
        for (int block = 0; block < 8; ++block) {
            const auto q = P::load(rows, Iq4Xs::kLow + 16 * block);
            put(32 * block, each(q, [&](VU v) { return lookup_bytes(table, low_nibbles(v)); }));
            put(32 * block + 16, each(q, [&](VU v) { return lookup_bytes(table, high_nibbles(v)); }));
        }
    }
};

// ---- Types with 32-wide blocks: `block` is the place in the panel ----

HWY_INLINE void store_block_d(Panel& panel, int block, VU bits) { hn::Store(halves_to_floats(mask(bits, 0xffff)), DF(), panel.d[block]); }
HWY_INLINE void store_block_m(Panel& panel, int block, VU bits) { hn::Store(halves_to_floats(hn::ShiftRight<16>(bits)), DF(), panel.m[block]); }

struct TypeQ40 : Codes<15, 8> {
    static constexpr int kBytes = Q40::kBytes;
    static constexpr bool kMinima = false;
    static HWY_INLINE void unpack(const RowPointers& rows, Panel& panel, int block) {
        store_block_d(panel, block, load_columns(rows, 0).c0);
        unpack_codes<TypeQ40>(rows, panel, block);
    }
    template <class P, class Store>
    static HWY_INLINE void codes(const typename P::Pointers& rows, Store put) {
        const auto q = P::load(rows, Q40::kLow);
        put(0, each(q, low_nibbles));
        put(16, each(q, high_nibbles));
    }
};

struct TypeQ41 : Codes<15, 0> {
    static constexpr int kBytes = Q41::kBytes;
    static constexpr bool kMinima = true;
    static HWY_INLINE void unpack(const RowPointers& rows, Panel& panel, int block) {
        const VU head = load_columns(rows, 0).c0;
        store_block_d(panel, block, head);
        store_block_m(panel, block, head);
        unpack_codes<TypeQ41>(rows, panel, block);
    }
    template <class P, class Store>
    static HWY_INLINE void codes(const typename P::Pointers& rows, Store put) {
        const auto q = P::load(rows, Q41::kLow);
        put(0, each(q, low_nibbles));
        put(16, each(q, high_nibbles));
    }
};

// Bits kBit … kBit + 3 of each lane, each as bit 4 of its own byte.
template <int kBit>
HWY_INLINE VU fifth_bits(VU bits) {
    const VU four_bits = mask(right<kBit>(bits), 15);
    return hn::ShiftLeft<4>(mask(hn::Mul(four_bits, hn::Set(DU(), 0x00204081U)), 0x01010101U));
}
HWY_INLINE void store_five_bit_codes(Panel& panel, int block, const Columns& q, VU high) {
    store_codes(panel, 32 * block, {hn::Or(low_nibbles(q.c0), fifth_bits<0>(high)), hn::Or(low_nibbles(q.c1), fifth_bits<4>(high)),
                                    hn::Or(low_nibbles(q.c2), fifth_bits<8>(high)), hn::Or(low_nibbles(q.c3), fifth_bits<12>(high))});
    store_codes(panel, 32 * block + 16, {hn::Or(high_nibbles(q.c0), fifth_bits<16>(high)), hn::Or(high_nibbles(q.c1), fifth_bits<20>(high)),
                                         hn::Or(high_nibbles(q.c2), fifth_bits<24>(high)), hn::Or(high_nibbles(q.c3), fifth_bits<28>(high))});
}

struct TypeQ50 : Codes<31, 16> {
    static constexpr int kBytes = Q50::kBytes;
    static constexpr bool kMinima = false;
    static HWY_INLINE void unpack(const RowPointers& rows, Panel& panel, int block) {
        const Columns head = load_columns(rows, 0);
        store_block_d(panel, block, head.c0);
        store_five_bit_codes(panel, block, load_columns(rows, Q50::kLow), hn::Or(hn::ShiftRight<16>(head.c0), hn::ShiftLeft<16>(head.c1)));
    }
};

struct TypeQ51 : Codes<31, 0> {
    static constexpr int kBytes = Q51::kBytes;
    static constexpr bool kMinima = true;
    static HWY_INLINE void unpack(const RowPointers& rows, Panel& panel, int block) {
        const Columns head = load_columns(rows, 0);
        store_block_d(panel, block, head.c0);
        store_block_m(panel, block, head.c0);
        store_five_bit_codes(panel, block, load_columns(rows, Q51::kLow), head.c1);
    }
};

struct TypeQ80 : Codes<255, 128> {
    static constexpr int kBytes = Q80::kBytes;
    static constexpr bool kMinima = false;
    static HWY_INLINE void unpack(const RowPointers& rows, Panel& panel, int block) {
        store_block_d(panel, block, load_columns(rows, 0).c0);
        unpack_codes<TypeQ80>(rows, panel, block);
    }
    template <class P, class Store>
    static HWY_INLINE void codes(const typename P::Pointers& rows, Store put) {
        const auto code = [](VU v) { return kOffset != 0 ? hn::Xor(v, hn::Set(DU(), 0x80808080U)) : v; };
        put(0, each(P::load(rows, Q80::kLow), code));
        put(16, each(P::load(rows, Q80::kLow + 16), code));
    }
};

struct TypeIq4Nl : Codes<255, 128> {
    static constexpr int kBytes = Iq4Nl::kBytes;
    static constexpr bool kMinima = false;
    static HWY_INLINE void unpack(const RowPointers& rows, Panel& panel, int block) {
        store_block_d(panel, block, load_columns(rows, 0).c0);
        unpack_codes<TypeIq4Nl>(rows, panel, block);
    }
    template <class P, class Store>
    static HWY_INLINE void codes(const typename P::Pointers& rows, Store put) {
        const auto q = P::load(rows, Iq4Nl::kLow);
        const __m128i table = level_table<TypeIq4Nl>();
        put(0, each(q, [&](VU v) { return lookup_bytes(table, low_nibbles(v)); }));
        put(16, each(q, [&](VU v) { return lookup_bytes(table, high_nibbles(v)); }));
    }
};

// ---- Products of a panel with the activations of T tokens ----

// Floats of a token's accumulators: four vectors of rows.
constexpr int kTokenFloats = 4 * kRows;

// The integer sums of `groups` groups of four codes, flushed by `flush` as often as Type needs.
template <class Type, int T, class Flush>
HWY_INLINE void dot_groups(const Panel& panel, int first, int groups, const std::int8_t* const (&x)[T], Flush flush) {
    const int step = Type::kGroupsToFlush < groups ? Type::kGroupsToFlush : groups;
    for (int begin = first; begin < first + groups; begin += step) {
        VI sums[T];
        HEADROOM_UNROLL
        for (int t = 0; t < T; ++t) sums[t] = hn::Zero(DI());
        HEADROOM_UNROLL
        for (int g = begin; g < begin + step; ++g) {
            HEADROOM_UNROLL
            for (int t = 0; t < T; ++t) sums[t] = Dot::add<Type::kSigned>(sums[t], panel.q[g], x[t] + 4 * g);
        }
        flush(sums);
    }
}

// accumulators: those of block b mod 4, of token t at t * kTokenFloats.
template <class Type, int T>
HWY_INLINE void multiply_superblock(const Panel& panel, const Group256* const* x, float* accumulators) {
    const DI di;
    const DF df;
    constexpr int kWidth = Type::kWidth;
    const std::int8_t* q[T];
    VI totals[T];
    HEADROOM_UNROLL
    for (int t = 0; t < T; ++t) {
        q[t] = x[t]->q;
        totals[t] = hn::Zero(di);
    }
    const auto add_minima = [&](VI (&sums)[T]) {
        HEADROOM_UNROLL
        for (int pair = 0; pair < 128 / kWidth; ++pair) {
            const VI minima = hn::Load(di, panel.mins[pair]);
            HEADROOM_UNROLL
            for (int t = 0; t < T; ++t) sums[t] = add_pairs(sums[t], minima, (kWidth == 16 ? x[t]->sums16 : x[t]->sums32) + 2 * pair);
        }
    };
    if constexpr (!Type::kMinima && Type::kOffset != 0) add_minima(totals);
    for (int j = 0; j < 256 / kWidth; ++j) {
        const VI scale = hn::Load(di, panel.scales[j]);
        dot_groups<Type, T>(panel, j * (kWidth / 4), kWidth / 4, q, [&](VI (&sums)[T]) {
            HEADROOM_UNROLL
            for (int t = 0; t < T; ++t) totals[t] = Dot::flush_scaled(totals[t], sums[t], scale);
        });
    }
    VF values[T];
    const VF d = hn::Load(df, panel.d[0]);
    if constexpr (Type::kMinima) {
        VI minima[T];
        HEADROOM_UNROLL
        for (int t = 0; t < T; ++t) minima[t] = hn::Zero(di);
        add_minima(minima);
        const VF dmin = hn::Load(df, panel.m[0]);
        HEADROOM_UNROLL
        for (int t = 0; t < T; ++t) values[t] = hn::MulSub(d, hn::ConvertTo(df, totals[t]), hn::Mul(dmin, hn::ConvertTo(df, minima[t])));
    } else {
        HEADROOM_UNROLL
        for (int t = 0; t < T; ++t) values[t] = hn::Mul(d, hn::ConvertTo(df, totals[t]));
    }
    HEADROOM_UNROLL
    for (int t = 0; t < T; ++t) {
        float* a = accumulators + t * kTokenFloats;
        hn::Store(hn::Add(hn::Load(df, a), hn::Mul(hn::Set(df, x[t]->scale), values[t])), df, a);
    }
}

// `blocks` blocks of the panel, the first of which has a number that is a multiple of 8.
template <class Type, int T>
HWY_INLINE void multiply_blocks(const Panel& panel, int blocks, const Groups32* const* x, float* accumulators) {
    const DI di;
    const DF df;
    const std::int8_t* q[T];
    HEADROOM_UNROLL
    for (int t = 0; t < T; ++t) q[t] = x[t]->q;
    for (int j = 0; j < blocks; ++j) {
        VI totals[T];
        HEADROOM_UNROLL
        for (int t = 0; t < T; ++t) totals[t] = Type::kOffset != 0 ? hn::Set(di, -Type::kOffset * x[t]->sums[j]) : hn::Zero(di);
        dot_groups<Type, T>(panel, 8 * j, 8, q, [&](VI (&sums)[T]) {
            HEADROOM_UNROLL
            for (int t = 0; t < T; ++t) totals[t] = Dot::flush(totals[t], sums[t]);
        });
        const VF d = hn::Load(df, panel.d[j]);
        HEADROOM_UNROLL
        for (int t = 0; t < T; ++t) {
            float* a = accumulators + t * kTokenFloats + (j % 4) * kRows;
            const VF scale = hn::Set(df, x[t]->scales[j]);
            const VF products = hn::ConvertTo(df, totals[t]);
            VF value;
            if constexpr (Type::kMinima) {
                const VF m = hn::Mul(hn::Load(df, panel.m[j]), hn::Set(df, static_cast<float>(x[t]->sums[j])));
                value = hn::Mul(scale, hn::MulAdd(d, products, m));
            } else {
                value = hn::Mul(hn::Mul(d, scale), products);
            }
            hn::Store(hn::Add(hn::Load(df, a), value), df, a);
        }
    }
}

}  // namespace headroom::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADROOM_KERNELS
#endif
