#include "core/model/portable_math.h"

#include <cmath>
#include <cstdint>

namespace headroom::model {
namespace {

constexpr double kLn2High = 0x1.62e42fefap-1;      // 36 bits of ln 2: a product with a small integer is exact
constexpr double kLn2Low = 0x1.cf79abc9e3b3ap-40;  // ln 2 minus that
// pi / 2 in three parts; the first two have 28 bits, so that their products with integers below 2^25 are exact.
constexpr double kHalfPi1 = 0x1.921fb54p+0;
constexpr double kHalfPi2 = 0x1.10b4610p-30;
constexpr double kHalfPi3 = 0x1.a62633145c06ep-58;

}  // namespace

double portable_log(double x) noexcept {
    // x = m * 2^e with m near 1; log m = 2 atanh((m - 1) / (m + 1)), an odd series whose argument is below 0.172.
    int exponent = 0;
    double m = std::frexp(x, &exponent);
    if (m < 0.70710678118654752) {
        m *= 2;
        --exponent;
    }
    const double s = (m - 1) / (m + 1);
    const double square = s * s;
    double series = 0;
    for (int k = 27; k >= 3; k -= 2) series = (series + 1.0 / k) * square;
    return exponent * kLn2High + (exponent * kLn2Low + 2 * s * series + 2 * s);
}

double portable_exp(double x) noexcept {
    const double n = std::floor(x * 0x1.71547652b82fep+0 + 0.5);  // x / ln 2, to the nearest integer
    const double r = (x - n * kLn2High) - n * kLn2Low;
    double series = 1;
    for (int k = 18; k >= 1; --k) series = 1 + series * r / k;
    return std::ldexp(series, static_cast<int>(n));
}

SineCosine portable_sincos(double x) noexcept {
    const double n = std::floor(x * 0x1.45f306dc9c883p-1 + 0.5);  // x / (pi / 2), to the nearest integer
    const double r = ((x - n * kHalfPi1) - n * kHalfPi2) - n * kHalfPi3;
    const double square = r * r;
    double sine = 1;
    double cosine = 1;
    for (int k = 18; k >= 2; k -= 2) {
        sine = 1 - sine * square / (k * (k + 1));
        cosine = 1 - cosine * square / (k * (k - 1));
    }
    sine *= r;
    switch (static_cast<std::int64_t>(n) & 3) {
        case 0: return {sine, cosine};
        case 1: return {cosine, -sine};
        case 2: return {-sine, -cosine};
        default: return {-cosine, sine};
    }
}

}  // namespace headroom::model
