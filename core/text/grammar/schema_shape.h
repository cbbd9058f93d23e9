#pragma once

// What a set of facts without alternatives comes to: one shape of values.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/text/grammar/numbers.h"
#include "core/text/grammar/schema_facts.h"

namespace headroom::text {

struct Shape {
    // The types that are written: where no schema names any, those that its other keywords are about.
    unsigned types = types::kAll;
    unsigned valid_types = types::kAll;  // that the schemas name
    std::optional<std::vector<Json>> values{};  // enum and const: only those that the other keywords allow

    std::optional<NumberBound> min{}, max{};
    std::uint32_t multiple_of = 1;  // other than 1: only integers

    std::uint64_t min_length = 0;
    std::optional<std::uint64_t> max_length{};
    std::vector<const Dfa*> patterns{};  // of pattern and format; all must hold

    std::vector<FactSet> prefix{};
    FactSet items{};                 // behind the prefix
    bool writes_items = true;
    std::uint64_t min_items = 0;
    std::optional<std::uint64_t> max_items{};

    struct Property {
        std::string name;
        FactSet facts;
        bool required = false;
    };
    std::vector<Property> properties{};  // as the schemas have them
    FactSet others{};
    bool writes_others = true;  // members beside the properties
    std::uint64_t min_members = 0;
    std::optional<std::uint64_t> max_members{};
    const Json* source = nullptr;  // a schema to name in messages; null: there is none
};

// Errors: as compile_json_schema's.
[[nodiscard]] Result<Shape> shape_of(SchemaDocument& document, const FactSet& facts);

// a <, = or > b.
[[nodiscard]] int compare(const Decimal& a, const Decimal& b);

}  // namespace headroom::text
