#include "core/text/grammar/schema_exclusive.h"

#include <algorithm>

#include "core/text/grammar/schema_shape.h"

namespace headroom::text {
namespace {

constexpr int kMostDepth = 3;

// Whether no object that `a` writes is valid by `b`.
Result<bool> objects_apart(SchemaDocument& document, const Shape& a, const Shape& b, int depth) {
    const auto find = [](const Shape& shape, const std::string& name) {
        return std::ranges::find(shape.properties, name, &Shape::Property::name);
    };
    HR_CHECK(document.spend((1 + a.properties.size()) * (1 + b.properties.size())));
    for (const Shape::Property& property : b.properties) {
        if (property.required && find(a, property.name) == a.properties.end() && !a.writes_others) return true;
    }
    for (const Shape::Property& property : a.properties) {
        if (!property.required) continue;
        const auto other = find(b, property.name);
        const FactSet& facts = other != b.properties.end() ? other->facts : b.others;
        if (facts.never) return true;
        if (facts.facts.empty() || depth >= kMostDepth) continue;
        HR_TRY(const auto written, document.loose_alternatives(property.facts));
        HR_TRY(const auto valid, document.loose_alternatives(facts));
        HR_TRY(const bool apart, never_allows(document, written, valid, depth + 1));
        if (apart) return true;
    }
    return false;
}

bool numbers_apart(const Shape& a, const Shape& b) {
    const auto below = [](const std::optional<NumberBound>& max, const std::optional<NumberBound>& min) {
        if (!max || !min) return false;
        const int order = compare(max->value, min->value);
        return order < 0 || (order == 0 && (max->exclusive || min->exclusive));
    };
    return below(a.max, b.min) || below(b.max, a.min);
}

Result<bool> apart(SchemaDocument& document, const FactSet& written, const FactSet& valid, int depth) {
    HR_TRY(const Shape a, shape_of(document, written));
    HR_TRY(const Shape b, shape_of(document, valid));
    for (const auto* values : {&a.values, &b.values}) {
        if (!*values) continue;
        for (const Json& value : **values) {
            HR_TRY(const bool both, document.allows(values == &a.values ? valid : written, value));
            if (both) return false;
        }
        return true;
    }
    const unsigned common = a.types & b.valid_types;
    if ((common & (types::kNull | types::kBoolean | types::kString)) != 0) return false;
    if ((common & types::kNumber) != 0 && !numbers_apart(a, b)) return false;
    if ((common & types::kArray) != 0) {
        const bool lengths_apart = (a.max_items && *a.max_items < b.min_items) || (b.max_items && *b.max_items < a.min_items);
        if (!lengths_apart) return false;
    }
    if ((common & types::kObject) != 0) return objects_apart(document, a, b, depth);
    return true;
}

}  // namespace

Result<bool> never_allows(SchemaDocument& document, std::span<const FactSet> written, std::span<const FactSet> valid, int depth) {
    for (const FactSet& a : written) {
        for (const FactSet& b : valid) {
            HR_TRY(const bool is_apart, apart(document, a, b, depth));
            if (!is_apart) return false;
        }
    }
    return true;
}

}  // namespace headroom::text
