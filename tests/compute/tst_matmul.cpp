#include <QTest>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/reference.h"
#include "tests/compute/random_data.h"
#include "tests/compute/targets.h"

using namespace headroom;
using namespace headroom::cpu;

namespace {

// Ragged and plain shapes: rows around a tile's height, columns of one, few and many blocks, batches around the kernels' widths.
struct Shape {
    std::int64_t rows, blocks, tokens;
};
constexpr Shape kShapes[] = {{1, 1, 1}, {16, 4, 1}, {37, 3, 2}, {15, 9, 3}, {33, 5, 7}, {64, 2, 8}, {17, 8, 13}, {5, 6, 67}, {16, 1, 131}};

std::vector<float> product(ThreadPool& pool, const Matrix& w, const Activations& x, std::int64_t stride) {
    std::vector<float> y(static_cast<std::size_t>(x.tokens() * stride), -7.0F);
    const Product products[] = {{w, y.data(), stride}};
    matmul(pool, products, x);
    return y;
}

bool sameBits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

class TestMatmul : public QObject {
    Q_OBJECT
private slots:
    void equalsReferenceBitByBit_data() {
        QTest::addColumn<int>("index");
        for (std::size_t i = 0; i < layouts().size(); ++i) QTest::newRow(layouts()[i].name) << static_cast<int>(i);
    }
    void equalsReferenceBitByBit() {
        QFETCH(int, index);
        const Layout& layout = layouts()[static_cast<std::size_t>(index)];
        Random random(static_cast<std::uint64_t>(index) + 1);
        ThreadPool one(1), three(3);
        for (const Shape& shape : kShapes) {
            const std::int64_t cols = shape.blocks * std::max<std::int64_t>(32, layout.elements);
            RandomMatrix w(layout, shape.rows, cols, random);
            const std::vector<float> x = random.values(shape.tokens * (cols + 3));
            Activations activations;
            activations.assign(x.data(), shape.tokens, cols, cols + 3);
            activations.require(three, form_for(layout.type));
            const std::int64_t stride = shape.rows + 2;
            std::vector<float> expected(static_cast<std::size_t>(shape.tokens * stride), -7.0F);
            for (std::int64_t t = 0; t < shape.tokens; ++t) {
                for (std::int64_t r = 0; r < shape.rows; ++r) {
                    expected[static_cast<std::size_t>(t * stride + r)] = reference::dot(w.matrix, r, activations.storage(), t);
                }
            }
            forEachTarget([&](const char* target) {
                QVERIFY2(sameBits(product(one, w.matrix, activations, stride), expected), target);
                QVERIFY2(sameBits(product(three, w.matrix, activations, stride), expected), target);
            });
        }
    }

    // The reference itself: close to the product of the dequantized row with the activations as they are.
    void referenceIsTheProduct_data() { equalsReferenceBitByBit_data(); }
    void referenceIsTheProduct() {
        QFETCH(int, index);
        const Layout& layout = layouts()[static_cast<std::size_t>(index)];
        Random random(static_cast<std::uint64_t>(index) + 100);
        ThreadPool pool(1);
        const std::int64_t cols = 1024;
        RandomMatrix w(layout, 6, cols, random);
        const std::vector<float> x = random.values(cols);
        Activations activations;
        activations.assign(x.data(), 1, cols, cols);
        activations.require(pool, form_for(layout.type));
        std::vector<float> row(static_cast<std::size_t>(cols));
        for (std::int64_t r = 0; r < w.matrix.rows; ++r) {
            dequantize_row(w.matrix, r, row.data());
            double exact = 0, size = 0;
            for (std::size_t k = 0; k < row.size(); ++k) {
                exact += static_cast<double>(row[k]) * static_cast<double>(x[k]);
                size += std::pow(static_cast<double>(row[k]) * static_cast<double>(x[k]), 2);
            }
            const double error = std::abs(static_cast<double>(reference::dot(w.matrix, r, activations.storage(), 0)) - exact);
            QVERIFY2(error <= 0.04 * std::sqrt(size) + 1e-6, qPrintable(QString("%1 of %2").arg(error).arg(std::sqrt(size))));
        }
    }

    // Several products of one batch in one call, of different types and heights.
    void severalProductsAtOnce() {
        Random random(5);
        ThreadPool pool(3);
        const std::int64_t cols = 512, tokens = 5;
        std::vector<RandomMatrix> matrices;
        for (const Layout& layout : layouts()) matrices.emplace_back(layout, 3 + random.below(60), cols, random);
        const std::vector<float> x = random.values(tokens * cols);
        Activations activations;
        activations.assign(x.data(), tokens, cols, cols);
        activations.require(pool, 7);
        std::vector<std::vector<float>> outputs;
        std::vector<Product> products;
        for (const RandomMatrix& w : matrices) outputs.emplace_back(static_cast<std::size_t>(tokens * w.matrix.rows));
        for (std::size_t i = 0; i < matrices.size(); ++i) products.push_back({matrices[i].matrix, outputs[i].data(), matrices[i].matrix.rows});
        matmul(pool, products, activations);
        for (std::size_t i = 0; i < matrices.size(); ++i) {
            QVERIFY(sameBits(outputs[i], product(pool, matrices[i].matrix, activations, matrices[i].matrix.rows)));
        }
    }
};

QTEST_GUILESS_MAIN(TestMatmul)
#include "tst_matmul.moc"
