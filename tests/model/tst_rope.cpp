#include <cmath>
#include <numbers>

#include <QTest>

#include "core/model/portable_math.h"
#include "core/model/rope.h"

using namespace headroom::model;

namespace {

bool close(double seen, double expected, double relative) { return std::abs(seen - expected) <= relative * std::abs(expected); }

}  // namespace

class TstRope : public QObject {
    Q_OBJECT

private slots:
    void portable_functions_equal_the_library_ones() {
        for (double x = 1e-6; x < 1e16; x *= 1.37) {
            QVERIFY2(std::abs(portable_log(x) - std::log(x)) <= 1e-15 * std::max(1.0, std::abs(std::log(x))), qPrintable(QString::number(x)));
        }
        for (double x = -50; x <= 50; x += 0.171) QVERIFY2(close(portable_exp(x), std::exp(x), 1e-15), qPrintable(QString::number(x)));
        for (double x = 0; x < 16777216; x = x * 1.003 + 0.01) {
            const SineCosine angle = portable_sincos(x);
            QVERIFY2(std::abs(angle.sine - std::sin(x)) <= 1e-15, qPrintable(QString::number(x)));
            QVERIFY2(std::abs(angle.cosine - std::cos(x)) <= 1e-15, qPrintable(QString::number(x)));
        }
        QCOMPARE(portable_log(1.0), 0.0);
        QCOMPARE(portable_exp(0.0), 1.0);
        QCOMPARE(portable_sincos(0).sine, 0.0);
        QCOMPARE(portable_sincos(0).cosine, 1.0);
    }

    void plain_angles() {
        const Rope rope({.dimensions = 8, .base = 10000}, {});
        QCOMPARE(rope.half(), 4);
        QCOMPARE(rope.magnitude(), 1.0);
        const double expected[] = {1, 0.1, 0.01, 0.001};
        for (std::size_t i = 0; i < 4; ++i) QVERIFY(close(rope.frequencies()[i], expected[i], 1e-14));
        float cosine[8];
        float sine[8];
        rope.fill(41, 2, cosine, sine);
        for (std::size_t t = 0; t < 2; ++t) {
            for (std::size_t i = 0; i < 4; ++i) {
                const double angle = static_cast<double>(41 + t) * expected[i];
                QVERIFY(std::abs(static_cast<double>(cosine[t * 4 + i]) - std::cos(angle)) < 6e-8);
                QVERIFY(std::abs(static_cast<double>(sine[t * 4 + i]) - std::sin(angle)) < 6e-8);
            }
        }
    }

    void linear_scaling_divides_all() {
        const Rope rope({.dimensions = 4, .base = 100, .scaling = RopeScaling::linear, .factor = 4}, {});
        QVERIFY(close(rope.frequencies()[0], 0.25, 1e-14));
        QVERIFY(close(rope.frequencies()[1], 0.025, 1e-14));
        QCOMPARE(rope.magnitude(), 1.0);
    }

    void factors_divide_each() {
        const float factors[] = {1, 8};
        const Rope rope({.dimensions = 4, .base = 100}, factors);
        QVERIFY(close(rope.frequencies()[0], 1, 1e-14));
        QVERIFY(close(rope.frequencies()[1], 0.1 / 8, 1e-14));
    }

    // Worked out by hand for a head of 128, base 10,000, 4,096 positions extended fourfold: the pairs that make 32 turns and one turn are
    // 64 ln(4096 / (64 pi)) / ln(10000) = 20.9 and 64 ln(4096 / (2 pi)) / ln(10000) = 45.03.
    void yarn_scales_the_slow_pairs() {
        const Rope rope({.dimensions = 128, .base = 10000, .scaling = RopeScaling::yarn, .factor = 4, .original_context = 4096}, {});
        const auto plain = [](double i) { return std::pow(10000.0, -2 * i / 128); };
        for (std::size_t i = 0; i < 64; ++i) {
            const double ramp = i <= 20 ? 0 : i >= 46 ? 1 : static_cast<double>(i - 20) / 26;
            const double expected = plain(static_cast<double>(i)) * (1 - ramp + ramp / 4);
            QVERIFY2(close(rope.frequencies()[i], expected, 1e-13), qPrintable(QString::number(i)));
        }
        QVERIFY(close(rope.magnitude(), 1 + 0.1 * std::log(4.0), 1e-14));
        float cosine[64];
        float sine[64];
        rope.fill(0, 1, cosine, sine);
        QCOMPARE(cosine[0], static_cast<float>(1 + 0.1 * std::log(4.0)));
        QCOMPARE(sine[0], 0.0f);
    }

    void yarn_without_extrapolation_is_linear() {
        const Rope rope({.dimensions = 4, .base = 100, .scaling = RopeScaling::yarn, .factor = 2, .original_context = 64, .attention_factor = 1.5,
                         .extrapolation = 0}, {});
        QVERIFY(close(rope.frequencies()[0], 0.5, 1e-14));
        QVERIFY(close(rope.frequencies()[1], 0.05, 1e-14));
        QCOMPARE(rope.magnitude(), 1.5);
    }
};

QTEST_GUILESS_MAIN(TstRope)
#include "tst_rope.moc"
