#include "core/text/grammar/schema_shape.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "core/base/quote.h"
#include "core/text/grammar/formats.h"

namespace headroom::text {
namespace {

// Reads the keywords of several schemas into one shape.
class ShapeReader {
public:
    ShapeReader(SchemaDocument& document, const FactSet& facts) : document_(document), facts_(facts) {
        for (const Fact& fact : facts.facts) schemas_.push_back(fact.schema);
    }

    Result<Shape> read() {
        HR_CHECK(document_.spend(100 * (1 + schemas_.size())));
        if (!schemas_.empty()) shape_.source = schemas_.front();
        HR_CHECK(read_types());
        HR_CHECK(read_numbers());
        HR_CHECK(read_strings());
        HR_CHECK(read_arrays());
        HR_CHECK(read_objects());
        HR_CHECK(read_values());
        return std::move(shape_);
    }

private:
    [[nodiscard]] std::unexpected<Error> wrong(const Json& schema, std::string_view keyword, std::string_view expected) const {
        return document_.wrong(ErrorKind::invalid_argument, schema, keyword, "expected {}", expected);
    }

    Result<> read_types() {
        bool named = false;
        unsigned meant = 0;  // by other keywords
        for (const Json* schema : schemas_) {
            HR_TRY(const unsigned types, types_of(document_, *schema));
            shape_.valid_types &= types;
            named = named || schema->contains("type") || schema->contains("enum") || schema->contains("const");
            const auto means = [&](unsigned type, std::initializer_list<const char*> keywords) {
                if (std::ranges::any_of(keywords, [&](const char* name) { return schema->contains(name); })) meant |= type;
            };
            means(types::kObject, {"properties", "required", "additionalProperties", "minProperties", "maxProperties"});
            means(types::kArray, {"items", "prefixItems", "minItems", "maxItems"});
            means(types::kString, {"pattern", "format", "minLength", "maxLength"});
            means(types::kNumber, {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"});
        }
        shape_.types = shape_.valid_types;
        if (!named && meant != 0) shape_.types = meant;
        return {};
    }

    void take_bound(std::optional<NumberBound>& bound, const NumberBound& other, int tighter) {
        if (bound) {
            const int order = compare(other.value, bound->value);
            if (order != tighter && !(order == 0 && other.exclusive)) return;
        }
        bound = other;
    }

    Result<> read_numbers() {
        std::uint64_t multiple = 1;
        for (const Json* schema : schemas_) {
            for (const char* name : {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"}) {
                const Json* value = keyword(*schema, name);
                if (value == nullptr) continue;
                if (!value->is_number()) return wrong(*schema, name, "a number");
                const bool exclusive = name[0] == 'e', is_min = std::string_view(name).ends_with("inimum");
                take_bound(is_min ? shape_.min : shape_.max, {.value = Decimal::of(*value), .exclusive = exclusive}, is_min ? 1 : -1);
            }
            const Json* value = keyword(*schema, "multipleOf");
            if (value == nullptr) continue;
            if (!value->is_number() || !(value->get<double>() > 0)) return wrong(*schema, "multipleOf", "a number of more than 0");
            const double number = value->get<double>();
            constexpr std::uint64_t kMost = 1000;
            if (type_of(*value) == types::kInteger && number <= kMost) {
                multiple = std::lcm(multiple, static_cast<std::uint64_t>(number));
            } else {
                multiple = kMost + 1;
            }
            if (multiple > kMost) {
                return document_.wrong(ErrorKind::unsupported, *schema, "multipleOf", "only whole numbers from 1 to {} are supported", kMost);
            }
            shape_.types &= ~types::kFraction;
            shape_.multiple_of = static_cast<std::uint32_t>(multiple);
        }
        return {};
    }

    Result<> read_strings() {
        for (const Json* schema : schemas_) {
            HR_CHECK(read_counts(*schema, "minLength", "maxLength", shape_.min_length, shape_.max_length));
            for (const char* name : {"pattern", "format"}) {
                const Json* value = keyword(*schema, name);
                if (value == nullptr) continue;
                if (!value->is_string()) return wrong(*schema, name, "a string");
                std::string source = value->get<std::string>();
                if (std::string_view(name) == "format") {
                    const auto known = format_pattern(source);
                    if (!known) {
                        return document_.wrong(ErrorKind::unsupported, *schema, name, "the format {} is not supported; these are: {}", quote(source), known_formats());
                    }
                    source = *known;
                }
                HR_TRY(const Dfa* dfa, document_.pattern(source, *schema, name));
                if (std::ranges::find(shape_.patterns, dfa) == shape_.patterns.end()) shape_.patterns.push_back(dfa);
            }
        }
        return {};
    }

    Result<> read_counts(const Json& schema, const char* least, const char* most, std::uint64_t& min, std::optional<std::uint64_t>& max) {
        constexpr std::uint64_t kNone = ~std::uint64_t{0};
        HR_TRY(const auto low, count_of(document_, schema, least, 0));
        HR_TRY(const auto high, count_of(document_, schema, most, kNone));
        min = std::max(min, low);
        if (high != kNone) max = std::min(max.value_or(kNone), high);
        constexpr std::uint64_t kMostAtLeast = 100'000;
        if (min > kMostAtLeast) return document_.wrong(ErrorKind::unsupported, schema, least, "more than {} are not supported", kMostAtLeast);
        return {};
    }

    // The items in front, and the schema of the others; null where there is none.
    struct Items {
        const Json* prefix = nullptr;
        const Json* rest = nullptr;
        std::string_view prefix_name, rest_name;
    };
    Result<Items> items_of(const Json& schema) {
        Items items{keyword(schema, "prefixItems"), keyword(schema, "items"), "prefixItems", "items"};
        if (items.prefix == nullptr && items.rest != nullptr && items.rest->is_array()) {  // as it was written before 2020
            items = {items.rest, keyword(schema, "additionalItems"), "items", "additionalItems"};
        }
        if (items.prefix != nullptr && !items.prefix->is_array()) return wrong(schema, items.prefix_name, "a list of schemas");
        return items;
    }

    Result<> read_arrays() {
        std::size_t longest = 0;
        bool declared = false;
        std::vector<Items> all;
        for (const Json* schema : schemas_) {
            HR_CHECK(read_counts(*schema, "minItems", "maxItems", shape_.min_items, shape_.max_items));
            HR_TRY(const Items items, items_of(*schema));
            if (items.prefix != nullptr) longest = std::max(longest, items.prefix->size());
            declared = declared || items.rest != nullptr;
            all.push_back(items);
        }
        if (shape_.max_items) longest = static_cast<std::size_t>(std::min<std::uint64_t>(longest, *shape_.max_items));
        const auto at = [&](std::size_t place) -> Result<FactSet> {
            FactSet facts;
            for (std::size_t i = 0; i < schemas_.size(); ++i) {
                const std::string path = document_.path_of(*schemas_[i]);
                if (all[i].prefix != nullptr && place < all[i].prefix->size()) {
                    HR_CHECK(document_.add(facts, (*all[i].prefix)[place], fmt::format("{}/{}/{}", path, all[i].prefix_name, place)));
                } else if (all[i].rest != nullptr) {
                    HR_CHECK(document_.add(facts, *all[i].rest, fmt::format("{}/{}", path, all[i].rest_name)));
                }
            }
            return facts;
        };
        for (std::size_t i = 0; i < longest; ++i) {
            HR_TRY(FactSet facts, at(i));
            shape_.prefix.push_back(std::move(facts));
        }
        HR_TRY(shape_.items, at(~std::size_t{0}));
        // Behind a prefix nothing is written that the schema says nothing of, unless so many are asked for.
        shape_.writes_items = declared || longest == 0 || shape_.min_items > longest;
        return {};
    }

    Result<> read_objects() {
        std::vector<std::string> names;
        bool declared = false;
        const auto add_name = [&](const std::string& name) {
            if (std::ranges::find(names, name) == names.end()) names.push_back(name);
        };
        std::vector<std::string> required;
        for (const Json* schema : schemas_) {
            HR_CHECK(read_counts(*schema, "minProperties", "maxProperties", shape_.min_members, shape_.max_members));
            if (const Json* properties = keyword(*schema, "properties")) {
                if (!properties->is_object()) return wrong(*schema, "properties", "an object of schemas");
                for (const auto& item : properties->items()) {
                    HR_CHECK(document_.spend(names.size()));
                    add_name(item.key());
                }
            }
            declared = declared || schema->contains("additionalProperties");
            if (const Json* list = keyword(*schema, "required")) {
                if (!list->is_array()) return wrong(*schema, "required", "a list of names");
                for (const Json& name : *list) {
                    if (!name.is_string()) return wrong(*schema, "required", "a list of names");
                    required.push_back(name.get<std::string>());
                }
            }
        }
        for (const std::string& name : required) {
            HR_CHECK(document_.spend(names.size()));
            add_name(name);
        }
        std::ranges::sort(required);
        for (const std::string& name : names) {
            FactSet facts;
            for (const Json* schema : schemas_) {
                HR_CHECK(document_.spend(names.size()));  // ordered objects are searched from their beginning
                const Json* properties = keyword(*schema, "properties");
                const std::string path = document_.path_of(*schema);
                if (properties != nullptr && properties->contains(name)) {
                    HR_CHECK(document_.add(facts, (*properties)[name], fmt::format("{}/properties/{}", path, printable(name, 80))));
                } else if (const Json* others = keyword(*schema, "additionalProperties")) {
                    HR_CHECK(document_.add(facts, *others, path + "/additionalProperties"));
                }
            }
            shape_.properties.push_back({name, std::move(facts), std::ranges::binary_search(required, name)});
        }
        for (const Json* schema : schemas_) {
            if (const Json* others = keyword(*schema, "additionalProperties")) {
                HR_CHECK(document_.add(shape_.others, *others, document_.path_of(*schema) + "/additionalProperties"));
            }
        }
        shape_.writes_others = (declared || names.empty()) && !shape_.others.never;
        return check_members();
    }

    // The number of members is not counted but where there are no properties of their own.
    Result<> check_members() {
        const auto required = static_cast<std::size_t>(std::ranges::count_if(shape_.properties, &Shape::Property::required));
        if (shape_.min_members > required && !(shape_.properties.empty() && shape_.min_members == 1)) {
            return document_.wrong(ErrorKind::unsupported, *shape_.source, "minProperties", "more than the required properties is not supported");
        }
        if (shape_.max_members && !shape_.properties.empty()) {
            if (*shape_.max_members < shape_.properties.size()) {
                return document_.wrong(ErrorKind::unsupported, *shape_.source, "maxProperties", "fewer than there are properties is not supported");
            }
            shape_.writes_others = false;
        }
        return {};
    }

    Result<> read_values() {
        const Json* listed = nullptr;  // the schema whose enum they are
        for (const Json* schema : schemas_) {
            if (const Json* constant = keyword(*schema, "const")) {
                if (!shape_.values) shape_.values = std::vector<Json>{*constant};
            }
            if (const Json* list = keyword(*schema, "enum")) {
                if (!list->is_array()) return wrong(*schema, "enum", "a list of values");
                if (!shape_.values) {
                    shape_.values.emplace(list->begin(), list->end());
                    listed = schema;
                }
            }
        }
        if (!shape_.values) return {};
        std::vector<Json> valid;
        for (const Json& value : *shape_.values) {
            HR_TRY(const bool allowed, document_.allows(facts_, value, listed));
            if (allowed) valid.push_back(value);
        }
        shape_.values = std::move(valid);
        return {};
    }

    SchemaDocument& document_;
    const FactSet& facts_;
    std::vector<const Json*> schemas_;
    Shape shape_;
};

}  // namespace

int compare(const Decimal& a, const Decimal& b) {
    if (a.negative != b.negative) return a.negative ? -1 : 1;
    int order = 0;
    if (a.whole.size() != b.whole.size()) {
        order = a.whole.size() < b.whole.size() ? -1 : 1;
    } else if (const int whole = a.whole.compare(b.whole); whole != 0) {
        order = whole;
    } else {
        order = a.fraction.compare(b.fraction);
    }
    order = order < 0 ? -1 : order > 0 ? 1 : 0;
    return a.negative ? -order : order;
}

Result<Shape> shape_of(SchemaDocument& document, const FactSet& facts) { return ShapeReader(document, facts).read(); }

}  // namespace headroom::text
