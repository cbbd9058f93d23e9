#include <bit>
#include <cmath>
#include <cstdint>
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
    void portable_functions_are_right() {
        // Expected: the doubles next to the values with 60 digits. (The C libraries are no measure: that of Windows is wrong in the
        // last digits of sin(779520).)
        struct Pair {
            double x, value;
        };
        for (const auto& [x, value] : {Pair{1e-6, -0x1.ba18a998fffap+3}, Pair{0.5, -0x1.62e42fefa39efp-1},
                                       Pair{0.70710678118654757, -0x1.62e42fefa39eep-2}, Pair{2, 0x1.62e42fefa39efp-1},
                                       Pair{1e4, 0x1.26bb1bbb55516p+3}, Pair{5e5, 0x1.a3ea669a05c01p+3}, Pair{1e6, 0x1.ba18a998fffap+3},
                                       Pair{1e16, 0x1.26bb1bbb55516p+5}}) {
            QVERIFY2(close(portable_log(x), value, 4e-16), qPrintable(QString::number(x)));
        }
        for (const auto& [x, value] : {Pair{-50, 0x1.d257d547e083fp-73}, Pair{-18.420680743952367, 0x1.5798ee2308c2fp-27},
                                       Pair{-1, 0x1.78b56362cef38p-2}, Pair{-0.34657359027997264, 0x1.6a09e667f3bcdp-1},
                                       Pair{0.001, 0x1.0041919b7ee34p+0}, Pair{1, 0x1.5bf0a8b145769p+1},
                                       Pair{13.815510557964274, 0x1.e847ffffffffcp+19}, Pair{50, 0x1.19103e4080b45p+72}}) {
            QVERIFY2(close(portable_exp(x), value, 4e-16), qPrintable(QString::number(x)));
        }
        struct Angle {
            double x, sine, cosine;
        };
        for (const auto& [x, sine, cosine] : {Angle{0.001, 0x1.0624da5218a62p-10, 0x1.ffffef390876cp-1},
                                              Angle{1, 0x1.aed548f090ceep-1, 0x1.14a280fb5068cp-1},
                                              Angle{1.5707963267948966, 1, 0x1.1a62633145c07p-54},
                                              Angle{3.1415926535897931, 0x1.1a62633145c07p-53, -1},
                                              Angle{41, -0x1.44dbf6375d1c8p-3, -0x1.f98488a60acdfp-1},
                                              Angle{1000.5, 0x1.fd948c50a7a0dp-1, 0x1.8dbff75eb664fp-4},
                                              Angle{32767, 0x1.80036fa7b61fap-3, 0x1.f6eb38d7d11b4p-1},
                                              Angle{779520, 0x1.eddbf26fec3dfp-3, -0x1.f0e40a04c0bbp-1},
                                              Angle{1048575.9, 0x1.e07fa13370afbp-3, 0x1.f1b57557c0355p-1},
                                              Angle{2621440.25, 0x1.c670e5afaeecbp-1, 0x1.d7b588d1272efp-2},
                                              Angle{16777215, -0x1.e57ec09221973p-1, -0x1.4532c3721ed43p-2}}) {
            const SineCosine angle = portable_sincos(x);
            QVERIFY2(std::abs(angle.sine - sine) <= 4e-16, qPrintable(QString::number(x)));
            QVERIFY2(std::abs(angle.cosine - cosine) <= 4e-16, qPrintable(QString::number(x)));
        }
        QCOMPARE(portable_log(1.0), 0.0);
        QCOMPARE(portable_exp(0.0), 1.0);
        QCOMPARE(portable_sincos(0).sine, 0.0);
        QCOMPARE(portable_sincos(0).cosine, 1.0);
    }

    void portable_functions_have_the_same_bits_everywhere() {
        // The sum over all bits was taken when each of these 11,050 values was compared with one of 60 digits: logarithms (relative to
        // the larger of 1 and themselves) and exponentials (relative) were within 1.3e-16, sines and cosines (absolute) within 1.7e-16.
        std::uint64_t sum = 14695981039346656037U;  // FNV-1a, by whole values
        const auto add = [&sum](double value) { sum = (sum ^ std::bit_cast<std::uint64_t>(value)) * 1099511628211U; };
        for (double x = 1e-6; x < 1e16; x *= 1.37) add(portable_log(x));
        for (double x = -50; x <= 50; x += 0.171) add(portable_exp(x));
        for (double x = 0; x < 16777216; x = x * 1.003 + 0.01) {
            const SineCosine angle = portable_sincos(x);
            add(angle.sine);
            add(angle.cosine);
        }
        QCOMPARE(sum, std::uint64_t{0x7cb6655c7a7b891d});
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
