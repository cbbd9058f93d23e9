#include "core/text/grammar/schema_compiler.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/text/grammar/schema_facts.h"
#include "core/text/grammar/schema_shape.h"

namespace headroom::text {
namespace {

std::string written(const Json& value) { return value.dump(); }

class SchemaCompiler {
public:
    SchemaCompiler(GrammarBuilder& builder, JsonRules& json, SchemaDocument& document) : builder_(builder), json_(json), document_(document) {}

    Result<RuleId> compile() {
        HR_TRY(const FactSet facts, document_.facts_of(document_.root(), ""));
        const RuleId root = rule_of(facts);
        // Rules are only named where they are called, and written here: a schema may contain itself.
        for (std::size_t i = 0; i < open_.size(); ++i) {
            const auto [rule, set] = open_[i];
            HR_CHECK(write(rule, set));
            if (builder_.is_full()) break;  // build() says so
        }
        return root;
    }

private:
    RuleId rule_of(const FactSet& facts) {
        if (facts.never) {
            if (!never_) never_ = builder_.rule(builder_.state());
            return *never_;
        }
        if (facts.facts.empty()) return json_.value();
        const auto [entry, is_new] = rules_.try_emplace(facts.key(), 0);
        if (is_new) {
            entry->second = builder_.declare();
            open_.emplace_back(entry->second, facts);
        }
        return entry->second;
    }

    Result<> write(RuleId rule, const FactSet& facts) {
        const StateId start = builder_.state(), end = builder_.state(true);
        HR_TRY(const auto alternatives, document_.alternatives(facts));
        for (const FactSet& alternative : alternatives) {
            HR_TRY(const Shape shape, shape_of(document_, alternative));
            HR_CHECK(write_shape(shape, start, end));
            if (builder_.is_full()) break;
        }
        builder_.define(rule, start);
        return {};
    }

    Result<> write_shape(const Shape& shape, StateId start, StateId end) {
        if (shape.values) {
            std::vector<std::string> texts;
            for (const Json& value : *shape.values) {
                if (value.is_structured()) {
                    builder_.jump(write_constant(value, start), end);
                } else {
                    texts.push_back(written(value));
                }
            }
            builder_.literals(start, texts, end);
            return {};
        }
        if ((shape.types & types::kNull) != 0) builder_.literal(start, "null", end);
        if ((shape.types & types::kBoolean) != 0) {
            builder_.literal(start, "true", end);
            builder_.literal(start, "false", end);
        }
        if ((shape.types & types::kNumber) != 0) {
            HR_TRY(const RuleId number, number_rule(shape));
            builder_.call(start, number, end);
        }
        if ((shape.types & types::kString) != 0) {
            HR_TRY(const RuleId string, string_rule(shape));
            builder_.call(start, string, end);
        }
        if ((shape.types & types::kArray) != 0) write_array(shape, start, end);
        if ((shape.types & types::kObject) != 0) write_object(shape, start, end);
        return {};
    }

    // Exactly this value, with space where JSON may have it; returns the state behind it.
    StateId write_constant(const Json& value, StateId from) {
        if (!value.is_structured()) return builder_.literal(from, written(value));
        const bool is_object = value.is_object();
        StateId at = builder_.literal(from, is_object ? "{" : "[");
        bool first = true;
        for (const auto& item : value.items()) {
            if (first) {
                const StateId begin = builder_.state();
                builder_.call(at, json_.space(), begin);
                at = begin;
            } else {
                at = json_.comma(at);
            }
            if (is_object) at = json_.colon(builder_.literal(at, written(Json(item.key()))));
            at = write_constant(item.value(), at);
            first = false;
        }
        const StateId close = builder_.state();
        builder_.call(at, json_.space(), close);
        return builder_.literal(close, is_object ? "}" : "]");
    }

    Result<RuleId> number_rule(const Shape& shape) {
        if ((shape.types & types::kFraction) == 0) {
            std::optional<std::int64_t> min, max;
            HR_TRY(min, whole_bound(shape, shape.min, true));
            HR_TRY(max, whole_bound(shape, shape.max, false));
            return builder_.embed(integer_dfa(min, max, shape.multiple_of));
        }
        if (!shape.min && !shape.max) return json_.number();
        auto dfa = number_dfa(shape.min, shape.max);
        if (!dfa) return document_.wrong(dfa.error().kind, *shape.source, shape.min ? "minimum" : "maximum", "{}", dfa.error().message);
        return builder_.embed(*dfa);
    }

    // The least (or greatest) integer that a bound allows.
    Result<std::optional<std::int64_t>> whole_bound(const Shape& shape, const std::optional<NumberBound>& bound, bool is_min) {
        if (!bound) return std::nullopt;
        constexpr std::size_t kMostSize = 18;
        const Decimal& value = bound->value;
        if (value.whole.size() > kMostSize) {
            if (value.negative == is_min) return std::nullopt;  // far beyond all that is written
            return document_.wrong(ErrorKind::unsupported, *shape.source, is_min ? "minimum" : "maximum", "integers of more than {} digits are not supported",
                                   kMostSize);
        }
        std::int64_t whole = std::stoll(value.whole);
        if (value.negative) whole = -whole;
        const bool is_whole = value.fraction.empty();
        if (is_min) {
            if (is_whole) return bound->exclusive ? whole + 1 : whole;
            return value.negative ? whole : whole + 1;
        }
        if (is_whole) return bound->exclusive ? whole - 1 : whole;
        return value.negative ? whole - 1 : whole;
    }

    Result<RuleId> string_rule(const Shape& shape) {
        constexpr std::uint64_t kNoMax = kNone - 1;
        const std::uint64_t max = shape.max_length.value_or(~std::uint64_t{0});
        if (shape.patterns.empty()) {
            if (shape.min_length == 0 && !shape.max_length) return json_.string();
            return json_.string(static_cast<std::uint32_t>(shape.min_length), max > kNoMax ? kNone : static_cast<std::uint32_t>(max));
        }
        constexpr std::size_t kMostStates = 50'000;
        constexpr std::uint64_t kMostLength = 2'000;
        const auto too_large = [&] {
            return document_.wrong(ErrorKind::invalid_argument, *shape.source, "pattern",
                                   "patterns and lengths together are too much: make the pattern simpler or the lengths smaller than {}", kMostLength);
        };
        std::optional<Dfa> all = *shape.patterns.front();
        for (std::size_t i = 1; i < shape.patterns.size() && all; ++i) all = intersect(*all, *shape.patterns[i], kMostStates);
        if (all && (shape.min_length > 0 || shape.max_length)) {
            if (shape.min_length > kMostLength) return too_large();
            const std::optional<std::uint32_t> most = max > kMostLength ? std::nullopt : std::optional(static_cast<std::uint32_t>(max));
            if (shape.max_length && !most) return too_large();
            all = intersect(*all, length_dfa(static_cast<std::uint32_t>(shape.min_length), most), kMostStates);
        }
        if (!all) return too_large();
        return builder_.embed_string(*all);
    }

    void write_array(const Shape& shape, StateId start, StateId end) {
        const StateId open = builder_.state(), first = builder_.state(), close = builder_.state();
        builder_.bytes(start, '[', '[', open);
        builder_.call(open, json_.space(), first);
        if (shape.min_items == 0) builder_.bytes(first, ']', ']', end);
        builder_.bytes(close, ']', ']', end);
        const std::uint64_t max = shape.max_items.value_or(kNone);
        StateId before = first;  // an item
        for (std::size_t i = 0; i < shape.prefix.size() && i < max; ++i) {
            const StateId behind = builder_.state();
            builder_.call(before, rule_of(shape.prefix[i]), behind);
            if (i + 1 >= shape.min_items) builder_.call(behind, json_.space(), close);
            before = json_.comma(behind);
        }
        const std::uint64_t done = shape.prefix.size();
        if (!shape.writes_items || max <= done) return;
        const RuleId item = rule_of(shape.items);
        const StateId more = builder_.state();
        builder_.call(json_.comma(more), item, builder_.state(true));
        const StateId behind = builder_.state(), last = builder_.state();
        builder_.call(before, item, behind);
        const std::uint64_t least = shape.min_items > done + 1 ? shape.min_items - done - 1 : 0;
        const std::uint64_t most = max >= kNone ? kNone : max - done - 1;
        builder_.call(behind, builder_.repeat(builder_.rule(more), static_cast<std::uint32_t>(least), static_cast<std::uint32_t>(most)), last);
        builder_.call(last, json_.space(), close);
    }

    // A member whose key is not one of the properties', from a state to another.
    void write_other(const Shape& shape, RuleId key_rule, StateId from, StateId to) {
        const StateId key = builder_.state();
        builder_.call(from, key_rule, key);
        builder_.call(json_.colon(key), rule_of(shape.others), to);
    }

    RuleId key_of_others(const Shape& shape) {
        if (shape.properties.empty()) return json_.string();
        std::vector<std::string> names;
        for (const Shape::Property& property : shape.properties) names.push_back(property.name);
        return builder_.embed_string(all_but(names));
    }

    void write_object(const Shape& shape, StateId start, StateId end) {
        const StateId open = builder_.state(), first = builder_.state(), close = builder_.state();
        builder_.bytes(start, '{', '{', open);
        builder_.call(open, json_.space(), first);
        builder_.bytes(close, '}', '}', end);
        const auto& properties = shape.properties;
        const bool none_required = std::ranges::none_of(properties, &Shape::Property::required);
        if (none_required && shape.min_members == 0) builder_.bytes(first, '}', '}', end);
        if (properties.empty()) return write_map(shape, first, close);
        // Properties come in their order. before[i]: one of those from i on must come; behind[i]: one has come, those from i on may follow.
        std::vector<StateId> before, behind;
        for (std::size_t i = 0; i <= properties.size(); ++i) {
            before.push_back(builder_.state());
            behind.push_back(builder_.state());
        }
        builder_.jump(first, before[0]);
        for (std::size_t i = 0; i < properties.size(); ++i) {
            const StateId key = builder_.literal(before[i], written(Json(properties[i].name)));
            builder_.call(json_.colon(key), rule_of(properties[i].facts), behind[i + 1]);
            if (!properties[i].required) builder_.jump(before[i], before[i + 1]);
            if (i > 0) builder_.jump(json_.comma(behind[i]), before[i]);
        }
        if (shape.writes_others) {
            const RuleId key = key_of_others(shape);
            write_other(shape, key, before.back(), behind.back());
            builder_.jump(json_.comma(behind.back()), before.back());
        }
        for (std::size_t i = properties.size(); i > 0; --i) {
            builder_.call(behind[i], json_.space(), close);
            if (properties[i - 1].required) break;
        }
    }

    // No property is named: any members.
    void write_map(const Shape& shape, StateId first, StateId close) {
        const std::uint64_t max = shape.max_members.value_or(kNone);
        if (!shape.writes_others || max == 0) return;
        const RuleId key = json_.string();
        const StateId more = builder_.state();
        write_other(shape, key, json_.comma(more), builder_.state(true));
        const StateId behind = builder_.state(), last = builder_.state();
        write_other(shape, key, first, behind);
        builder_.call(behind, builder_.repeat(builder_.rule(more), 0, max >= kNone ? kNone : static_cast<std::uint32_t>(max - 1)), last);
        builder_.call(last, json_.space(), close);
    }

    GrammarBuilder& builder_;
    JsonRules& json_;
    SchemaDocument& document_;
    std::map<std::vector<Fact>, RuleId> rules_;
    std::vector<std::pair<RuleId, FactSet>> open_;
    std::optional<RuleId> never_;
};

}  // namespace

Result<RuleId> add_json_schema(GrammarBuilder& builder, JsonRules& json, const Json& schema, std::string name, const SchemaLimits& limits) {
    HR_TRY(SchemaDocument document, SchemaDocument::read(schema, std::move(name), limits));
    return SchemaCompiler(builder, json, document).compile();
}

Result<std::shared_ptr<const Grammar>> compile_json_schema(const Json& schema, const SchemaLimits& limits) try {
    GrammarBuilder builder(limits.states);
    JsonRules json(builder);
    HR_TRY(const RuleId root, add_json_schema(builder, json, schema, "#", limits));
    const StateId start = builder.state(), value = builder.state();
    builder.call(start, json.space(), value);
    builder.call(value, root, builder.state(true));
    return builder.build(builder.rule(start));
} catch (const std::bad_alloc&) {
    return fail(ErrorKind::out_of_memory, "There is not enough memory for the schema");
} catch (const Json::exception&) {
    return fail(ErrorKind::invalid_argument, "The schema holds text that is not UTF-8");
}

std::shared_ptr<const Grammar> any_json_object() {
    GrammarBuilder builder(SchemaLimits().states);
    JsonRules json(builder);
    const StateId start = builder.state(), value = builder.state();
    builder.call(start, json.space(), value);
    builder.call(value, json.object(), builder.state(true));
    return *builder.build(builder.rule(start));
}

}  // namespace headroom::text
