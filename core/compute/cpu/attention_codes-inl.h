// Attention's scores and outputs where keys and values are int8 codes with scales, once for each Highway target with kernels. Keys are turned
// so that a lane is a position, values so that a lane is an element; four neighbouring codes of the other dimension are a lane's 32 bits.

#if defined(HEADROOM_ATTENTION_CODES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADROOM_ATTENTION_CODES_INL
#undef HEADROOM_ATTENTION_CODES_INL
#else
#define HEADROOM_ATTENTION_CODES_INL
#endif

#include "core/compute/cpu/attention_sums-inl.h"
#include "core/compute/cpu/quantize.h"

#if HEADROOM_KERNELS

HWY_BEFORE_NAMESPACE();
namespace headroom::cpu::HWY_NAMESPACE {

constexpr int kFours = static_cast<int>(kKvBlock / 4);  // lanes' worth of codes in a block
static_assert(kKvBlock == kStripPositions);             // so that a turned block is as large either way

HWY_INLINE __m256i load_32(const std::int8_t* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }

// 32 bytes of each of kLanes rows, `stride` apart: to[i] has bytes 4 i to 4 i + 3 of the rows, a row to a lane.
#if HWY_TARGET == HWY_AVX3_DL
HWY_INLINE void turn(const std::int8_t* from, std::int64_t stride, __m512i (&to)[kFours]) {
    // Rows 4 apart share a vector, so that the last step leaves them in order.
    __m512i fours[2][4];  // [rows 0 to 7 or 8 to 15][byte group i and i + 4]
    HEADROOM_UNROLL
    for (int half = 0; half < 2; ++half) {
        __m512i row[4];
        HEADROOM_UNROLL
        for (int i = 0; i < 4; ++i) {
            const std::int8_t* at = from + (8 * half + i) * stride;
            row[i] = _mm512_inserti64x4(_mm512_castsi256_si512(load_32(at)), load_32(at + 4 * stride), 1);
        }
        const __m512i ab = _mm512_unpacklo_epi32(row[0], row[1]), ab2 = _mm512_unpackhi_epi32(row[0], row[1]);
        const __m512i cd = _mm512_unpacklo_epi32(row[2], row[3]), cd2 = _mm512_unpackhi_epi32(row[2], row[3]);
        fours[half][0] = _mm512_unpacklo_epi64(ab, cd);
        fours[half][1] = _mm512_unpackhi_epi64(ab, cd);
        fours[half][2] = _mm512_unpacklo_epi64(ab2, cd2);
        fours[half][3] = _mm512_unpackhi_epi64(ab2, cd2);
    }
    HEADROOM_UNROLL
    for (int i = 0; i < 4; ++i) {
        to[i] = _mm512_shuffle_i32x4(fours[0][i], fours[1][i], 0x88);
        to[i + 4] = _mm512_shuffle_i32x4(fours[0][i], fours[1][i], 0xdd);
    }
}
HWY_INLINE void store_raw(__m512i v, std::int8_t* to) { _mm512_storeu_si512(to, v); }
HWY_INLINE __m512i load_raw(const std::int8_t* from) { return _mm512_loadu_si512(from); }
#else
HWY_INLINE void turn(const std::int8_t* from, std::int64_t stride, __m256i (&to)[kFours]) {
    __m256i fours[2][4];
    HEADROOM_UNROLL
    for (int half = 0; half < 2; ++half) {
        __m256i row[4];
        HEADROOM_UNROLL
        for (int i = 0; i < 4; ++i) row[i] = load_32(from + (4 * half + i) * stride);
        const __m256i ab = _mm256_unpacklo_epi32(row[0], row[1]), ab2 = _mm256_unpackhi_epi32(row[0], row[1]);
        const __m256i cd = _mm256_unpacklo_epi32(row[2], row[3]), cd2 = _mm256_unpackhi_epi32(row[2], row[3]);
        fours[half][0] = _mm256_unpacklo_epi64(ab, cd);
        fours[half][1] = _mm256_unpackhi_epi64(ab, cd);
        fours[half][2] = _mm256_unpacklo_epi64(ab2, cd2);
        fours[half][3] = _mm256_unpackhi_epi64(ab2, cd2);
    }
    HEADROOM_UNROLL
    for (int i = 0; i < 4; ++i) {
        to[i] = _mm256_permute2x128_si256(fours[0][i], fours[1][i], 0x20);
        to[i + 4] = _mm256_permute2x128_si256(fours[0][i], fours[1][i], 0x31);
    }
}
HWY_INLINE void store_raw(__m256i v, std::int8_t* to) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); }
HWY_INLINE __m256i load_raw(const std::int8_t* from) { return load_32(from); }
#endif

constexpr std::int64_t kTurned = kFours * kLanes * 4;  // bytes of kLanes rows of a block

HWY_INLINE void turn_to(const std::int8_t* from, std::int64_t stride, std::int8_t* to) {
    decltype(VI().raw) fours[kFours];
    turn(from, stride, fours);
    HEADROOM_UNROLL
    for (int i = 0; i < kFours; ++i) store_raw(fours[i], to + i * kLanes * 4);
}

// The codes of a query.
struct QueryCodes {
    alignas(kCacheLine) std::int8_t q[kMostQuantizedWidth];
    float scales[kMostQuantizedWidth / kKvBlock];
    std::int32_t sums[kMostQuantizedWidth / kKvBlock];  // of each block's codes
};

HWY_INLINE std::int32_t four_codes(const void* from) { return load_unaligned<std::int32_t>(from); }

// The sums of a block's products: a key to a lane, of a turned block.
HWY_INLINE VI key_products(const std::int8_t* keys, const QueryCodes& query, std::int64_t block) {
    const std::int8_t* q = query.q + block * kKvBlock;
#if HWY_TARGET == HWY_AVX3_DL
    // The keys are made unsigned, which adds 128 times the query's sum.
    const __m512i sign = _mm512_set1_epi8(-128);
    __m512i sum = _mm512_set1_epi32(-128 * query.sums[block]);
    HEADROOM_UNROLL
    for (int i = 0; i < kFours; ++i) {
        const __m512i key = _mm512_xor_si512(load_raw(keys + i * kLanes * 4), sign);
        asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(key), "m"(*reinterpret_cast<const std::int32_t*>(q + 4 * i)));
    }
#else
    __m256i sum = _mm256_setzero_si256();
    HEADROOM_UNROLL
    for (int i = 0; i < kFours; ++i) {
        const __m256i four = _mm256_set1_epi32(four_codes(q + 4 * i));
        const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(four), _mm256_sign_epi8(load_raw(keys + i * kLanes * 4), four));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    }
#endif
    return VI{sum};
}

// The weights of a strip as integers for the values of a block: 128 * high + low.
struct WeightCodes {
    alignas(kCacheLine) std::uint8_t high[kStripPositions];
    alignas(kCacheLine) std::uint8_t low[kStripPositions];
    float scale;
};

// p: a strip's weights, 0 for what is not seen; scales: of the block at its positions.
HWY_INLINE void make_codes(const float* p, const std::uint16_t* scales, WeightCodes& out) {
    const DF d;
    const DI di;
    const hn::Rebind<std::uint8_t, DI> d8;
    VF weights[kSum32];
    VF largest_lanes = hn::Zero(d);
    HEADROOM_UNROLL
    for (int j = 0; j < kSum32; ++j) {
        const VF weight = load(p + j * kLanes);
        weights[j] = hn::IfThenElseZero(hn::Gt(weight, hn::Zero(d)), hn::Mul(weight, load_halves(scales + j * kLanes)));
        largest_lanes = hn::Max(largest_lanes, weights[j]);
    }
    const float largest = hn::GetLane(hn::MaxOfLanes(d, largest_lanes));
    const bool any = largest >= kSmallestGroup;
    const VF inverse = hn::Set(d, any ? kMostWeightCode / largest : 0.0F);
    out.scale = any ? largest / kMostWeightCode : 0.0F;
    HEADROOM_UNROLL
    for (int j = 0; j < kSum32; ++j) {
        const VI code = hn::NearestInt(hn::Mul(weights[j], inverse));
        hn::StoreU(hn::DemoteTo(d8, hn::ShiftRight<7>(code)), d8, out.high + j * kLanes);
        hn::StoreU(hn::DemoteTo(d8, hn::And(code, hn::Set(di, 127))), d8, out.low + j * kLanes);
    }
}

// The sums of a strip's products: an element to a lane, of turned values.
HWY_INLINE VI value_products(const std::int8_t* values, const WeightCodes& codes) {
#if HWY_TARGET == HWY_AVX3_DL
    __m512i high = _mm512_setzero_si512(), low = _mm512_setzero_si512();
    HEADROOM_UNROLL
    for (int i = 0; i < kFours; ++i) {
        const __m512i value = load_raw(values + i * kLanes * 4);
        asm("vpdpbusd %2, %1, %0" : "+v"(high) : "v"(_mm512_set1_epi32(four_codes(codes.high + 4 * i))), "v"(value));
        asm("vpdpbusd %2, %1, %0" : "+v"(low) : "v"(_mm512_set1_epi32(four_codes(codes.low + 4 * i))), "v"(value));
    }
    return VI{_mm512_add_epi32(_mm512_slli_epi32(high, 7), low)};
#else
    __m256i sum = _mm256_setzero_si256();
    HEADROOM_UNROLL
    for (int i = 0; i < kFours; ++i) {
        const __m256i value = load_raw(values + i * kLanes * 4);
        const __m256i high = _mm256_maddubs_epi16(_mm256_set1_epi32(four_codes(codes.high + 4 * i)), value);
        const __m256i low = _mm256_maddubs_epi16(_mm256_set1_epi32(four_codes(codes.low + 4 * i)), value);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(high, _mm256_set1_epi16(128)));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(low, _mm256_set1_epi16(1)));
    }
    return VI{sum};
#endif
}

// Keys and values that are codes.
class CodesForm {
public:
    static bool fits(const KvView& kv) { return can_quantize_kv(kv.head_dim, kv.head_dim_v); }

    CodesForm(const KvView& kv, const QueryBlock& block) : kv_(kv), block_(block) {
        const std::int64_t width = kv.head_dim;
        Groups32 groups;
        for (int i = 0; i < block.count; ++i) {
            quantize_row(block.queries[i].q, width, &groups, 1);
            std::copy_n(groups.q, width, queries_[i].q);
            std::copy_n(groups.scales, width / kKvBlock, queries_[i].scales);
            std::copy_n(groups.sums, width / kKvBlock, queries_[i].sums);
        }
    }

    void score(std::int64_t page, const Seen& seen, float* scores) const {
        const std::int64_t blocks = kv_.head_dim / kKvBlock;
        const KvCodes keys = kv_codes(kv_.k_pages[page], kv_.kv_heads, block_.kv_head, kv_.head_dim);
        alignas(kCacheLine) std::int8_t turned[kMostQuantizedWidth / kKvBlock * kTurned];
        alignas(kCacheLine) std::uint16_t scales[kMostQuantizedWidth / kKvBlock][kLanes];
        for (std::int64_t i = seen.begin[seen.low] / kLanes * kLanes; i < seen.end[seen.high - 1]; i += kLanes) {
            for (std::int64_t b = 0; b < blocks; ++b) {
                turn_to(keys.codes + i * kv_.head_dim + b * kKvBlock, kv_.head_dim, turned + b * kTurned);
                for (std::int64_t p = 0; p < kLanes; ++p) scales[b][p] = keys.scales[(i + p) * blocks + b];
            }
            for (int q = seen.low; q < seen.high; ++q) {
                const QueryCodes& query = queries_[q];
                VF sum = hn::Zero(DF());
                for (std::int64_t b = 0; b < blocks; ++b) {
                    const VF scale = hn::Mul(load_halves(scales[b]), hn::Set(DF(), query.scales[b]));
                    sum = hn::MulAdd(scale, hn::ConvertTo(DF(), key_products(turned + b * kTurned, query, b)), sum);
                }
                store(sum, scores + q * kPagePositions + i);
            }
        }
    }

    void sum(std::int64_t page, const Seen& seen, const PageSums* to, const float* weights) const {
        const std::int64_t width = kv_.head_dim_v, blocks = width / kKvBlock;
        const KvCodes values = kv_codes(kv_.v_pages[page], kv_.kv_heads, block_.kv_head, width);
        alignas(kCacheLine) float sums[kQueryBlock][kMostQuantizedWidth];
        for (int q = seen.low; q < seen.high; ++q) std::fill_n(sums[q], width, 0.0F);
        alignas(kCacheLine) std::int8_t turned[kKvBlock / kLanes * kTurned];
        for (std::int64_t strip = seen.begin[seen.low] / kStripPositions; strip * kStripPositions < seen.end[seen.high - 1]; ++strip) {
            for (std::int64_t b = 0; b < blocks; ++b) {
                const std::int8_t* codes = values.codes + (strip * width + b * kKvBlock) * kStripPositions;
                const std::uint16_t* scales = values.scales + (strip * blocks + b) * kStripPositions;
                HEADROOM_UNROLL
                for (int n = 0; n < kKvBlock / kLanes; ++n) turn_to(codes + n * kLanes * kStripPositions, kStripPositions, turned + n * kTurned);
                for (int q = seen.low; q < seen.high; ++q) {
                    if (seen.begin[q] >= (strip + 1) * kStripPositions || seen.end[q] <= strip * kStripPositions) continue;
                    WeightCodes weight;
                    make_codes(weights + q * kPagePositions + strip * kStripPositions, scales, weight);
                    const VF scale = hn::Set(DF(), weight.scale), factor = hn::Set(DF(), to[q].strips.factors[strip]);
                    HEADROOM_UNROLL
                    for (int n = 0; n < kKvBlock / kLanes; ++n) {
                        float* at = sums[q] + b * kKvBlock + n * kLanes;
                        const VF out = hn::Mul(hn::ConvertTo(DF(), value_products(turned + n * kTurned, weight)), scale);
                        store(hn::MulAdd(out, factor, load(at)), at);
                    }
                }
            }
        }
        for (int q = seen.low; q < seen.high; ++q) {
            for (std::int64_t d = 0; d < width; d += kLanes) store(rescaled(to[q].rescale, to[q].out + d, load(sums[q] + d)), to[q].out + d);
        }
    }

private:
    const KvView& kv_;
    const QueryBlock& block_;
    QueryCodes queries_[kQueryBlock];
};

}  // namespace headroom::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADROOM_KERNELS
#endif
