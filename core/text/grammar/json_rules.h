#pragma once

// The rules of JSON that schemas are put together from, each made once in a builder.

#include <optional>

#include "core/text/grammar/builder.h"

namespace headroom::text {

class JsonRules {
public:
    explicit JsonRules(GrammarBuilder& builder) : builder_(builder) {}

    RuleId space();      // nothing, a blank, or a line's end and at most 32 blanks or tabs: output ends
    RuleId character();  // one of a string, as it is or escaped; \u surrogates in pairs
    RuleId string();     // any, in quotes
    RuleId number();     // any that is finite
    RuleId value();      // any
    RuleId object();     // any
    // A string of min to max (kNone: without end) characters.
    RuleId string(std::uint32_t min, std::uint32_t max);

    // Behind a key: the colon, maybe a blank; returns the state where the value begins.
    StateId colon(StateId from);
    // A comma and space.
    StateId comma(StateId from);

private:
    GrammarBuilder& builder_;
    std::optional<RuleId> space_, character_, string_, number_, value_, object_;
};

}  // namespace headroom::text
