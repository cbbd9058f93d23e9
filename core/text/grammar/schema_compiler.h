#pragma once

// JSON Schema to rules of a grammar.

#include <string>

#include "core/base/error.h"
#include "core/text/grammar/builder.h"
#include "core/text/grammar/json_rules.h"
#include "core/text/json_schema.h"

namespace headroom::text {

// The rule of the texts that the schema allows. name: what paths in messages begin with ("#").
// Errors: as compile_json_schema's, but for what build() finds.
[[nodiscard]] Result<RuleId> add_json_schema(GrammarBuilder& builder, JsonRules& json, const Json& schema, std::string name, const SchemaLimits& limits);

}  // namespace headroom::text
