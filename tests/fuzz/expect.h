#pragma once

#include <cstdlib>

#include <fmt/format.h>

// A promise of the code under test. Unlike assert it holds in every build; the fuzzer reports the abort with its input.
#define FUZZ_EXPECT(condition)                                                                          \
    do {                                                                                                \
        if (!(condition)) {                                                                             \
            fmt::print(stderr, "{}:{}: a promise does not hold: {}\n", __FILE__, __LINE__, #condition); \
            std::abort();                                                                               \
        }                                                                                               \
    } while (false)
