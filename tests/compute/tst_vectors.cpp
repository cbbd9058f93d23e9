#include <QTest>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "core/compute/cpu/arithmetic.h"
#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/quantize.h"
#include "core/compute/cpu/reference.h"
#include "tests/compute/random_data.h"
#include "tests/compute/targets.h"

using namespace headroom;
using namespace headroom::cpu;

namespace {

bool sameBits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}
// One instruction. The C library's fmaf is no measure: that of Windows rounds twice.
#ifdef __x86_64__
__attribute__((target("fma"))) float hardwareFma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
bool hasFma() { return __builtin_cpu_supports("fma") != 0; }
#else
float hardwareFma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
bool hasFma() { return true; }
#endif
constexpr std::int64_t kLengths[] = {1, 7, 8, 31, 32, 64, 100, 128, 256, 288, 1024, 3000};

}  // namespace

class TestVectors : public QObject {
    Q_OBJECT
private slots:
    void softwareFmaIsExact() {
        QCOMPARE(cpu::fma(0x1.000002p0F, 0x1.fffffep-1F, -1.0F), 0x1.fffffcp-25F);       // the product has 48 bits
        QCOMPARE(cpu::fma(0x1.000002p0F, 0x1.000002p0F, 0x1p-60F), 0x1.000004p0F);
        // The product is halfway between two floats, and the addend, far below a double's last bit, decides.
        QCOMPARE(cpu::fma(0x1.001p0F, 0x1.001p0F, 0x1p-100F), 0x1.002002p0F);
        QCOMPARE(cpu::fma(0x1.001p0F, 0x1.001p0F, -0x1p-100F), 0x1.002p0F);
        QCOMPARE(cpu::fma(0x1.001p0F, 0x1.001p0F, 0.0F), 0x1.002p0F);                     // a tie goes to the even one
        QCOMPARE(cpu::fma(-0x1.001p0F, 0x1.001p0F, -0x1p-100F), -0x1.002002p0F);
        QCOMPARE(cpu::fma(0x1p-75F, 0x1p-75F, 0x1p-149F), 0x1p-148F);                     // a tie among the subnormals
        QCOMPARE(cpu::fma(0x1p-75F, 0x1.8p-75F, 0.0F), 0x1p-149F);
    }
    void softwareFmaIsTheHardwares() {
        if (!hasFma()) QSKIP("this processor has no fused multiply-add");
        Random random(1);
        for (int i = 0; i < 200000; ++i) {
            // Any bit patterns, and values close enough together for cancellation.
            float a = std::bit_cast<float>(random.bits()), b = std::bit_cast<float>(random.bits()), c = std::bit_cast<float>(random.bits());
            if (i % 2 == 0) {
                a = random.value();
                b = random.value();
                c = -(a * b) * (1.0F + static_cast<float>(random.below(9) - 4) * 0x1p-23F);
            }
            const float expected = hardwareFma(a, b, c), seen = cpu::fma(a, b, c);
            if (std::isnan(expected)) QVERIFY(std::isnan(seen));
            else QCOMPARE(std::bit_cast<std::uint32_t>(seen), std::bit_cast<std::uint32_t>(expected));
        }
    }
    void halvesRoundToNearestEven() {
        for (std::uint32_t bits = 0; bits < 65536; ++bits) {  // every half comes back
            const float value = half_to_float(static_cast<std::uint16_t>(bits));
            if (!std::isnan(value)) QCOMPARE(float_to_half(value), static_cast<std::uint16_t>(bits));
        }
        QCOMPARE(half_to_float(0x3c00), 1.0F);
        QCOMPARE(half_to_float(0x0001), 0x1p-24F);
        QCOMPARE(half_to_float(0x7bff), 65504.0F);
        QCOMPARE(float_to_half(1.0F + 0x1p-11F), std::uint16_t{0x3c00});          // a tie goes to the even one
        QCOMPARE(float_to_half(1.0F + 3 * 0x1p-11F), std::uint16_t{0x3c02});
        QCOMPARE(float_to_half(65519.996F), std::uint16_t{0x7bff});
        QCOMPARE(float_to_half(65520.0F), std::uint16_t{0x7c00});
        QCOMPARE(float_to_half(0x1p-25F), std::uint16_t{0});
        QCOMPARE(float_to_half(0x1.000002p-25F), std::uint16_t{1});
        QCOMPARE(float_to_half(-0x1.ff8p-15F), std::uint16_t{0x83ff});               // the largest subnormal
        QCOMPARE(float_to_half(-0x1.ffcp-15F), std::uint16_t{0x8400});               // a tie above it
    }
    void storesHalvesLikeTheReference() {
        Random random(2);
        const std::int64_t heads = 2, k_dim = 37, v_dim = 64, tokens = 30, first = 250;
        std::vector<float> k = random.values(tokens * heads * k_dim), v(static_cast<std::size_t>(tokens * heads * v_dim));
        for (float& value : v) {
            do value = std::bit_cast<float>(random.bits());
            while (!std::isfinite(value));
        }
        const std::size_t k_size = heads * kPagePositions * k_dim, v_size = heads * kPagePositions * v_dim;
        ThreadPool pool(2);
        forEachTarget([&](const char* target) {
            std::vector<std::uint16_t> k_data(2 * k_size), v_data(2 * v_size);
            std::uint16_t* const k_halves[] = {k_data.data(), k_data.data() + k_size};
            std::uint16_t* const v_halves[] = {v_data.data(), v_data.data() + v_size};
            std::byte* const k_pages[] = {reinterpret_cast<std::byte*>(k_halves[0]), reinterpret_cast<std::byte*>(k_halves[1])};
            std::byte* const v_pages[] = {reinterpret_cast<std::byte*>(v_halves[0]), reinterpret_cast<std::byte*>(v_halves[1])};
            store_kv(pool, {k_pages, v_pages, heads, k_dim, v_dim}, k.data(), heads * k_dim, v.data(), heads * v_dim, tokens, first);
            for (std::int64_t t = 0; t < tokens; ++t) {
                const std::int64_t page = (first + t) / 256, slot = (first + t) % 256;
                for (std::int64_t h = 0; h < heads; ++h) {
                    for (std::int64_t d = 0; d < k_dim; ++d) {
                        QVERIFY2(k_halves[page][(h * 256 + slot) * k_dim + d] == float_to_half(k[static_cast<std::size_t>((t * heads + h) * k_dim + d)]), target);
                    }
                    for (std::int64_t d = 0; d < v_dim; ++d) {
                        QVERIFY2(v_halves[page][(h * 256 + slot) * v_dim + d] == float_to_half(v[static_cast<std::size_t>((t * heads + h) * v_dim + d)]), target);
                    }
                }
            }
        });
    }
    void expIsCloseAndExactAtZero() {
        QCOMPARE(cpu::exp(0.0F), 1.0F);
        QCOMPARE(cpu::exp(-0.0F), 1.0F);
        QCOMPARE(cpu::exp(-1000.0F), 0.0F);
        QCOMPARE(cpu::exp(-std::numeric_limits<float>::infinity()), 0.0F);
        QVERIFY(std::isinf(cpu::exp(89.0F)));
        QVERIFY(std::isfinite(cpu::exp(kExpHighest)));
        QVERIFY(std::isnormal(cpu::exp(kExpLowest)));
        for (float x = -87.0F; x < 88.5F; x += 0.00371F) {
            const double exact = std::exp(static_cast<double>(x));
            const auto nearest = static_cast<float>(exact);
            const double ulp = static_cast<double>(std::nextafter(nearest, std::numeric_limits<float>::infinity())) - static_cast<double>(nearest);
            QVERIFY2(std::abs(static_cast<double>(cpu::exp(x)) - exact) <= 1.0 * ulp, qPrintable(QString::number(x)));
        }
    }
    void quantizesLikeTheReference() {
        Random random(3);
        for (const std::int64_t cols : {32, 96, 256, 288, 1024}) {
            std::vector<float> x = random.values(cols);
            for (std::int64_t i = 0; i < 32; ++i) x[static_cast<std::size_t>(cols - 32 + i)] = cols == 288 ? 0.0F : x[static_cast<std::size_t>(i)] * 1e-32F;
            const std::int64_t groups = (cols + 255) / 256;
            std::vector<Groups32> expected32(static_cast<std::size_t>(groups)), seen32(static_cast<std::size_t>(groups));
            std::vector<Group256> expected256(static_cast<std::size_t>(groups)), seen256(static_cast<std::size_t>(groups));
            for (std::int64_t g = 0; g < groups; ++g) {
                reference::quantize(x.data() + 256 * g, std::min<std::int64_t>(256, cols - 256 * g), expected32[static_cast<std::size_t>(g)]);
                if (cols % 256 == 0) reference::quantize(x.data() + 256 * g, expected256[static_cast<std::size_t>(g)]);
            }
            forEachTarget([&](const char* target) {
                quantize_row(x.data(), cols, seen32.data(), 1);
                if (cols % 256 == 0) quantize_row(x.data(), cols, seen256.data(), 1);
                for (std::size_t g = 0; g < static_cast<std::size_t>(groups); ++g) {
                    QVERIFY2(std::memcmp(&seen32[g], &expected32[g], sizeof(Groups32)) == 0, target);
                    QVERIFY2(cols % 256 != 0 || std::memcmp(&seen256[g], &expected256[g], offsetof(Group256, unused)) == 0, target);
                }
            });
            // The reference itself: within half a step of the value, and the sums are sums.
            for (std::int64_t k = 0; k < cols; ++k) {
                const Groups32& group = expected32[static_cast<std::size_t>(k / 256)];
                const float step = group.scales[k % 256 / 32];
                QVERIFY(std::fabs(step * static_cast<float>(group.q[k % 256]) - x[static_cast<std::size_t>(k)]) <= step * 0.5001F + 1e-30F);
            }
        }
    }
    void rowOperatorsEqualTheReference() {
        Random random(4);
        ThreadPool pool(2);
        for (const std::int64_t n : kLengths) {
            const std::int64_t rows = 3, stride = n + 5;
            const std::vector<float> x = random.values(rows * stride), y = random.values(rows * stride), weight = random.values(n);
            const auto at = [stride](auto& v, std::int64_t t) { return v.data() + t * stride; };
            std::vector<float> norm = x, plain = x, glu = x, sum = x, soft = x;
            for (std::int64_t t = 0; t < rows; ++t) {
                reference::rms_norm(at(x, t), n, weight.data(), 1e-6F, at(norm, t));
                reference::rms_norm(at(x, t), n, nullptr, 1e-6F, at(plain, t));
                reference::swiglu(at(x, t), at(y, t), n, at(glu, t));
                for (std::int64_t i = 0; i < n; ++i) at(sum, t)[i] = at(x, t)[i] + at(y, t)[i];
                reference::softmax(at(soft, t), n);
            }
            forEachTarget([&](const char* target) {
                std::vector<float> out = x;
                rms_norm(pool, x.data(), rows, n, stride, weight.data(), 1e-6F, out.data());
                QVERIFY2(sameBits(out, norm), target);
                out = x;
                rms_norm(pool, out.data(), rows, n, stride, nullptr, 1e-6F, out.data());
                QVERIFY2(sameBits(out, plain), target);
                out = x;
                swiglu(pool, out.data(), y.data(), rows, n, stride, out.data());
                QVERIFY2(sameBits(out, glu), target);
                out = x;
                add(pool, out.data(), y.data(), rows, n, stride, stride);
                QVERIFY2(sameBits(out, sum), target);
                out = x;
                for (std::int64_t t = 0; t < rows; ++t) softmax(at(out, t), n);
                QVERIFY2(sameBits(out, soft), target);
                for (std::int64_t t = 0; t < rows; ++t) QVERIFY2(argmax(at(x, t), n) == std::max_element(at(x, t), at(x, t) + n) - at(x, t), target);
            });
            double total = 0;
            for (std::int64_t i = 0; i < n; ++i) total += static_cast<double>(soft[static_cast<std::size_t>(i)]);
            QVERIFY(std::abs(total - 1.0) < 1e-5);
        }
    }
    void argmaxTakesTheFirstOfEquals() {
        for (const std::int64_t n : {5, 3000}) {
            std::vector<float> x(static_cast<std::size_t>(n), -1.0F);
            x[3] = x[4] = x.back() = 2.0F;
            forEachTarget([&](const char* target) { QVERIFY2(argmax(x.data(), n) == 3, target); });
        }
    }
    void ropeEqualsTheReference() {
        Random random(5);
        ThreadPool pool(2);
        for (const std::int64_t half : {16, 32, 20, 64}) {
            for (const RopeLayout layout : {RopeLayout::adjacent, RopeLayout::halves}) {
                const std::int64_t tokens = 3, heads = 4, head_dim = 2 * half + 16, stride = heads * head_dim + 3;
                const std::vector<float> x = random.values(tokens * stride);
                std::vector<float> cosine(static_cast<std::size_t>(tokens * half)), sine(cosine.size());
                for (std::size_t i = 0; i < cosine.size(); ++i) {
                    const auto angle = static_cast<double>(random.value());
                    cosine[i] = static_cast<float>(std::cos(angle));
                    sine[i] = static_cast<float>(std::sin(angle));
                }
                std::vector<float> expected = x;
                for (std::int64_t t = 0; t < tokens; ++t) {
                    reference::rope(expected.data() + t * stride, heads, head_dim, cosine.data() + t * half, sine.data() + t * half, half, layout);
                }
                forEachTarget([&](const char* target) {
                    std::vector<float> out = x;
                    rope(pool, out.data(), tokens, heads, head_dim, stride, cosine.data(), sine.data(), half, layout);
                    QVERIFY2(sameBits(out, expected), target);
                });
            }
        }
    }
    void mixtureAddsInRankOrder() {
        Random random(6);
        ThreadPool pool(2);
        const std::int64_t tokens = 3, used = 5, n = 45;
        const std::vector<float> x = random.values(tokens * n), y = random.values(tokens * used * n), weights = random.values(tokens * used);
        std::vector<const float*> outputs;
        for (std::int64_t i = 0; i < tokens * used; ++i) outputs.push_back(y.data() + (tokens * used - 1 - i) * n);
        std::vector<float> expected = x;
        for (std::int64_t t = 0; t < tokens; ++t) reference::combine_experts(expected.data() + t * n, outputs.data() + t * used, weights.data() + t * used, used, n);
        forEachTarget([&](const char* target) {
            std::vector<float> out = x;
            combine_experts(pool, out.data(), n, outputs.data(), weights.data(), tokens, used, n);
            QVERIFY2(sameBits(out, expected), target);
        });
    }
    void routesToTheLargestFirst() {
        const std::vector<float> scores = {0.5F, 2.0F, -1.0F, 2.0F, 1.0F, /* second token */ 0, 0, 0, 0, 0};
        std::vector<std::int32_t> experts(6);
        std::vector<float> weights(6);
        route(scores.data(), 2, 5, 3, true, experts.data(), weights.data());
        QCOMPARE(experts, (std::vector<std::int32_t>{1, 3, 4, 0, 1, 2}));
        QVERIFY(std::fabs(weights[0] - 0.422319F) < 1e-5F && weights[0] == weights[1]);
        QVERIFY(std::fabs(weights[0] + weights[1] + weights[2] - 1.0F) < 1e-6F);
        route(scores.data(), 2, 5, 3, false, experts.data(), weights.data());
        std::vector<float> all(scores.begin(), scores.begin() + 5);
        softmax(all.data(), 5);
        QCOMPARE(weights[0], all[1]);
        QCOMPARE(weights[2], all[4]);
        QCOMPARE(weights[3], 0.2F);
    }
    // Many scores, with ties: the order of a stable sort, and softmax's own probabilities on every target.
    void routesLikeSortAndSoftmax() {
        Random random(7);
        for (const std::int64_t n : {8, 50, 64, 128}) {
            const std::int64_t used = 8;
            std::vector<float> scores(static_cast<std::size_t>(n));
            for (float& score : scores) score = static_cast<float>(random.below(20)) * 0.25F;
            std::vector<std::int32_t> order(static_cast<std::size_t>(n));
            std::iota(order.begin(), order.end(), 0);
            std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
                return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
            });
            std::vector<float> all = scores;
            reference::softmax(all.data(), n);
            forEachTarget([&](const char* target) {
                std::vector<std::int32_t> experts(static_cast<std::size_t>(used));
                std::vector<float> weights(static_cast<std::size_t>(used));
                route(scores.data(), 1, n, used, false, experts.data(), weights.data());
                for (std::size_t rank = 0; rank < static_cast<std::size_t>(used); ++rank) {
                    QVERIFY2(experts[rank] == order[rank], target);
                    QVERIFY2(weights[rank] == all[static_cast<std::size_t>(order[rank])], target);
                }
            });
        }
    }
};

QTEST_GUILESS_MAIN(TestVectors)
#include "tst_vectors.moc"
