#include "core/text/grammar/schema_facts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <utility>

#include "core/base/quote.h"
#include "core/text/grammar/regex.h"
#include "core/text/grammar/schema_exclusive.h"

namespace headroom::text {
namespace {

// What says something about values.
constexpr std::array<std::string_view, 26> kKnown{
    "type",     "nullable", "enum",     "const",    "$ref",        "allOf",            "anyOf",            "oneOf",      "properties",
    "required", "additionalProperties", "minProperties", "maxProperties", "items",  "prefixItems",      "additionalItems",  "minItems",
    "maxItems", "uniqueItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"};
constexpr std::array<std::string_view, 2> kKnownText{"pattern", "format"};
// What does not.
constexpr std::array<std::string_view, 21> kRemarks{
    "title",   "description", "default",     "examples",         "example",        "$schema",       "$id",        "id",           "$comment",   "$defs",
    "definitions", "deprecated", "readOnly", "writeOnly", "$anchor", "$vocabulary", "contentEncoding", "contentMediaType", "contentSchema",
    "discriminator", "externalDocs"};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

constexpr std::size_t kMostValues = 200'000;  // of a schema document

}  // namespace

bool FactSet::has(const Fact& fact) const noexcept { return std::ranges::find(facts, fact) != facts.end(); }

void FactSet::add(const Fact& fact) {
    if (!has(fact)) facts.push_back(fact);
}

std::vector<Fact> FactSet::key() const {
    std::vector<Fact> sorted = facts;
    std::ranges::sort(sorted);
    return sorted;
}

const Json* keyword(const Json& schema, const char* name) {
    const auto found = schema.find(name);
    return found != schema.end() ? &*found : nullptr;
}

Result<SchemaDocument> SchemaDocument::read(const Json& root, std::string name, const SchemaLimits& limits) {
    std::vector<std::pair<const Json*, std::size_t>> open{{&root, 1}};
    for (std::size_t i = 0; i < open.size(); ++i) {
        const auto [value, depth] = open[i];
        if (depth > limits.depth) {
            return fail(ErrorKind::invalid_argument, "{}: the schema has values more than {} deep inside of each other", name, limits.depth);
        }
        if (open.size() > kMostValues) return fail(ErrorKind::invalid_argument, "{}: the schema has more than {} values", name, kMostValues);
        if (value->is_structured()) {
            for (const Json& child : *value) open.emplace_back(&child, depth + 1);
        }
    }
    return SchemaDocument(root, std::move(name), limits);
}

std::string SchemaDocument::path_of(const Json& schema) const {
    const auto found = paths_.find(&schema);
    return found != paths_.end() ? found->second : std::string();
}

Result<> SchemaDocument::spend(std::size_t steps) {
    constexpr std::size_t kMost = 30'000'000;
    spent_ += std::min(steps, kMost);
    if (spent_ > kMost) return fail(ErrorKind::invalid_argument, "{}: the schema takes too long to work out: make it smaller", name_);
    return {};
}

Result<> SchemaDocument::check_keywords(const Json& schema) {
    for (const auto& item : schema.items()) {
        const std::string& key = item.key();
        const bool known = contains(kKnown, key) || contains(kKnownText, key) || contains(kRemarks, key) || key.starts_with("x-");
        if (!known) return wrong(ErrorKind::unsupported, schema, printable(key, 80), "this keyword is not supported");
    }
    if (const Json* unique = keyword(schema, "uniqueItems"); unique != nullptr && *unique != false) {
        return wrong(ErrorKind::unsupported, schema, "uniqueItems", "items that differ from each other are not supported");
    }
    for (const char* list : {"allOf", "anyOf", "oneOf"}) {
        const Json* value = keyword(schema, list);
        if (value != nullptr && (!value->is_array() || value->empty())) {
            return wrong(ErrorKind::invalid_argument, schema, list, "expected a list of schemas");
        }
    }
    HR_CHECK(types_of(*this, schema));
    return {};
}

Result<const Json*> SchemaDocument::resolve(const Json& schema, std::string& path) {
    const Json& ref = schema["$ref"];
    if (!ref.is_string()) return wrong(ErrorKind::invalid_argument, schema, "$ref", "expected a string");
    const auto& text = ref.get_ref<const std::string&>();
    if (!text.starts_with('#') || (text.size() > 1 && text[1] != '/')) {
        return wrong(ErrorKind::unsupported, schema, "$ref", "{} does not point into the schema itself (\"#/…\")", quote(text));
    }
    const Json* at = root_;
    std::string_view rest = std::string_view(text).substr(1);
    while (!rest.empty()) {
        rest.remove_prefix(1);  // the slash
        const std::string_view written = rest.substr(0, rest.find('/'));
        rest.remove_prefix(written.size());
        std::string name;
        for (std::size_t i = 0; i < written.size(); ++i) {
            unsigned code = 0;
            if (written[i] == '~' && i + 1 < written.size() && (written[i + 1] == '0' || written[i + 1] == '1')) {
                name.push_back(written[++i] == '0' ? '~' : '/');
            } else if (written[i] == '%' && i + 2 < written.size() &&
                       std::from_chars(written.data() + i + 1, written.data() + i + 3, code, 16).ptr == written.data() + i + 3) {
                name.push_back(static_cast<char>(code));
                i += 2;
            } else {
                name.push_back(written[i]);
            }
        }
        const Json* next = nullptr;
        if (at->is_object()) {
            const auto found = at->find(name);
            if (found != at->end()) next = &*found;
        } else if (at->is_array()) {
            std::size_t index = 0;
            const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), index);
            if (code == std::errc() && end == name.data() + name.size() && index < at->size()) next = &(*at)[index];
        }
        if (next == nullptr) return wrong(ErrorKind::invalid_argument, schema, "$ref", "there is nothing at {}", quote(text));
        at = next;
    }
    path = printable(std::string_view(text).substr(1), 200);
    return at;
}

Result<> SchemaDocument::add(FactSet& set, const Json& schema, const std::string& path) {
    if (schema.is_boolean()) {
        if (!schema.get<bool>()) set.never = true;
        return {};
    }
    if (!schema.is_object()) return fail(ErrorKind::invalid_argument, "{}{}: a schema is an object, true or false", name_, path);
    HR_CHECK(spend(set.facts.size() + path.size() / 8 + 1));
    if (set.has({&schema, Fact::Part::keywords})) return {};
    if (paths_.try_emplace(&schema, path).second) HR_CHECK(check_keywords(schema));
    set.add({&schema, Fact::Part::keywords});
    if (keyword(schema, "$ref") != nullptr) {
        std::string target_path;
        HR_TRY(const Json* target, resolve(schema, target_path));
        HR_CHECK(add(set, *target, target_path));
    }
    if (const Json* all = keyword(schema, "allOf")) {
        for (std::size_t i = 0; i < all->size(); ++i) HR_CHECK(add(set, (*all)[i], fmt::format("{}/allOf/{}", path, i)));
    }
    if (keyword(schema, "anyOf") != nullptr) set.add({&schema, Fact::Part::any_of});
    if (keyword(schema, "oneOf") != nullptr) set.add({&schema, Fact::Part::one_of});
    return {};
}

Result<FactSet> SchemaDocument::facts_of(const Json& schema, const std::string& path) {
    FactSet set;
    HR_CHECK(add(set, schema, path));
    return set;
}

struct SchemaDocument::Alternative {
    FactSet set;
    struct Choice {
        const Json* schema;
        std::size_t branch;
    };
    std::vector<Choice> of_one{};  // which branch of each one_of
    // Of choices that are to be made: those whose branch they came from, so that a way in a circle is seen.
    std::map<Fact, std::set<Fact>> within{};
};

Result<> SchemaDocument::count_combination(const Json& schema, const char* keyword) {
    if (++combinations_ <= limits_.combinations) return {};
    return wrong(ErrorKind::invalid_argument, schema, keyword, "the schema comes to more than {} alternatives", limits_.combinations);
}

Result<std::vector<SchemaDocument::Alternative>> SchemaDocument::expand(const FactSet& set) {
    std::vector<Alternative> open{{.set = set}}, whole;
    std::set<std::vector<Fact>> seen;
    for (std::size_t i = 0; i < open.size(); ++i) {
        if (open[i].set.never) continue;
        const auto choice = std::ranges::find_if(open[i].set.facts, [](const Fact& fact) { return fact.part != Fact::Part::keywords; });
        if (choice == open[i].set.facts.end()) {
            whole.push_back(std::move(open[i]));
            continue;
        }
        const Fact chosen = *choice;
        Alternative rest = open[i];
        std::erase(rest.set.facts, chosen);
        std::set<Fact> within = rest.within[chosen];
        within.insert(chosen);
        const char* const name = chosen.part == Fact::Part::one_of ? "oneOf" : "anyOf";
        const Json& list = *keyword(*chosen.schema, name);
        for (std::size_t k = 0; k < list.size(); ++k) {
            HR_CHECK(count_combination(*chosen.schema, name));
            HR_TRY(const FactSet more, facts_of(list[k], fmt::format("{}/{}/{}", path_of(*chosen.schema), name, k)));
            // A branch that leads back to a choice that it is a branch of can only hold where another branch does.
            if (std::ranges::any_of(more.facts, [&](const Fact& fact) { return within.contains(fact); })) continue;
            HR_CHECK(spend(rest.set.facts.size() * (1 + more.facts.size()) + rest.within.size() * 10));
            Alternative next = rest;
            next.set.never = next.set.never || more.never;
            if (chosen.part == Fact::Part::one_of) next.of_one.push_back({chosen.schema, k});
            for (const Fact& fact : more.facts) {
                const bool was_chosen = fact.part != Fact::Part::keywords && !rest.set.has(fact) && rest.set.has({fact.schema, Fact::Part::keywords});
                if (was_chosen || next.set.has(fact)) continue;  // holds already
                next.set.add(fact);
                if (fact.part != Fact::Part::keywords) next.within[fact] = within;
            }
            if (seen.insert(next.set.key()).second) open.push_back(std::move(next));
        }
    }
    return whole;
}

Result<std::vector<FactSet>> SchemaDocument::loose_alternatives(const FactSet& set) {
    HR_TRY(auto expanded, expand(set));
    std::vector<FactSet> sets;
    for (Alternative& alternative : expanded) sets.push_back(std::move(alternative.set));
    return sets;
}

Result<std::vector<FactSet>> SchemaDocument::alternatives(const FactSet& set) {
    HR_TRY(auto expanded, expand(set));
    std::vector<FactSet> sets;
    for (Alternative& alternative : expanded) {
        HR_CHECK(check_exclusive(alternative));
        sets.push_back(std::move(alternative.set));
    }
    return sets;
}

Result<> SchemaDocument::check_exclusive(const Alternative& alternative) {
    for (const auto& [schema, branch] : alternative.of_one) {
        const Json& list = (*schema)["oneOf"];
        for (std::size_t i = 0; i < list.size(); ++i) {
            if (i == branch) continue;
            HR_CHECK(count_combination(*schema, "oneOf"));
            HR_TRY(const FactSet other, facts_of(list[i], fmt::format("{}/oneOf/{}", path_of(*schema), i)));
            HR_TRY(const auto sets, loose_alternatives(other));
            HR_TRY(const bool apart, never_allows(*this, std::span(&alternative.set, 1), sets));
            if (!apart) {
                return wrong(ErrorKind::unsupported, *schema, "oneOf",
                             "the alternatives {} and {} may allow the same value: say what tells them apart (a type, a const in a required property), "
                             "or use anyOf",
                             std::min(i, branch), std::max(i, branch));
            }
        }
    }
    return {};
}

Result<const Dfa*> SchemaDocument::pattern(const std::string& pattern, const Json& where, std::string_view keyword) {
    const auto known = patterns_.find(pattern);
    if (known != patterns_.end()) return &known->second;
    constexpr std::size_t kMostStates = 5'000;
    auto dfa = compile_pattern(pattern, kMostStates);
    if (!dfa) return wrong(dfa.error().kind, where, keyword, "{}", dfa.error().message);
    return &patterns_.emplace(pattern, *std::move(dfa)).first->second;
}

}  // namespace headroom::text
