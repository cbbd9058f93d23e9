#pragma once

// Tells alternatives of oneOf apart.

#include <span>

#include "core/base/error.h"
#include "core/text/grammar/schema_facts.h"

namespace headroom::text {

// Whether it can be shown that no value written by one of `written` is valid by one of `valid` (sets without alternatives).
[[nodiscard]] Result<bool> never_allows(SchemaDocument& document, std::span<const FactSet> written, std::span<const FactSet> valid, int depth = 0);

}  // namespace headroom::text
