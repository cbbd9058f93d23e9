#include <QTest>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "core/compute/cpu/arithmetic.h"
#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/reference.h"
#include "tests/compute/random_data.h"
#include "tests/compute/targets.h"

using namespace headroom;
using namespace headroom::cpu;

Q_DECLARE_METATYPE(headroom::cpu::KvType)

namespace {

// A cache of `positions` random positions; what lies behind them is not a number, so that a kernel that looks there is found out.
struct Cache {
    Cache(KvType type, std::int64_t positions, std::int64_t kv_heads, std::int64_t k_dim, std::int64_t v_dim, Random& random) {
        for (std::int64_t page = 0; page * kPagePositions < positions; ++page) {
            for (auto& [pages, dim] : {std::pair(&k, k_dim), std::pair(&v, v_dim)}) {
                // As halves, and as scales, not a number; as codes 126 and 0.
                storage.emplace_back(static_cast<std::size_t>(kv_part_bytes(type, kv_heads, dim) / 2), std::uint16_t{0x7e00});
                pages->push_back(reinterpret_cast<std::byte*>(storage.back().data()));
            }
        }
        view = {k.data(), v.data(), kv_heads, k_dim, v_dim, type};
        for (std::int64_t i = 0; i < positions; ++i) {
            keys.push_back(random.values(kv_heads * k_dim));
            values.push_back(random.values(kv_heads * v_dim));
            // A few with nothing in them, as many together as a strip has, and small ones.
            if (i / kStripPositions % 5 == 3) std::ranges::fill(values.back(), 0.0F);
            if (i % 11 == 7) std::ranges::fill(keys.back(), 0x1p-30F);
            if (i % 13 == 5) std::ranges::fill(values.back(), -0x1p-22F);
            reference::store_kv(view, keys.back().data(), values.back().data(), i);
        }
    }
    std::vector<std::vector<std::uint16_t>> storage;
    std::vector<std::byte*> k, v;
    std::vector<std::vector<float>> keys, values;  // of each position, before they were rounded
    KvView view;
};

struct Case {
    std::int64_t heads, kv_heads, k_dim, v_dim, first, tokens, window;
};

}  // namespace

class TestAttention : public QObject {
    Q_OBJECT
private slots:
    void equalsReferenceBitByBit_data() {
        QTest::addColumn<KvType>("type");
        QTest::newRow("f16") << KvType::f16;
        QTest::newRow("q8_0") << KvType::q8_0;
    }
    void equalsReferenceBitByBit() {
        QFETCH(const KvType, type);
        const Case cases[] = {{2, 1, 64, 64, 0, 1, 0},   {4, 2, 128, 128, 300, 1, 0}, {8, 2, 64, 64, 0, 37, 0},    {6, 2, 32, 48, 250, 20, 0},
                              {3, 3, 96, 32, 511, 2, 0}, {4, 1, 64, 64, 600, 9, 100}, {2, 2, 64, 128, 240, 40, 7}, {4, 4, 40, 24, 255, 3, 0},
                              {14, 2, 64, 64, 1030, 1, 0}, {5, 1, 160, 256, 33, 21, 31},
                              {8, 1, 256, 64, 767, 3, 260}};
        Random random(1);
        for (const Case& c : cases) {
            if (type == KvType::q8_0 && !can_quantize_kv(c.k_dim, c.v_dim)) continue;
            const Cache cache(type, c.first + c.tokens, c.kv_heads, c.k_dim, c.v_dim, random);
            // Some queries choose one key, so that the others' weights vanish; one is nothing.
            std::vector<float> q = random.values(c.tokens * (c.heads * c.k_dim + 1));
            for (std::size_t i = 0; i < q.size(); ++i) q[i] *= i % 7 < 2 ? 60.0F : 1.0F;
            std::fill_n(q.begin(), c.k_dim, 0.0F);
            const std::int64_t out_stride = c.heads * c.v_dim + 2;
            const AttentionShape shape{c.heads, c.tokens, c.first, c.window, 0.125F};
            std::vector<float> expected(static_cast<std::size_t>(c.tokens * out_stride), 9.0F);
            for (std::int64_t t = 0; t < c.tokens; ++t) {
                for (std::int64_t h = 0; h < c.heads; ++h) {
                    reference::attention(shape, q.data() + t * (c.heads * c.k_dim + 1) + h * c.k_dim, c.first + t, h / (c.heads / c.kv_heads),
                                         cache.view, expected.data() + t * out_stride + h * c.v_dim);
                }
            }
            for (const int threads : {1, 3}) {
                ThreadPool pool(threads);
                forEachTarget([&](const char* target) {
                    std::vector<float> out(expected.size(), 9.0F);
                    attention(pool, shape, q.data(), c.heads * c.k_dim + 1, cache.view, out.data(), out_stride);
                    for (std::size_t i = 0; i < out.size(); ++i) {
                        QVERIFY2(std::memcmp(&out[i], &expected[i], sizeof(float)) == 0,
                                 qPrintable(QString("%1: head width %2, first %3, element %4: %5, not %6").arg(target).arg(c.k_dim).arg(c.first)
                                                .arg(i).arg(static_cast<double>(out[i])).arg(static_cast<double>(expected[i]))));
                    }
                });
            }
        }
    }

    // Codes and scales bit by bit, from the definition: blocks that are zero, so small that their scale is a subnormal half or none, or large.
    void storesCodesLikeTheDefinition() {
        Random random(3);
        const std::int64_t heads = 2, k_dim = 64, v_dim = 96, tokens = 70, first = 250;
        std::vector<float> k = random.values(tokens * heads * k_dim), v = random.values(tokens * heads * v_dim);
        for (auto* values : {&k, &v}) {
            for (std::size_t block = 0; block < values->size() / 32; ++block) {
                const float factor = std::ldexp(1.0F, block % 9 == 4 ? -1000 : static_cast<int>(block % 41) - 28);
                for (std::size_t i = 32 * block; i < 32 * (block + 1); ++i) (*values)[i] *= factor;
            }
        }
        ThreadPool pool(2);
        forEachTarget([&](const char* target) {
            std::vector<std::byte> storage(static_cast<std::size_t>(2 * (kv_part_bytes(KvType::q8_0, heads, k_dim) + kv_part_bytes(KvType::q8_0, heads, v_dim))));
            std::byte* const k_pages[] = {storage.data(), storage.data() + kv_part_bytes(KvType::q8_0, heads, k_dim)};
            std::byte* const v_pages[] = {k_pages[1] + kv_part_bytes(KvType::q8_0, heads, k_dim), storage.data() + storage.size() - static_cast<std::size_t>(kv_part_bytes(KvType::q8_0, heads, v_dim))};
            const KvView view{k_pages, v_pages, heads, k_dim, v_dim, KvType::q8_0};
            store_kv(pool, view, k.data(), heads * k_dim, v.data(), heads * v_dim, tokens, first);
            for (std::int64_t t = 0; t < tokens; ++t) {
                const std::int64_t page = (first + t) / 256, slot = (first + t) % 256;
                for (std::int64_t h = 0; h < heads; ++h) {
                    const KvCodes keys = kv_codes(k_pages[page], heads, h, k_dim), values = kv_codes(v_pages[page], heads, h, v_dim);
                    const auto check = [&](const float* x, std::uint16_t scale, auto code_at) {
                        float largest = 0;
                        for (int i = 0; i < 32; ++i) largest = std::max(largest, std::abs(x[i]));
                        QVERIFY2(scale == float_to_half(largest / 127.0F), target);
                        const float d = half_to_float(scale);
                        for (int i = 0; i < 32; ++i) {
                            const float code = d > 0 ? std::nearbyint(x[i] * (1.0F / d)) : 0.0F;
                            QVERIFY2(static_cast<float>(code_at(i)) == std::clamp(code, -127.0F, 127.0F), target);
                        }
                    };
                    for (std::int64_t b = 0; b < k_dim / 32; ++b) {
                        check(&k[static_cast<std::size_t>((t * heads + h) * k_dim + 32 * b)], keys.scales[slot * k_dim / 32 + b],
                              [&](int i) { return keys.codes[slot * k_dim + 32 * b + i]; });
                    }
                    for (std::int64_t b = 0; b < v_dim / 32; ++b) {
                        const std::int64_t strip = slot / 32, in_strip = slot % 32;
                        check(&v[static_cast<std::size_t>((t * heads + h) * v_dim + 32 * b)], values.scales[(strip * v_dim / 32 + b) * 32 + in_strip],
                              [&](int i) { return values.codes[(strip * v_dim + 32 * b + i) * 32 + in_strip]; });
                    }
                }
            }
        });
    }

    // The reference itself against softmax in double of what was stored before it was rounded: what halves and what codes cost.
    void referenceIsAttention_data() {
        QTest::addColumn<KvType>("type");
        QTest::addColumn<double>("worst");  // of one element
        QTest::addColumn<double>("mean");   // root of the mean square, of the output's
        QTest::newRow("f16") << KvType::f16 << 0x1p-12 << 0x1p-11;
        QTest::newRow("q8_0") << KvType::q8_0 << 0x1p-7 << 0x1p-6;
    }
    void referenceIsAttention() {
        QFETCH(const KvType, type);
        QFETCH(const double, worst);
        QFETCH(const double, mean);
        Random random(2);
        const std::int64_t dim = 64, positions = 700;
        const Cache cache(type, positions, 1, dim, dim, random);
        double largest = 0, squares = 0, errors = 0;
        for (int query = 0; query < 32; ++query) {
            const std::vector<float> q = random.values(dim);
            const std::int64_t window = query % 2 * 300;
            std::vector<float> out(static_cast<std::size_t>(dim));
            reference::attention({1, 1, positions - 1, window, 0.125F}, q.data(), positions - 1, 0, cache.view, out.data());
            std::vector<double> expected(static_cast<std::size_t>(dim));
            double sum = 0;
            for (auto i = static_cast<std::size_t>(window > 0 ? positions - window : 0); i < static_cast<std::size_t>(positions); ++i) {
                double score = 0;
                for (std::size_t d = 0; d < q.size(); ++d) score += static_cast<double>(q[d]) * static_cast<double>(cache.keys[i][d]);
                const double weight = std::exp(score * 0.125);
                sum += weight;
                for (std::size_t d = 0; d < q.size(); ++d) expected[d] += weight * static_cast<double>(cache.values[i][d]);
            }
            for (std::size_t d = 0; d < q.size(); ++d) {
                const double wanted = expected[d] / sum, error = static_cast<double>(out[d]) - wanted;
                largest = std::max(largest, std::abs(error));
                squares += wanted * wanted;
                errors += error * error;
            }
        }
        qInfo("largest error %g; root of the mean square %g of the output's", largest, std::sqrt(errors / squares));
        QVERIFY(largest < worst);
        QVERIFY(std::sqrt(errors / squares) < mean);
    }
};

QTEST_GUILESS_MAIN(TestAttention)
#include "tst_attention.moc"
