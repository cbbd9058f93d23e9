#pragma once

// From tokens to text that can be shown: UTF-8 characters that are split over tokens are held back until whole, and so is a
// suffix that may still become a stop sequence.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::text {

// Holds back an incomplete UTF-8 character at the end. Bytes that can never become UTF-8 come out as U+FFFD at once.
class Utf8Stream {
public:
    // Returns the valid UTF-8 that is complete now (maybe empty).
    [[nodiscard]] std::string push(std::string_view bytes);
    // The text ends here: an unfinished character comes out as one U+FFFD.
    [[nodiscard]] std::string finish();

private:
    std::string pending_;
};

// Finds the first of several stop sequences in streamed text, across any borders: the one that ends first, and of those that end at
// the same place the longest. So the result does not depend on how the text was cut, and costs a step per byte and sequence.
class StopMatcher {
public:
    explicit StopMatcher(std::vector<std::string> stops);  // empty strings are ignored
    struct Out {
        std::string text;      // may be shown
        bool stopped = false;  // a stop sequence was met: text ends before it, nothing follows
    };
    [[nodiscard]] Out push(std::string_view text);
    // The text ends without a stop: what was held back.
    [[nodiscard]] std::string finish();

private:
    // One sequence as a Knuth-Morris-Pratt automaton.
    struct Stop {
        std::string text;
        std::vector<std::size_t> fallback;  // [text size]: longest proper prefix that is also a suffix of text[0..i]
        std::size_t matched = 0;            // bytes of the sequence that the text so far ends with
        [[nodiscard]] std::size_t advance(std::size_t length, char next) const noexcept;
    };
    std::vector<Stop> stops_;
    std::string held_;
};

}  // namespace headroom::text
