// Whether a value is valid by a schema: for enum and const beside other keywords, and for telling alternatives apart.

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/base/quote.h"
#include "core/base/utf8.h"
#include "core/text/grammar/formats.h"
#include "core/text/grammar/schema_facts.h"

namespace headroom::text {
namespace {

std::size_t characters_in(std::string_view text) {
    return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

bool json_equal(const Json& a, const Json& b) {
    if (a.is_object() && b.is_object()) {
        return a.size() == b.size() && std::ranges::all_of(a.items(), [&](const auto& item) {
                   const auto found = b.find(item.key());
                   return found != b.end() && json_equal(item.value(), *found);
               });
    }
    if (a.is_array() && b.is_array()) return std::ranges::equal(a, b, json_equal);
    return a == b;
}

unsigned type_of(const Json& value) {
    switch (value.type()) {
        case Json::value_t::null: return types::kNull;
        case Json::value_t::boolean: return types::kBoolean;
        case Json::value_t::number_integer:
        case Json::value_t::number_unsigned: return types::kInteger;
        case Json::value_t::number_float: return std::trunc(value.get<double>()) == value.get<double>() ? types::kInteger : types::kFraction;
        case Json::value_t::string: return types::kString;
        case Json::value_t::array: return types::kArray;
        case Json::value_t::object: return types::kObject;
        default: return 0;
    }
}

Result<unsigned> types_of(const SchemaDocument& document, const Json& schema) {
    const Json* type = keyword(schema, "type");
    if (type == nullptr) return types::kAll;
    static const std::map<std::string, unsigned, std::less<>> kNames{
        {"null", types::kNull},     {"boolean", types::kBoolean}, {"integer", types::kInteger}, {"number", types::kNumber},
        {"string", types::kString}, {"array", types::kArray},     {"object", types::kObject}};
    unsigned all = 0;
    const auto add = [&](const Json& name) {
        const auto found = name.is_string() ? kNames.find(name.get_ref<const std::string&>()) : kNames.end();
        if (found == kNames.end()) return false;
        all |= found->second;
        return true;
    };
    const bool known = type->is_array() ? !type->empty() && std::ranges::all_of(*type, add) : add(*type);
    if (!known) {
        return document.wrong(ErrorKind::invalid_argument, schema, "type", "expected null, boolean, integer, number, string, array, object or a list of these");
    }
    if (const Json* nullable = keyword(schema, "nullable"); nullable != nullptr && *nullable == true) all |= types::kNull;
    return all;
}

Result<std::uint64_t> count_of(const SchemaDocument& document, const Json& schema, const char* name, std::uint64_t none) {
    const Json* value = keyword(schema, name);
    if (value == nullptr) return none;
    if (value->is_number_unsigned()) return value->get<std::uint64_t>();
    if (value->is_number_integer() && value->get<std::int64_t>() >= 0) return value->get<std::uint64_t>();
    if (value->is_number_float() && type_of(*value) == types::kInteger && value->get<double>() >= 0 && value->get<double>() < 1e15) {
        return static_cast<std::uint64_t>(value->get<double>());
    }
    return document.wrong(ErrorKind::invalid_argument, schema, name, "expected a whole number of 0 or more");
}

Result<bool> SchemaDocument::allows(const FactSet& set, const Json& value, const Json* listed) {
    if (set.never) return false;
    HR_CHECK(spend(10 + set.facts.size()));
    constexpr std::size_t kMostDepth = 300;
    if (depth_ > kMostDepth) return fail(ErrorKind::invalid_argument, "{}: the schema refers to itself without end", name_);
    ++depth_;
    struct Leave {
        std::size_t& depth;
        ~Leave() { --depth; }
    } const leave{depth_};
    for (const Fact& fact : set.facts) {
        if (fact.part == Fact::Part::keywords) {
            HR_TRY(const bool valid, allows_keywords(*fact.schema, value, listed));
            if (!valid) return false;
            continue;
        }
        const bool one = fact.part == Fact::Part::one_of;
        const char* const name = one ? "oneOf" : "anyOf";
        const Json& list = *keyword(*fact.schema, name);
        std::size_t valid_ones = 0;
        for (std::size_t i = 0; i < list.size(); ++i) {
            HR_TRY(const FactSet branch, facts_of(list[i], fmt::format("{}/{}/{}", path_of(*fact.schema), name, i)));
            HR_TRY(const bool valid, allows(branch, value));
            if (valid) ++valid_ones;
        }
        if (valid_ones == 0 || (one && valid_ones > 1)) return false;
    }
    return true;
}

Result<bool> SchemaDocument::allows_keywords(const Json& schema, const Json& value, const Json* listed) {
    HR_TRY(const unsigned allowed, types_of(*this, schema));
    const unsigned type = type_of(value);
    if ((allowed & type) == 0) return false;
    if (const Json* values = keyword(schema, "enum"); values != nullptr && &schema != listed) {
        HR_CHECK(spend(values->size()));
        const bool is_one = values->is_array() && std::ranges::any_of(*values, [&](const Json& one) { return json_equal(one, value); });
        if (!is_one) return false;
    }
    if (const Json* constant = keyword(schema, "const"); constant != nullptr && !json_equal(*constant, value)) return false;
    if (type == types::kObject) return allows_object(schema, value);
    if (type == types::kArray) return allows_array(schema, value);
    if (type == types::kString) return allows_string(schema, value);
    if ((type & types::kNumber) == 0) return true;
    const auto number = [&](const char* name) {
        const Json* bound = keyword(schema, name);
        return bound != nullptr && bound->is_number() ? bound : nullptr;
    };
    const Json* bound = number("minimum");
    if (bound != nullptr && value < *bound) return false;
    bound = number("maximum");
    if (bound != nullptr && value > *bound) return false;
    bound = number("exclusiveMinimum");
    if (bound != nullptr && value <= *bound) return false;
    bound = number("exclusiveMaximum");
    if (bound != nullptr && value >= *bound) return false;
    bound = number("multipleOf");
    return bound == nullptr || bound->get<double>() == 0 || std::fmod(value.get<double>(), bound->get<double>()) == 0;
}

Result<bool> SchemaDocument::allows_object(const Json& schema, const Json& value) {
    HR_TRY(const auto least, count_of(*this, schema, "minProperties", 0));
    HR_TRY(const auto most, count_of(*this, schema, "maxProperties", ~std::uint64_t{0}));
    if (value.size() < least || value.size() > most) return false;
    if (const Json* required = keyword(schema, "required"); required != nullptr && required->is_array()) {
        for (const Json& name : *required) {
            if (name.is_string() && !value.contains(name.get_ref<const std::string&>())) return false;
        }
    }
    const Json* properties = keyword(schema, "properties");
    const Json* others = keyword(schema, "additionalProperties");
    for (const auto& item : value.items()) {
        const Json* child = others;
        std::string path = path_of(schema) + "/additionalProperties";
        if (properties != nullptr && properties->is_object()) {
            const auto found = properties->find(item.key());
            if (found != properties->end()) {
                child = &*found;
                path = fmt::format("{}/properties/{}", path_of(schema), printable(item.key(), 80));
            }
        }
        if (child == nullptr) continue;
        HR_TRY(const FactSet facts, facts_of(*child, path));
        HR_TRY(const bool valid, allows(facts, item.value()));
        if (!valid) return false;
    }
    return true;
}

Result<bool> SchemaDocument::allows_array(const Json& schema, const Json& value) {
    HR_TRY(const auto least, count_of(*this, schema, "minItems", 0));
    HR_TRY(const auto most, count_of(*this, schema, "maxItems", ~std::uint64_t{0}));
    if (value.size() < least || value.size() > most) return false;
    const Json* prefix = keyword(schema, "prefixItems");
    const Json* rest = keyword(schema, "items");
    if (prefix == nullptr && rest != nullptr && rest->is_array()) {  // as it was written before 2020
        prefix = rest;
        rest = keyword(schema, "additionalItems");
    }
    for (std::size_t i = 0; i < value.size(); ++i) {
        const bool in_prefix = prefix != nullptr && prefix->is_array() && i < prefix->size();
        const Json* child = in_prefix ? &(*prefix)[i] : rest;
        if (child == nullptr) continue;
        HR_TRY(const FactSet facts, facts_of(*child, fmt::format("{}/items", path_of(schema))));
        HR_TRY(const bool valid, allows(facts, value[i]));
        if (!valid) return false;
    }
    return true;
}

Result<bool> SchemaDocument::allows_string(const Json& schema, const Json& value) {
    const auto& text = value.get_ref<const std::string&>();
    HR_CHECK(spend(text.size()));
    HR_TRY(const auto least, count_of(*this, schema, "minLength", 0));
    HR_TRY(const auto most, count_of(*this, schema, "maxLength", ~std::uint64_t{0}));
    const std::size_t length = characters_in(text);
    if (length < least || length > most) return false;
    for (const char* name : {"pattern", "format"}) {
        const Json* written = keyword(schema, name);
        if (written == nullptr || !written->is_string()) continue;
        std::string source = written->get<std::string>();
        if (std::string_view(name) == "format") source = format_pattern(source).value_or("");
        HR_TRY(const Dfa* dfa, pattern(source, schema, name));
        if (!dfa->matches(text)) return false;
    }
    return true;
}

}  // namespace headroom::text
