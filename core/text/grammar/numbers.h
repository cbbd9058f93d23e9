#pragma once

// Numbers within bounds as automata over their digits.

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/text/chat_template.h"
#include "core/text/grammar/dfa.h"

namespace headroom::text {

// A number as its digits, without an exponent: exact, as it was written.
struct Decimal {
    bool negative = false;
    std::string whole = "0";  // without zeros in front
    std::string fraction{};   // without zeros at the end
    // number: a JSON number.
    [[nodiscard]] static Decimal of(const Json& number);
    [[nodiscard]] bool is_zero() const noexcept { return whole == "0" && fraction.empty(); }
};

struct NumberBound {
    Decimal value;
    bool exclusive = false;
};

// How many digits numbers have at most where no bound asks for more: every reader of JSON keeps these exactly.
inline constexpr int kMostDigits = 15;

// Integers in decimal digits ("-0" is none), from min to max, which are multiples of `multiple_of` (1 to 1,000).
[[nodiscard]] Dfa integer_dfa(std::optional<std::int64_t> min, std::optional<std::int64_t> max, std::uint32_t multiple_of);

// Decimal numbers between the bounds, without exponents; without bounds any JSON number, with them too.
// Errors: unsupported where a bound leaves only numbers of more than kMostDigits digits.
[[nodiscard]] Result<Dfa> number_dfa(const std::optional<NumberBound>& min, const std::optional<NumberBound>& max);

}  // namespace headroom::text
