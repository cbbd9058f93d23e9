#pragma once

// JSON Schema as sets of facts: what must hold for one value, with references followed and allOf merged.

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/error.h"
#include "core/text/grammar/dfa.h"
#include "core/text/json_schema.h"

namespace headroom::text {

// A part of one schema of the document: its keywords but for the alternatives, or these.
struct Fact {
    enum class Part : std::uint8_t { keywords, any_of, one_of };
    const Json* schema = nullptr;
    Part part = Part::keywords;
    auto operator<=>(const Fact&) const = default;
};

// All facts hold together. Without facts: any value. Two sets of the same facts are the same rule, which is how recursion ends.
struct FactSet {
    std::vector<Fact> facts{};  // in the order in which they were met
    bool never = false;         // `false` is among the schemas: no value at all
    [[nodiscard]] bool has(const Fact& fact) const noexcept;
    void add(const Fact& fact);
    [[nodiscard]] std::vector<Fact> key() const;  // ascending
};

// Reads a schema document, which must outlive this. Paths in messages begin with `name`.
class SchemaDocument {
public:
    // Errors: invalid_argument where values lie too deep inside of each other or there are too many.
    [[nodiscard]] static Result<SchemaDocument> read(const Json& root, std::string name, const SchemaLimits& limits);

    // Adds what the schema asks for. path: where it stands, "/properties/a".
    // Errors: as compile_json_schema's.
    [[nodiscard]] Result<> add(FactSet& set, const Json& schema, const std::string& path);
    [[nodiscard]] Result<FactSet> facts_of(const Json& schema, const std::string& path);
    // The set without any_of and one_of: one of the sets returned must hold. What is written by one of them is valid by one branch of each
    // one_of only, or it is an error.
    [[nodiscard]] Result<std::vector<FactSet>> alternatives(const FactSet& set);
    // The same where it is enough that one_of is valid by at least one branch.
    [[nodiscard]] Result<std::vector<FactSet>> loose_alternatives(const FactSet& set);
    // Whether the value is valid. listed: a schema whose enum it comes from.
    [[nodiscard]] Result<bool> allows(const FactSet& set, const Json& value, const Json* listed = nullptr);
    // The automaton of a string's pattern; each is made once. `where` is the schema.
    [[nodiscard]] Result<const Dfa*> pattern(const std::string& pattern, const Json& where, std::string_view keyword);

    [[nodiscard]] const Json& root() const noexcept { return *root_; }
    [[nodiscard]] const SchemaLimits& limits() const noexcept { return limits_; }
    // Counts work whose amount the schema decides. Error: invalid_argument, when it has been too much.
    [[nodiscard]] Result<> spend(std::size_t steps);
    // Where a schema stands, for messages and for paths of what is in it.
    [[nodiscard]] std::string path_of(const Json& schema) const;

    // An error at a keyword of a schema.
    template <class... Args>
    [[nodiscard]] std::unexpected<Error> wrong(ErrorKind kind, const Json& schema, std::string_view keyword, fmt::format_string<Args...> text,
                                               Args&&... args) const {
        return fail(kind, "{}{}/{}: {}", name_, path_of(schema), keyword, fmt::format(text, std::forward<Args>(args)...));
    }

private:
    SchemaDocument(const Json& root, std::string name, const SchemaLimits& limits) : root_(&root), name_(std::move(name)), limits_(limits) {}
    [[nodiscard]] Result<> check_keywords(const Json& schema);
    [[nodiscard]] Result<const Json*> resolve(const Json& schema, std::string& path);
    struct Alternative;
    [[nodiscard]] Result<std::vector<Alternative>> expand(const FactSet& set);
    [[nodiscard]] Result<> check_exclusive(const Alternative& alternative);
    [[nodiscard]] Result<> count_combination(const Json& schema, const char* keyword);
    [[nodiscard]] Result<bool> allows_keywords(const Json& schema, const Json& value, const Json* listed);
    [[nodiscard]] Result<bool> allows_object(const Json& schema, const Json& value);
    [[nodiscard]] Result<bool> allows_array(const Json& schema, const Json& value);
    [[nodiscard]] Result<bool> allows_string(const Json& schema, const Json& value);

    const Json* root_;
    std::string name_;
    SchemaLimits limits_;
    std::unordered_map<const Json*, std::string> paths_;  // of the schemas met
    std::map<std::string, Dfa, std::less<>> patterns_;
    std::size_t combinations_ = 0;
    std::size_t spent_ = 0;
    std::size_t depth_ = 0;  // of allows()
};

// Names of the kinds of values, as bits.
namespace types {
inline constexpr unsigned kNull = 1, kBoolean = 2, kInteger = 4, kFraction = 8, kString = 16, kArray = 32, kObject = 64;
inline constexpr unsigned kNumber = kInteger | kFraction, kAll = 127;
}  // namespace types
// Of the keyword `type` (with `nullable`); all without it. Errors: an unknown name.
[[nodiscard]] Result<unsigned> types_of(const SchemaDocument& document, const Json& schema);
[[nodiscard]] unsigned type_of(const Json& value);

// A keyword that is a whole number of 0 or more; `none` where it is absent.
[[nodiscard]] Result<std::uint64_t> count_of(const SchemaDocument& document, const Json& schema, const char* keyword, std::uint64_t none);

// The value of a keyword, or null.
[[nodiscard]] const Json* keyword(const Json& schema, const char* name);

// Equal as JSON Schema has it: 1 and 1.0 are, objects in any order.
[[nodiscard]] bool json_equal(const Json& a, const Json& b);

}  // namespace headroom::text
