#pragma once

// JSON Schema to a grammar. docs/constrained-output.md has the keywords.

#include <cstddef>
#include <memory>

#include "core/base/error.h"
#include "core/text/chat_template.h"
#include "core/text/grammar.h"

namespace headroom::text {

// What keeps a hostile schema from taking time and memory: each ends the compilation with an error.
struct SchemaLimits {
    std::size_t depth = 128;           // of values inside of each other in the schema
    std::size_t combinations = 4096;   // of alternatives (anyOf within allOf, …) and objects, arrays, … that come of them
    std::size_t states = 400'000;      // of the automaton
};

// JSON texts that the schema allows: every text of the grammar is valid by the schema. Not every valid text is one of the grammar's:
// properties come in the schema's order, and so on (docs/constrained-output.md).
// Errors: invalid_argument (not a schema, a limit), unsupported (a keyword or a value of one that is not known); the message names the
// keyword and where it stands ("#/properties/a/pattern").
[[nodiscard]] Result<std::shared_ptr<const Grammar>> compile_json_schema(const Json& schema, const SchemaLimits& limits = {});

// Any JSON object.
[[nodiscard]] std::shared_ptr<const Grammar> any_json_object();

}  // namespace headroom::text
