#pragma once

// Elementary functions in double made of additions, products and divisions only, so that the tables that go into the arithmetic
// (rotary angles) have the same bits whatever C library the program runs on. Error: a few units in the last place of a double, which
// is far below the rounding to float that follows.

namespace headroom::model {

// Natural logarithm of x > 0 (finite, normal).
[[nodiscard]] double portable_log(double x) noexcept;
// e to the x, for |x| <= 700.
[[nodiscard]] double portable_exp(double x) noexcept;
struct SineCosine {
    double sine;
    double cosine;
};
// Of x; the error grows beyond abs(x) = 2^24, and beyond 2^52 the result means nothing.
[[nodiscard]] SineCosine portable_sincos(double x) noexcept;

}  // namespace headroom::model
