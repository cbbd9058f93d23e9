#include <QTest>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/compute/cpu/arithmetic.h"
#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/reference.h"
#include "tests/compute/random_data.h"
#include "tests/compute/targets.h"

using namespace headroom;
using namespace headroom::cpu;

namespace {

// A cache of `positions` random positions; what lies behind them is not a number, so that a kernel that looks there is found out.
struct Cache {
    Cache(std::int64_t positions, std::int64_t kv_heads, std::int64_t k_dim, std::int64_t v_dim, Random& random) {
        const std::int64_t pages = (positions + kPagePositions - 1) / kPagePositions;
        for (std::int64_t page = 0; page < pages; ++page) {
            for (const std::int64_t dim : {k_dim, v_dim}) {
                std::vector<std::uint16_t> data(static_cast<std::size_t>(kv_heads * kPagePositions * dim));
                for (std::size_t i = 0; i < data.size(); ++i) {
                    const std::int64_t slot = static_cast<std::int64_t>(i) / dim % kPagePositions;
                    data[i] = page * kPagePositions + slot < positions ? float_to_half(random.value()) : std::uint16_t{0x7e00};
                }
                storage.push_back(std::move(data));
            }
        }
        for (std::size_t i = 0; i < storage.size(); i += 2) {
            k.push_back(storage[i].data());
            v.push_back(storage[i + 1].data());
        }
        view = {k.data(), v.data(), kv_heads, k_dim, v_dim};
    }
    std::vector<std::vector<std::uint16_t>> storage;
    std::vector<std::uint16_t*> k, v;
    KvView view;
};

struct Case {
    std::int64_t heads, kv_heads, k_dim, v_dim, first, tokens, window;
};

}  // namespace

class TestAttention : public QObject {
    Q_OBJECT
private slots:
    void equalsReferenceBitByBit() {
        const Case cases[] = {{2, 1, 64, 64, 0, 1, 0},   {4, 2, 128, 128, 300, 1, 0}, {8, 2, 64, 64, 0, 37, 0},    {6, 2, 32, 48, 250, 20, 0},
                              {3, 3, 96, 32, 511, 2, 0}, {4, 1, 64, 64, 600, 9, 100}, {2, 2, 64, 128, 240, 40, 7}, {4, 4, 40, 24, 255, 3, 0},
                              {14, 2, 64, 64, 1030, 1, 0}};
        Random random(1);
        for (const Case& c : cases) {
            const Cache cache(c.first + c.tokens, c.kv_heads, c.k_dim, c.v_dim, random);
            const std::vector<float> q = random.values(c.tokens * (c.heads * c.k_dim + 1));
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

    // The reference itself against softmax in double.
    void referenceIsAttention() {
        Random random(2);
        const std::int64_t dim = 64, positions = 700;
        const Cache cache(positions, 1, dim, dim, random);
        const std::vector<float> q = random.values(dim);
        for (const std::int64_t window : {0, 300}) {
            std::vector<float> out(static_cast<std::size_t>(dim));
            reference::attention({1, 1, positions - 1, window, 0.125F}, q.data(), positions - 1, 0, cache.view, out.data());
            const std::int64_t first = window > 0 ? positions - window : 0;
            std::vector<double> weights;
            double sum = 0;
            for (std::int64_t i = first; i < positions; ++i) {
                double score = 0;
                for (std::int64_t d = 0; d < dim; ++d) {
                    score += static_cast<double>(q[static_cast<std::size_t>(d)]) * static_cast<double>(half_to_float(cache.k[static_cast<std::size_t>(i / 256)][i % 256 * dim + d]));
                }
                weights.push_back(std::exp(score * 0.125));
                sum += weights.back();
            }
            for (std::int64_t d = 0; d < dim; ++d) {
                double value = 0;
                for (std::int64_t i = first; i < positions; ++i) {
                    value += weights[static_cast<std::size_t>(i - first)] * static_cast<double>(half_to_float(cache.v[static_cast<std::size_t>(i / 256)][i % 256 * dim + d]));
                }
                QVERIFY(std::abs(static_cast<double>(out[static_cast<std::size_t>(d)]) - value / sum) < 1e-5);
            }
        }
    }
};

QTEST_GUILESS_MAIN(TestAttention)
#include "tst_attention.moc"
