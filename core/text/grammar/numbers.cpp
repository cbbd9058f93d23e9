#include "core/text/grammar/numbers.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/text/grammar/regex.h"

namespace headroom::text {
namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

std::uint8_t digit_byte(int digit) { return static_cast<std::uint8_t>('0' + digit); }

// Whole numbers from `low` (at least 1) to `high`, multiples of `multiple`, behind state `from`.
class Wholes {
public:
    Wholes(Nfa& nfa, std::uint64_t low, std::uint64_t high, std::uint32_t multiple, Nfa::StateId end) : nfa_(nfa), multiple_(multiple), end_(end) {
        low_ = fmt::format("{}", low);
        high_ = fmt::format("{}", high);
    }

    void write(Nfa::StateId from) {
        for (std::size_t length = low_.size(); length <= high_.size(); ++length) {
            const std::string low = length == low_.size() ? low_ : "1" + std::string(length - 1, '0');
            const std::string high = length == high_.size() ? high_ : std::string(length, '9');
            bound(from, low, high, 0, true, true, 0);
        }
    }

private:
    // at_low, at_high: the digits so far are those of the bound.
    void bound(Nfa::StateId from, std::string_view low, std::string_view high, std::size_t i, bool at_low, bool at_high, std::uint32_t rest) {
        if (i == low.size()) {
            if (rest == 0) nfa_.jump(from, end_);
            return;
        }
        const int first = at_low ? low[i] - '0' : 0;
        const int last = at_high ? high[i] - '0' : 9;
        for (int digit = first; digit <= last; ++digit) {
            const bool still_low = at_low && digit == first, still_high = at_high && digit == last;
            const std::uint32_t next_rest = (rest * 10 + static_cast<std::uint32_t>(digit)) % multiple_;
            if (still_low || still_high) {
                const Nfa::StateId next = nfa_.state();
                nfa_.bytes(from, digit_byte(digit), digit_byte(digit), next);
                bound(next, low, high, i + 1, still_low, still_high, next_rest);
            } else {
                nfa_.bytes(from, digit_byte(digit), digit_byte(digit), any(low.size() - i - 1, next_rest));
            }
        }
    }

    // Any `digits` more.
    Nfa::StateId any(std::size_t digits, std::uint32_t rest) {
        if (digits == 0 && rest == 0) return end_;
        const auto known = any_.find({digits, rest});
        if (known != any_.end()) return known->second;
        const Nfa::StateId state = nfa_.state();
        any_.emplace(std::pair(digits, rest), state);
        for (int digit = 0; digit <= 9 && digits > 0; ++digit) {
            nfa_.bytes(state, digit_byte(digit), digit_byte(digit), any(digits - 1, (rest * 10 + static_cast<std::uint32_t>(digit)) % multiple_));
        }
        return state;
    }

    Nfa& nfa_;
    std::uint32_t multiple_;
    Nfa::StateId end_;
    std::string low_, high_;
    std::map<std::pair<std::size_t, std::uint32_t>, Nfa::StateId> any_;
};

// Amounts from `low` to `high` (none: without end) in decimal digits.
class Amounts {
public:
    Amounts(Nfa& nfa, const NumberBound& low, const NumberBound* high, Nfa::StateId end) : nfa_(nfa), low_(low), high_(high), end_(end) {}

    void write(Nfa::StateId from) {
        const std::size_t longest = high_ != nullptr ? std::min<std::size_t>(high_->value.whole.size(), kMostDigits) : kMostDigits;
        for (std::size_t length = low_.value.whole.size(); length <= longest; ++length) {
            const bool at_high = high_ != nullptr && length == high_->value.whole.size();
            digits(from, length, 0, length == low_.value.whole.size(), at_high);
        }
    }

private:
    static int digit_of(const Decimal& number, std::size_t length, std::size_t i) {
        if (i < length) return number.whole[i] - '0';
        return i - length < number.fraction.size() ? number.fraction[i - length] - '0' : 0;
    }
    static bool rest_is_zero(const Decimal& number, std::size_t length, std::size_t i) {
        for (; i < length; ++i) {
            if (number.whole[i] != '0') return false;
        }
        return i - length >= number.fraction.size();  // the fraction has no zeros at its end
    }
    [[nodiscard]] bool may_end(std::size_t length, std::size_t i, bool at_low, bool at_high) const {
        if (at_low && (low_.exclusive || !rest_is_zero(low_.value, length, i))) return false;
        return !(at_high && high_->exclusive && rest_is_zero(high_->value, length, i));
    }

    // `length` digits before the point; i: written so far, those behind the point too.
    void digits(Nfa::StateId from, std::size_t length, std::size_t i, bool at_low, bool at_high) {
        if (i >= length && may_end(length, i, at_low, at_high)) nfa_.jump(from, end_);
        if (i == static_cast<std::size_t>(kMostDigits)) return;
        if (i == length) {
            const Nfa::StateId behind = nfa_.state();
            nfa_.bytes(from, '.', '.', behind);
            from = behind;
        }
        const int first = at_low ? digit_of(low_.value, length, i) : i == 0 && length > 1 ? 1 : 0;
        const int last = at_high ? digit_of(high_->value, length, i) : 9;
        for (int digit = first; digit <= last; ++digit) {
            const bool still_low = at_low && digit == first, still_high = at_high && digit == last;
            Nfa::StateId next = 0;
            if (still_low || still_high) {
                next = nfa_.state();
                nfa_.bytes(from, digit_byte(digit), digit_byte(digit), next);
                digits(next, length, i + 1, still_low, still_high);
            } else {
                nfa_.bytes(from, digit_byte(digit), digit_byte(digit), any(length, i + 1));
            }
        }
    }

    // No bound matters any more.
    Nfa::StateId any(std::size_t length, std::size_t i) {
        const auto [entry, is_new] = any_.try_emplace({length, i}, 0);
        if (!is_new) return entry->second;
        const Nfa::StateId state = nfa_.state();
        entry->second = state;
        if (i >= length) nfa_.jump(state, end_);
        if (i == static_cast<std::size_t>(kMostDigits)) return state;
        Nfa::StateId from = state;
        if (i == length) {
            from = nfa_.state();
            nfa_.bytes(state, '.', '.', from);
        }
        nfa_.bytes(from, '0', '9', any(length, i + 1));
        return state;
    }

    Nfa& nfa_;
    const NumberBound& low_;
    const NumberBound* high_;
    Nfa::StateId end_;
    std::map<std::pair<std::size_t, std::size_t>, Nfa::StateId> any_;
};

}  // namespace

Decimal Decimal::of(const Json& number) {
    std::string text;
    if (number.is_number_unsigned()) {
        text = fmt::format("{}", number.get<std::uint64_t>());
    } else if (number.is_number_integer()) {
        text = fmt::format("{}", number.get<std::int64_t>());
    } else {
        text = fmt::format("{}", number.get<double>());  // the shortest that reads back the same: "0.1", "1e+20"
    }
    Decimal result;
    std::string_view rest = text;
    if (rest.starts_with('-')) {
        result.negative = true;
        rest.remove_prefix(1);
    }
    int exponent = 0;
    if (const auto e = rest.find('e'); e != std::string_view::npos) {
        exponent = std::stoi(std::string(rest.substr(e + 1)));
        rest = rest.substr(0, e);
    }
    const auto point = rest.find('.');
    std::string digits(rest.substr(0, point));
    auto places = static_cast<int>(digits.size()) + exponent;  // before the point
    if (point != std::string_view::npos) digits += rest.substr(point + 1);
    if (places < 0) {
        digits.insert(0, static_cast<std::size_t>(-places), '0');
        places = 0;
    }
    if (digits.size() < static_cast<std::size_t>(places)) digits.resize(static_cast<std::size_t>(places), '0');
    result.whole = digits.substr(0, static_cast<std::size_t>(places));
    result.fraction = digits.substr(static_cast<std::size_t>(places));
    result.whole.erase(0, std::min(result.whole.find_first_not_of('0'), result.whole.size()));
    if (result.whole.empty()) result.whole = "0";
    result.fraction.erase(result.fraction.find_last_not_of('0') + 1);
    if (result.is_zero()) result.negative = false;
    return result;
}

Dfa integer_dfa(std::optional<std::int64_t> min, std::optional<std::int64_t> max, std::uint32_t multiple_of) {
    // Where one bound is not given, as many digits as the other one has and one more, at least kMostDigits.
    const auto amount = [](std::int64_t value) { return value < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value); };
    const auto longest = [&](std::optional<std::int64_t> other) {
        const std::size_t digits = other ? std::min<std::size_t>(fmt::format("{}", amount(*other)).size() + 1, 18) : 1;
        return static_cast<std::int64_t>(std::stoll(std::string(std::max<std::size_t>(digits, kMostDigits), '9')));
    };
    const std::int64_t low = min.value_or(std::min(-longest(max), max.value_or(0)));
    const std::int64_t high = max.value_or(std::max(longest(min), min.value_or(0)));
    Nfa nfa;
    const Nfa::StateId end = nfa.state();
    nfa.accept(end);
    if (low <= high) {
        if (low <= 0 && high >= 0) nfa.bytes(0, '0', '0', end);
        if (high >= 1) Wholes(nfa, low >= 1 ? amount(low) : 1, amount(high), multiple_of, end).write(0);
        if (low <= -1) {
            const Nfa::StateId negative = nfa.state();
            nfa.bytes(0, '-', '-', negative);
            Wholes(nfa, high <= -1 ? amount(high) : 1, amount(low), multiple_of, end).write(negative);
        }
    }
    return *nfa.determinize(kNoLimit);
}

Result<Dfa> number_dfa(const std::optional<NumberBound>& min, const std::optional<NumberBound>& max) {
    if (!min && !max) return compile_pattern(R"(^-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?([eE][+-]?[0-9]{1,2})?$)", kNoLimit);
    const bool too_high = min && !min->value.negative && min->value.whole.size() > static_cast<std::size_t>(kMostDigits);
    const bool too_low = max && max->value.negative && max->value.whole.size() > static_cast<std::size_t>(kMostDigits);
    if (too_high || too_low) return fail(ErrorKind::unsupported, "bounds leave only numbers of more than {} digits, which are not supported", kMostDigits);
    Nfa nfa;
    const Nfa::StateId end = nfa.state();
    nfa.accept(end);
    if (!max || !max->value.negative) {
        const NumberBound low = min && !min->value.negative ? *min : NumberBound{};
        Amounts(nfa, low, max ? &*max : nullptr, end).write(0);
    }
    if (!min || min->value.negative) {
        const Nfa::StateId negative = nfa.state();
        nfa.bytes(0, '-', '-', negative);
        const NumberBound low = max && max->value.negative ? *max : NumberBound{.value = {}, .exclusive = true};
        Amounts(nfa, low, min ? &*min : nullptr, end).write(negative);
    }
    auto dfa = nfa.determinize(kNoLimit);
    if (!dfa) return fail(ErrorKind::internal, "the automaton of a number's bounds is too large");
    return *std::move(dfa);
}

}  // namespace headroom::text
