// Products of single tokens with quantized weights, once for each Highway target with kernels. Rows are read as they lie, four blocks of
// a row side by side in the 128-bit parts of a vector (two where vectors have two parts); four rows give a vector with a lane for each
// pair (block mod 4, row), in which the float sums of docs/arithmetic.md run.

#if defined(HEADROOM_ROWS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADROOM_ROWS_INL
#undef HEADROOM_ROWS_INL
#else
#define HEADROOM_ROWS_INL
#endif

#include "core/compute/cpu/panel-inl.h"

#if HEADROOM_KERNELS

HWY_BEFORE_NAMESPACE();
namespace headroom::cpu::HWY_NAMESPACE {

constexpr int kParts = kLanes / 4;       // blocks in a vector
constexpr int kVectors = 4 / kParts;     // vectors to a quad of blocks

// Sixteen bytes of each block of a vector.
struct Quad {
    VU v;
};
template <class F>
HWY_INLINE Quad each(const Quad& a, F f) {
    return {f(a.v)};
}
template <class F>
HWY_INLINE Quad each(const Quad& a, const Quad& b, F f) {
    return {f(a.v, b.v)};
}

// The addresses of a vector's blocks.
using BlockPointers = const std::byte* const*;
// How far ahead rows are fetched: they lie one behind the other, so this reaches into the next ones.
constexpr std::ptrdiff_t kAhead = 4096;
// Fetches as many bytes as a load at `offset` of each block takes.
HWY_INLINE void fetch_ahead(BlockPointers blocks, std::ptrdiff_t offset) {
    if (kParts == 4 || offset % 32 < 16) __builtin_prefetch(blocks[0] + kAhead + kParts * offset, 0, kToSecondLevel);
}

#if HWY_TARGET == HWY_AVX3_DL
HWY_INLINE VU load_blocks(BlockPointers blocks, std::ptrdiff_t offset) {
    fetch_ahead(blocks, offset);
    const auto load_part = [&](int i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(blocks[i] + offset)); };
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(load_part(0)), load_part(1), 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(load_part(2)), load_part(3), 1);
    return VU{_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1)};
}
HWY_INLINE VU every_part(__m128i part) { return VU{_mm512_broadcast_i32x4(part)}; }
template <int kOrder>
HWY_INLINE VU shuffle_dwords(VU v) {
    return VU{_mm512_shuffle_epi32(v.raw, static_cast<_MM_PERM_ENUM>(kOrder))};
}
HWY_INLINE VU shuffle_bytes(VU v, __m128i order) { return VU{_mm512_shuffle_epi8(v.raw, _mm512_broadcast_i32x4(order))}; }
HWY_INLINE VU shift_right_each(VU v, __m128i counts) { return VU{_mm512_srlv_epi32(v.raw, _mm512_broadcast_i32x4(counts))}; }
// Dwords 0 and 1 of each part of a, 2 and 3 of b.
HWY_INLINE VU lower_upper(VU a, VU b) { return VU{_mm512_mask_blend_epi32(0xcccc, a.raw, b.raw)}; }
HWY_INLINE VI widen_signed_lower(VU v) { return VI{_mm512_srai_epi16(_mm512_unpacklo_epi8(v.raw, v.raw), 8)}; }
HWY_INLINE VI widen_signed_upper(VU v) { return VI{_mm512_srai_epi16(_mm512_unpackhi_epi8(v.raw, v.raw), 8)}; }
HWY_INLINE VI multiply_16(VI a, VI b) { return VI{_mm512_mullo_epi16(a.raw, b.raw)}; }
HWY_INLINE VI multiply_pairs(VI a, VI b) { return VI{_mm512_madd_epi16(a.raw, b.raw)}; }
HWY_INLINE VI load_shorts(const std::int16_t* from) { return VI{_mm512_load_si512(from)}; }
HWY_INLINE VF every_part_of_four(const float* four_scales, int) {
    return VF{_mm512_permutexvar_ps(_mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0), _mm512_castps128_ps512(_mm_load_ps(four_scales)))};
}
HWY_INLINE VI saturated_pairs(VI a, VI b) { return VI{_mm512_packs_epi32(a.raw, b.raw)}; }
#else
HWY_INLINE VU load_blocks(BlockPointers blocks, std::ptrdiff_t offset) {
    fetch_ahead(blocks, offset);
    const auto load_part = [&](int i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(blocks[i] + offset)); };
    return VU{_mm256_inserti128_si256(_mm256_castsi128_si256(load_part(0)), load_part(1), 1)};
}
HWY_INLINE VU every_part(__m128i part) { return VU{_mm256_broadcastsi128_si256(part)}; }
template <int kOrder>
HWY_INLINE VU shuffle_dwords(VU v) {
    return VU{_mm256_shuffle_epi32(v.raw, kOrder)};
}
HWY_INLINE VU shuffle_bytes(VU v, __m128i order) { return VU{_mm256_shuffle_epi8(v.raw, _mm256_broadcastsi128_si256(order))}; }
HWY_INLINE VU shift_right_each(VU v, __m128i counts) { return VU{_mm256_srlv_epi32(v.raw, _mm256_broadcastsi128_si256(counts))}; }
HWY_INLINE VU lower_upper(VU a, VU b) { return VU{_mm256_blend_epi32(a.raw, b.raw, 0xcc)}; }
HWY_INLINE VI widen_signed_lower(VU v) { return VI{_mm256_srai_epi16(_mm256_unpacklo_epi8(v.raw, v.raw), 8)}; }
HWY_INLINE VI widen_signed_upper(VU v) { return VI{_mm256_srai_epi16(_mm256_unpackhi_epi8(v.raw, v.raw), 8)}; }
HWY_INLINE VI multiply_16(VI a, VI b) { return VI{_mm256_mullo_epi16(a.raw, b.raw)}; }
HWY_INLINE VI multiply_pairs(VI a, VI b) { return VI{_mm256_madd_epi16(a.raw, b.raw)}; }
HWY_INLINE VI load_shorts(const std::int16_t* from) { return VI{_mm256_load_si256(reinterpret_cast<const __m256i*>(from))}; }
HWY_INLINE VF every_part_of_four(const float* four_scales, int vector) {
    return VF{_mm256_insertf128_ps(_mm256_castps128_ps256(_mm_broadcast_ss(four_scales + 2 * vector)), _mm_broadcast_ss(four_scales + 2 * vector + 1), 1)};
}
#endif

struct RowPieces {
    using Piece = Quad;
    using Pointers = BlockPointers;
    static HWY_INLINE Quad load(BlockPointers blocks, std::ptrdiff_t offset) { return {load_blocks(blocks, offset)}; }
};

// ---- Heads: the integer scales of blocks as int16, in the order of sub-blocks, and the halves ----

struct Head {
    VI scales[2];  // sub-blocks 0 … 7 and, of types with sixteen, 8 … 15
    VI mins[2];
    VU halves;     // d, or d and dmin, in dword kDword of each part
};

HWY_INLINE __m128i bytes_16(const std::int8_t (&bytes)[16]) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)); }

template <class Type>
struct RowHead;

struct RowHeadQ4K {
    static constexpr int kDword = 0;
    static HWY_INLINE VF d(VU halves) { return halves_to_floats(mask(halves, 0xffff)); }
    static HWY_INLINE VF dmin(VU halves) { return halves_to_floats(hn::ShiftRight<16>(halves)); }
    static HWY_INLINE void read(BlockPointers blocks, Head& out) {
        static constexpr std::int8_t kScaleOrder[16] = {0, -1, 1, -1, 2, -1, 3, -1, 8, -1, 9, -1, 10, -1, 11, -1};
        static constexpr std::int8_t kMinOrder[16] = {4, -1, 5, -1, 6, -1, 7, -1, 12, -1, 13, -1, 14, -1, 15, -1};
        out.halves = load_blocks(blocks, 0);
        const VU first = shuffle_dwords<0x99>(out.halves);  // dwords 1, 2, 1, 2: scales 0-3, minima 0-3, and the top bits of the rest
        const VU rest = shift_right_each(shuffle_dwords<0xff>(out.halves), _mm_set_epi32(4, 0, 0, 0));
        const VU upper = hn::Or(mask(hn::ShiftRight<2>(first), 0x30303030U), mask(rest, 0x0f0f0f0fU));
        const VU bytes = lower_upper(mask(first, 0x3f3f3f3fU), upper);
        out.scales[0] = hn::BitCast(DI(), shuffle_bytes(bytes, bytes_16(kScaleOrder)));
        out.mins[0] = hn::BitCast(DI(), shuffle_bytes(bytes, bytes_16(kMinOrder)));
    }
};
template <>
struct RowHead<TypeQ4K> : RowHeadQ4K {};
template <>
struct RowHead<TypeQ5K> : RowHeadQ4K {};

// d in the upper half of the last dword.
struct RowHeadAtEnd {
    static constexpr int kDword = 3;
    static HWY_INLINE VF d(VU halves) { return halves_to_floats(hn::ShiftRight<16>(halves)); }
    static HWY_INLINE VF dmin(VU) { return hn::Zero(DF()); }
    static HWY_INLINE void widen(VU bytes, Head& out) {
        out.scales[0] = widen_signed_lower(bytes);
        out.scales[1] = widen_signed_upper(bytes);
    }
};
template <>
struct RowHead<TypeQ6K> : RowHeadAtEnd {
    static HWY_INLINE void read(BlockPointers blocks, Head& out) {
        widen(load_blocks(blocks, Q6K::kScales), out);
        out.halves = load_blocks(blocks, Q6K::kD - 14);
    }
};
template <>
struct RowHead<TypeQ3K> : RowHeadAtEnd {
    static HWY_INLINE void read(BlockPointers blocks, Head& out) {
        static constexpr std::int8_t kLowOrder[16] = {2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5, 6, 7, 8, 9};
        static constexpr std::int8_t kHighOrder[16] = {10, 11, 12, 13, 10, 11, 12, 13, 10, 11, 12, 13, 10, 11, 12, 13};
        out.halves = load_blocks(blocks, Q3K::kScales - 2);
        const VU low = mask(shift_right_each(shuffle_bytes(out.halves, bytes_16(kLowOrder)), _mm_set_epi32(4, 4, 0, 0)), 0x0f0f0f0fU);
        const VU high = mask(shift_right_each(shuffle_bytes(out.halves, bytes_16(kHighOrder)), _mm_set_epi32(6, 4, 2, 0)), 0x03030303U);
        const hn::Repartition<std::int8_t, DU> d8;
        const auto bytes = hn::Sub(hn::BitCast(d8, hn::Or(low, hn::ShiftLeft<4>(high))), hn::Set(d8, 32));
        widen(hn::BitCast(DU(), bytes), out);
    }
};
template <>
struct RowHead<TypeQ2K> {
    static constexpr int kDword = 3;
    static HWY_INLINE VF d(VU halves) { return halves_to_floats(mask(halves, 0xffff)); }
    static HWY_INLINE VF dmin(VU halves) { return halves_to_floats(hn::ShiftRight<16>(halves)); }
    static HWY_INLINE void read(BlockPointers blocks, Head& out) {
        const VU bytes = load_blocks(blocks, Q2K::kScales);
        out.scales[0] = widen_signed_lower(low_nibbles(bytes));
        out.scales[1] = widen_signed_upper(low_nibbles(bytes));
        out.mins[0] = widen_signed_lower(high_nibbles(bytes));
        out.mins[1] = widen_signed_upper(high_nibbles(bytes));
        out.halves = load_blocks(blocks, Q2K::kD - 12);
    }
};
template <>
struct RowHead<TypeIq4Xs> {
    static constexpr int kDword = 0;
    static HWY_INLINE VF d(VU halves) { return halves_to_floats(mask(halves, 0xffff)); }
    static HWY_INLINE VF dmin(VU) { return hn::Zero(DF()); }
    static HWY_INLINE void read(BlockPointers blocks, Head& out) {
        static constexpr std::int8_t kLowOrder[16] = {4, -1, 4, -1, 5, -1, 5, -1, 6, -1, 6, -1, 7, -1, 7, -1};
        static constexpr std::int8_t kHighOrder[16] = {2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3};
        const DI d;
        const hn::Repartition<std::uint16_t, DU> d16;
        out.halves = load_blocks(blocks, 0);
        // Multiplied into place: nibble j to bits 4-7, the upper bits to 14-15.
        const VI low = multiply_16(hn::BitCast(d, shuffle_bytes(out.halves, bytes_16(kLowOrder))),
                                   hn::BitCast(d, every_part(_mm_set_epi16(1, 16, 1, 16, 1, 16, 1, 16))));
        const VI high = multiply_16(hn::BitCast(d, shuffle_bytes(out.halves, bytes_16(kHighOrder))),
                                    hn::BitCast(d, every_part(_mm_set_epi16(1, 4, 16, 64, 256, 1024, 4096, 16384))));
        const auto low4 = hn::ShiftRight<4>(hn::And(hn::BitCast(d16, low), hn::Set(d16, 0xf0)));
        const auto high2 = hn::ShiftLeft<4>(hn::ShiftRight<14>(hn::BitCast(d16, high)));
        out.scales[0] = hn::BitCast(d, hn::Sub(hn::Or(low4, high2), hn::Set(d16, 32)));
    }
};

// Scales j, j + 1, … of eight int16 to a part, each repeated to fill the part.
template <int kCount>
struct ScaleOrders {
    static constexpr auto kBytes = [] {
        std::array<std::array<std::int8_t, 16>, 8 / kCount> orders{};
        for (int i = 0; i < 8 / kCount; ++i) {
            for (int lane = 0; lane < 8; ++lane) {
                const int scale = i * kCount + lane / (8 / kCount);
                orders[static_cast<std::size_t>(i)][static_cast<std::size_t>(2 * lane)] = static_cast<std::int8_t>(2 * scale);
                orders[static_cast<std::size_t>(i)][static_cast<std::size_t>(2 * lane + 1)] = static_cast<std::int8_t>(2 * scale + 1);
            }
        }
        return orders;
    }();
};
template <int kCount>
HWY_INLINE VI repeat_scales(VI scales, int first) {
    const auto& order = ScaleOrders<kCount>::kBytes[static_cast<std::size_t>(first / kCount)];
    return hn::BitCast(DI(), shuffle_bytes(hn::BitCast(DU(), scales), _mm_loadu_si128(reinterpret_cast<const __m128i*>(order.data()))));
}

// ---- Integer sums: a dword for each four lanes' worth of a part; the four of a part are added later ----

#if HWY_TARGET == HWY_AVX3_DL
template <class Type>
HWY_INLINE VI add_dot(VI sum, VU codes, const std::int8_t* x) {
    __m512i s = sum.raw;
    asm("vpdpbusd %2, %1, %0" : "+v"(s) : "v"(codes.raw), "m"(*reinterpret_cast<const char(*)[64]>(x)));
    return VI{s};
}
// Integer products of a superblock with its scales. x: the first byte of the vector's parts in Quad256::q.
template <class Type>
HWY_INLINE VI scaled_products(BlockPointers blocks, const VI (&scales)[2], const std::int8_t* x) {
    constexpr int kSums = 256 / Type::kWidth;
    VI sums[kSums];
    HEADROOM_UNROLL
    for (int j = 0; j < kSums; ++j) sums[j] = hn::Zero(DI());
    Type::template codes<RowPieces>(blocks, [&](int k, Quad v) { sums[k / Type::kWidth] = add_dot<Type>(sums[k / Type::kWidth], v.v, x + k / 16 * 64); });
    VI total = hn::Zero(DI());
    HEADROOM_UNROLL
    for (int j = 0; j < kSums; j += 2) {
        if constexpr (Type::kMaxCode > 127) {
            HEADROOM_UNROLL
            for (int i = j; i < j + 2; ++i) {
                // The scale in both halves of each dword, then its sign.
                const VI scale = hn::ShiftRight<16>(repeat_scales<1>(scales[i / 8], i % 8));
                total = hn::Add(total, hn::Mul(sums[i], scale));
            }
        } else {
            // Sums of up to 8 products of 7 bits and less fit 16 bits: two sub-blocks at once.
            const VI pair = saturated_pairs(sums[j], sums[j + 1]);
            __m512i s = total.raw;
            asm("vpdpwssd %2, %1, %0" : "+v"(s) : "v"(pair.raw), "v"(repeat_scales<2>(scales[j / 8], j % 8).raw));
            total = VI{s};
        }
    }
    return total;
}
template <class Type>
HWY_INLINE VI plain_products(BlockPointers blocks, const std::int8_t* x) {
    VI sum = hn::Zero(DI());
    Type::template codes<RowPieces>(blocks, [&](int k, Quad v) { sum = add_dot<Type>(sum, v.v, x + k / 16 * 64); });
    return sum;
}
#else
// Sixteen products of a part as eight int16.
template <class Type>
HWY_INLINE __m256i pair_products(VU codes, const std::int8_t* x) {
    const __m256i v = _mm256_load_si256(reinterpret_cast<const __m256i*>(x));
    if constexpr (Type::kSigned) return _mm256_maddubs_epi16(_mm256_abs_epi8(codes.raw), _mm256_sign_epi8(v, codes.raw));
    else return _mm256_maddubs_epi16(codes.raw, v);
}
template <class Type>
HWY_INLINE VI scaled_products(BlockPointers blocks, const VI (&scales)[2], const std::int8_t* x) {
    // Sixteenths whose sums may share 16 bits.
    constexpr int kStep = Type::kSigned ? 16 : Type::kWidth;
    constexpr int kSums = 256 / kStep;
    __m256i sums[kSums];
    HEADROOM_UNROLL
    for (int j = 0; j < kSums; ++j) sums[j] = _mm256_setzero_si256();
    Type::template codes<RowPieces>(blocks, [&](int k, Quad v) {
        sums[k / kStep] = _mm256_add_epi16(sums[k / kStep], pair_products<Type>(v.v, x + k / 16 * 64));
    });
    VI total = hn::Zero(DI());
    HEADROOM_UNROLL
    for (int j = 0; j < kSums; ++j) {
        const int scale = j * kStep / Type::kWidth;
        total = hn::Add(total, multiply_pairs(VI{sums[j]}, repeat_scales<1>(scales[scale / 8], scale % 8)));
    }
    return total;
}
template <class Type>
HWY_INLINE VI plain_products(BlockPointers blocks, const std::int8_t* x) {
    const VI ones = VI{_mm256_set1_epi16(1)};
    VI total = hn::Zero(DI());
    if constexpr (Type::kSigned) {
        Type::template codes<RowPieces>(blocks, [&](int k, Quad v) {
            total = hn::Add(total, multiply_pairs(VI{pair_products<Type>(v.v, x + k / 16 * 64)}, ones));
        });
    } else {
        __m256i sum = _mm256_setzero_si256();
        Type::template codes<RowPieces>(blocks, [&](int k, Quad v) { sum = _mm256_add_epi16(sum, pair_products<Type>(v.v, x + k / 16 * 64)); });
        total = multiply_pairs(VI{sum}, ones);
    }
    return total;
}
#endif

// Lane (part, row): the sum of the four dwords of that part of v[row].
HWY_INLINE VI add_across(const VI (&v)[4]) {
    const DI d;
    const hn::Repartition<std::int64_t, DI> d64;
    const auto first = hn::BitCast(d64, hn::Add(hn::InterleaveLower(d, v[0], v[1]), hn::InterleaveUpper(d, v[0], v[1])));
    const auto second = hn::BitCast(d64, hn::Add(hn::InterleaveLower(d, v[2], v[3]), hn::InterleaveUpper(d, v[2], v[3])));
    return hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, first, second)), hn::BitCast(d, hn::InterleaveUpper(d64, first, second)));
}
// Lane (part, row): dword kDword (0 or 3) of that part of v[row].
template <int kDword>
HWY_INLINE VU pick_across(const VU (&v)[4]) {
    const DU d;
    const hn::Repartition<std::uint64_t, DU> d64;
    if constexpr (kDword == 0) {
        return hn::BitCast(d, hn::InterleaveLower(d64, hn::BitCast(d64, hn::InterleaveLower(d, v[0], v[1])), hn::BitCast(d64, hn::InterleaveLower(d, v[2], v[3]))));
    } else {
        return hn::BitCast(d, hn::InterleaveUpper(d64, hn::BitCast(d64, hn::InterleaveUpper(d, v[0], v[1])), hn::BitCast(d64, hn::InterleaveUpper(d, v[2], v[3]))));
    }
}

// ---- The values of a vector of blocks in four rows: blocks[row][part] ----

constexpr int log2_of(int n) { return n <= 1 ? 0 : 1 + log2_of(n / 2); }

template <class Type>
HWY_INLINE VF block_values(const std::byte* const (&blocks)[4][kParts], const Quad256& x, int vector) {
    const DF df;
    const int part = vector * kParts;
    const std::int8_t* q = x.q[0][part];
    VI totals[4], minima[4];
    VU halves[4];
    for (int row = 0; row < 4; ++row) {
        Head head;
        RowHead<Type>::read(blocks[row], head);
        VI total = scaled_products<Type>(blocks[row], head.scales, q);
        constexpr bool kHasSums = Type::kMinima || Type::kOffset != 0;
        if constexpr (kHasSums) {
            const VI (&factors)[2] = Type::kMinima ? head.mins : head.scales;
            VI sums;
            if constexpr (Type::kWidth == 32) {
                sums = multiply_pairs(factors[0], load_shorts(x.sums32[part]));
            } else {
                sums = hn::Add(multiply_pairs(factors[0], load_shorts(x.sums16[0][part])), multiply_pairs(factors[1], load_shorts(x.sums16[1][part])));
            }
            if constexpr (Type::kMinima) minima[row] = sums;
            else total = hn::Sub(total, hn::ShiftLeft<log2_of(Type::kOffset)>(sums));
        }
        totals[row] = total;
        halves[row] = head.halves;
    }
    const VU head = pick_across<RowHead<Type>::kDword>(halves);
    const VF d = RowHead<Type>::d(head);
    const VF products = hn::ConvertTo(df, add_across(totals));
    const VF scale = every_part_of_four(x.scales, vector);
    if constexpr (Type::kMinima) {
        const VF sums = hn::Mul(RowHead<Type>::dmin(head), hn::ConvertTo(df, add_across(minima)));
        return hn::Mul(scale, hn::MulSub(d, products, sums));
    } else {
        return hn::Mul(scale, hn::Mul(d, products));
    }
}

template <class Type>
HWY_INLINE VF block_values(const std::byte* const (&blocks)[4][kParts], const Quad32& x, int vector) {
    const DF df;
    const DI di;
    const int part = vector * kParts;
    const std::int8_t* q = x.q[0][part];
    VI totals[4];
    VU halves[4];
    for (int row = 0; row < 4; ++row) {
        totals[row] = plain_products<Type>(blocks[row], q);
        halves[row] = load_blocks(blocks[row], 0);
    }
    const VU head = pick_across<0>(halves);
    const VF d = halves_to_floats(mask(head, 0xffff));
    const VF scale = every_part_of_four(x.scales, vector);
    const VI sums = hn::BitCast(di, every_part_of_four(reinterpret_cast<const float*>(x.sums), vector));
    VI total = add_across(totals);
    if constexpr (Type::kOffset != 0) total = hn::Sub(total, hn::ShiftLeft<log2_of(Type::kOffset)>(sums));
    const VF products = hn::ConvertTo(df, total);
    if constexpr (Type::kMinima) {
        const VF m = hn::Mul(halves_to_floats(hn::ShiftRight<16>(head)), hn::ConvertTo(df, sums));
        return hn::Mul(scale, hn::MulAdd(d, products, m));
    } else {
        return hn::Mul(hn::Mul(d, scale), products);
    }
}

// Four rows from `row` on (or what is left of the matrix) with one token; its quads lie `step` apart.
template <class Type, class QuadType>
HWY_INLINE void multiply_four_rows(const Matrix& w, std::int64_t row, const QuadType* x, std::int64_t step, float* y) {
    constexpr std::int64_t kBlockElements = std::is_same_v<QuadType, Quad256> ? kSuperblock : kBlock;
    const std::int64_t rows = std::min<std::int64_t>(4, w.rows - row);
    const std::int64_t blocks = w.cols / kBlockElements;
    const std::byte* bases[4];
    for (std::int64_t r = 0; r < 4; ++r) bases[r] = w.data + (row + std::min(r, rows - 1)) * w.row_bytes;
    VF sums[kVectors];
    HEADROOM_UNROLL
    for (int v = 0; v < kVectors; ++v) sums[v] = hn::Zero(DF());
    for (std::int64_t b = 0; b < blocks; b += 4, x += step) {
        HEADROOM_UNROLL
        for (int v = 0; v < kVectors; ++v) {
            // Behind the row's end the activations are zero, so that any block does.
            const std::byte* pointers[4][kParts];
            HEADROOM_UNROLL
            for (int i = 0; i < kParts; ++i) {
                const std::int64_t offset = std::min(b + v * kParts + i, blocks - 1) * Type::kBytes;
                HEADROOM_UNROLL
                for (int r = 0; r < 4; ++r) pointers[r][i] = bases[r] + offset;
            }
            sums[v] = hn::Add(sums[v], block_values<Type>(pointers, *x, v));
        }
    }
#if HWY_TARGET == HWY_AVX3_DL
    // Parts 0 + 2 and 1 + 3.
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(sums[0].raw), _mm512_extractf32x8_ps(sums[0].raw, 1));
#else
    const __m256 half = _mm256_add_ps(sums[0].raw, sums[1].raw);
#endif
    const __m128 result = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    if (rows == 4) {
        _mm_storeu_ps(y + row, result);
    } else {
        alignas(16) float values[4];
        _mm_store_ps(values, result);
        std::copy(values, values + rows, y + row);
    }
}

}  // namespace headroom::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADROOM_KERNELS
#endif
