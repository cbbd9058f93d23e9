#include <algorithm>
#include <numeric>

#include "core/text/jinja/attributes.h"
#include "core/text/jinja/failure.h"
#include "core/text/jinja/filter_functions.h"
#include "core/text/jinja/repr.h"
#include "core/text/jinja/strings.h"
#include "core/text/jinja/unicode.h"

namespace headroom::text::jinja {

AttributePath::AttributePath(Evaluator& evaluator, const Value* path) {
    if (path == nullptr || path->is(Kind::none)) return;
    if (!path->is(Kind::string)) {
        parts_.push_back(*path);
        return;
    }
    for (const std::string_view part : split_text(evaluator, path->string().text(), ".", SIZE_MAX, false)) {
        const bool is_number =
            !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == std::string_view::npos;
        std::int64_t number = 0;
        for (const char c : part) number = is_number ? number * 10 + (c - '0') : 0;
        parts_.push_back(is_number ? Value(number) : evaluator.string(std::string(part)));
    }
}

Value AttributePath::follow(Evaluator& evaluator, const Value& item, const Value* fallback) const {
    Value value = item;
    for (const Value& part : parts_) {
        value = subscript(evaluator, value, part);
        if (fallback != nullptr && value.is(Kind::undefined)) value = *fallback;
    }
    return value;
}

namespace filter {
namespace {

// Strings compare without case unless it is asked for.
Value sort_key(Evaluator& evaluator, Value value, bool case_sensitive) {
    if (case_sensitive || !value.is(Kind::string)) return value;
    return evaluator.string(jinja::lower(value.string().text()));
}

// The positions of the keys in their order, equal ones as they came.
std::vector<std::size_t> sorted_positions(Evaluator& evaluator, const std::vector<Value>& keys, bool reverse) {
    std::vector<std::size_t> positions(keys.size());
    std::iota(positions.begin(), positions.end(), std::size_t{0});
    std::stable_sort(positions.begin(), positions.end(), [&](std::size_t a, std::size_t b) {
        return reverse ? order(evaluator, keys[b], keys[a]) < 0 : order(evaluator, keys[a], keys[b]) < 0;
    });
    return positions;
}

// min and max: the first of the smallest or largest.
Value extreme(Evaluator& evaluator, const Value& input, const Arguments& arguments, bool largest) {
    const Bound bound(largest ? "max" : "min", {"case_sensitive", "attribute"}, arguments);
    const AttributePath path(evaluator, bound.get(1));
    const Items items(evaluator, input);
    if (items.size() == 0) return evaluator.undefined("the sequence is empty");
    std::size_t best = 0;
    Value best_key;
    for (std::size_t i = 0; i < items.size(); ++i) {
        Value key = sort_key(evaluator, path.follow(evaluator, items[i]), bound.truth_or(0, false));
        if (i == 0 || (largest ? order(evaluator, best_key, key) < 0 : order(evaluator, key, best_key) < 0)) {
            best = i;
            best_key = std::move(key);
        }
    }
    return items[best];
}

}  // namespace

Value attribute(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("attr", {"name"}, arguments);
    const std::string_view name = bound.string(0);
    check_defined(input);
    // Not a dict's items: only what x.name would find on other things.
    if (input.is(Kind::dict) && find_method(input, name) == nullptr)
        return evaluator.undefined(fmt::format("a dict has no attribute '{}'", name));
    return jinja::attribute(evaluator, input, name);
}

Value batch(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("batch", {"linecount", "fill_with"}, arguments);
    const std::int64_t size = bound.integer(0);
    const Items items(evaluator, input);
    std::vector<Value> lines;
    std::vector<Value> line;
    for (const Value& item : items) {
        if (static_cast<std::int64_t>(line.size()) == size) lines.push_back(evaluator.list(std::exchange(line, {})));
        line.push_back(item);
    }
    if (!line.empty()) {
        if (const Value* fill = bound.get(1); fill != nullptr && !fill->is(Kind::none) && size > 0) {
            evaluator.check_items(static_cast<std::uint64_t>(size));
            while (static_cast<std::int64_t>(line.size()) < size) line.push_back(*fill);
        }
        lines.push_back(evaluator.list(std::move(line)));
    }
    return evaluator.iterator(std::move(lines));
}

Value slice(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("slice", {"slices", "fill_with"}, arguments);
    const std::int64_t slices = bound.integer(0);
    const Items items(evaluator, input);
    if (slices == 0) fail("slice() into 0 lists");
    if (slices < 0) return evaluator.iterator({});
    evaluator.check_items(static_cast<std::uint64_t>(slices));
    const auto count = static_cast<std::size_t>(slices);
    const std::size_t each = items.size() / count;
    const std::size_t longer = items.size() % count;
    std::vector<Value> lists;
    std::size_t at = 0;
    for (std::size_t i = 0; i < count; ++i) {
        std::vector<Value> part;
        for (std::size_t left = each + (i < longer ? 1 : 0); left > 0; --left) part.push_back(items[at++]);
        if (const Value* fill = bound.get(1); fill != nullptr && !fill->is(Kind::none) && i >= longer) part.push_back(*fill);
        lists.push_back(evaluator.list(std::move(part)));
    }
    return evaluator.iterator(std::move(lists));
}

Value dict_sort(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("dictsort", {"case_sensitive", "by", "reverse"}, arguments);
    const std::string_view by = bound.string_or(1, "key");
    if (by != "key" && by != "value") fail("dictsort() sorts by 'key' or 'value', not by '{}'", by);
    check_defined(input);
    if (!input.is(Kind::dict)) fail("dictsort() needs a dict, not a {}", type_name(input));
    const auto& entries = input.dict().entries();
    evaluator.check_items(entries.size());
    std::vector<Value> keys;
    for (const auto& [key, value] : entries)
        keys.push_back(sort_key(evaluator, by == "key" ? key : value, bound.truth_or(0, false)));
    std::vector<Value> pairs;
    for (const std::size_t i : sorted_positions(evaluator, keys, bound.truth_or(2, false))) {
        pairs.push_back(evaluator.tuple({entries[i].first, entries[i].second}));
    }
    return evaluator.list(std::move(pairs));
}

Value first(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("first", {}, arguments);
    if (input.is(Kind::iterator)) {
        auto item = input.iterator().next();
        return item ? *std::move(item) : evaluator.undefined("there is no first item: the sequence is empty");
    }
    if (input.is(Kind::string) && input.string().length() > 0) return jinja::subscript(evaluator, input, Value(std::int64_t{0}));
    const Items items(evaluator, input);
    return items.size() > 0 ? items[0] : evaluator.undefined("there is no first item: the sequence is empty");
}

Value last(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("last", {}, arguments);
    if (input.is(Kind::iterator)) fail("a generator has no last item: make a list of it");
    if (input.is(Kind::string) && input.string().length() > 0) return jinja::subscript(evaluator, input, Value(std::int64_t{-1}));
    const Items items(evaluator, input);
    return items.size() > 0 ? items[items.size() - 1] : evaluator.undefined("there is no last item: the sequence is empty");
}

Value group_by(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("groupby", {"attribute", "default", "case_sensitive"}, arguments);
    const AttributePath path(evaluator, &bound.required(0));
    const Value* fallback = bound.get(1) != nullptr && bound.get(1)->is(Kind::none) ? nullptr : bound.get(1);
    const bool case_sensitive = bound.truth_or(2, false);
    const Items items(evaluator, input);
    std::vector<Value> keys;
    for (const Value& item : items) keys.push_back(sort_key(evaluator, path.follow(evaluator, item, fallback), case_sensitive));
    const std::vector<std::size_t> positions = sorted_positions(evaluator, keys, false);
    std::vector<Value> groups;
    for (std::size_t i = 0; i < positions.size();) {
        const std::size_t begin = i;
        std::vector<Value> members;
        for (; i < positions.size() && equal(evaluator, keys[positions[begin]], keys[positions[i]]); ++i)
            members.push_back(items[positions[i]]);
        if (i == begin) members.push_back(items[positions[i++]]);  // a key that is not equal to itself: NaN
        Value key = path.follow(evaluator, members.front(), fallback);
        groups.push_back(evaluator.group(std::move(key), evaluator.list(std::move(members))));
    }
    return evaluator.list(std::move(groups));
}

Value items(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("items", {}, arguments);
    if (input.is(Kind::undefined)) return evaluator.iterator({});
    if (!input.is(Kind::dict)) fail("items() needs a dict, not a {}", type_name(input));
    return evaluator.iterator(Items(evaluator, evaluator.view(input, View::Part::items)).to_vector());
}

Value join(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("join", {"d", "attribute"}, arguments);
    const std::string between = bound.get(0) != nullptr ? to_text(evaluator, *bound.get(0)) : std::string();
    const AttributePath path(evaluator, bound.get(1));
    Text text(evaluator);
    bool is_first = true;
    for (const Value& item : Items(evaluator, input)) {
        evaluator.step();
        if (!is_first) text += between;
        is_first = false;
        print(evaluator, text, path.follow(evaluator, item));
    }
    return evaluator.string(text.take());
}

Value list(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("list", {}, arguments);
    Items items(evaluator, input);
    evaluator.check_items(items.size());
    return evaluator.list(items.to_vector());
}

Value max(Evaluator& evaluator, const Value& input, Arguments& arguments) { return extreme(evaluator, input, arguments, true); }
Value min(Evaluator& evaluator, const Value& input, Arguments& arguments) { return extreme(evaluator, input, arguments, false); }

Value reverse(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("reverse", {}, arguments);
    if (input.is(Kind::string)) return jinja::slice(evaluator, input, Value(), Value(), Value(std::int64_t{-1}));
    const bool was_iterator = input.is(Kind::iterator) || input.is(Kind::undefined);
    std::vector<Value> items = Items(evaluator, input).to_vector();
    evaluator.check_items(items.size());
    std::reverse(items.begin(), items.end());
    return was_iterator ? evaluator.list(std::move(items)) : evaluator.iterator(std::move(items));
}

Value sort(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("sort", {"reverse", "case_sensitive", "attribute"}, arguments);
    const bool case_sensitive = bound.truth_or(1, false);
    std::vector<AttributePath> paths;
    if (const Value* written = bound.get(2); written != nullptr && written->is(Kind::string)) {
        for (const std::string_view part : split_text(evaluator, written->string().text(), ",", SIZE_MAX, false)) {
            const Value path = evaluator.string(std::string(part));
            paths.emplace_back(evaluator, &path);
        }
    } else {
        paths.emplace_back(evaluator, written);
    }
    const Items items(evaluator, input);
    evaluator.check_items(items.size());
    std::vector<Value> keys;
    for (const Value& item : items) {
        std::vector<Value> key;
        for (const AttributePath& path : paths) key.push_back(sort_key(evaluator, path.follow(evaluator, item), case_sensitive));
        keys.push_back(evaluator.list(std::move(key)));
    }
    std::vector<Value> sorted;
    for (const std::size_t i : sorted_positions(evaluator, keys, bound.truth_or(0, false))) sorted.push_back(items[i]);
    return evaluator.list(std::move(sorted));
}

Value sum(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("sum", {"attribute", "start"}, arguments);
    const AttributePath path(evaluator, bound.get(0));
    Value total = bound.value_or(1, Value(std::int64_t{0}));
    if (total.is(Kind::string)) fail("sum() adds no strings: use join");
    for (const Value& item : Items(evaluator, input)) {
        evaluator.step();
        total = arithmetic(evaluator, syntax::Operator::add, total, path.follow(evaluator, item));
    }
    return total;
}

Value unique(Evaluator& evaluator, const Value& input, Arguments& arguments) {
    const Bound bound("unique", {"case_sensitive", "attribute"}, arguments);
    const AttributePath path(evaluator, bound.get(1));
    const Items items(evaluator, input);
    // The first of each key: what a dict of them keeps the place of.
    std::vector<Entry> entries;
    for (const Value& item : items)
        entries.emplace_back(sort_key(evaluator, path.follow(evaluator, item), bound.truth_or(0, false)), Value());
    for (const Entry& entry : entries) evaluator.check_key(entry.first);
    std::vector<std::size_t> positions(entries.size());
    std::iota(positions.begin(), positions.end(), std::size_t{0});
    const auto compare = [&](std::size_t a, std::size_t b) { return compare_keys(entries[a].first, entries[b].first); };
    std::stable_sort(positions.begin(), positions.end(), [&](std::size_t a, std::size_t b) { return compare(a, b) < 0; });
    const auto end =
        std::unique(positions.begin(), positions.end(), [&](std::size_t a, std::size_t b) { return compare(a, b) == 0; });
    positions.erase(end, positions.end());
    std::sort(positions.begin(), positions.end());
    std::vector<Value> kept;
    for (const std::size_t i : positions) kept.push_back(items[i]);
    return evaluator.iterator(std::move(kept));
}

}  // namespace filter
}  // namespace headroom::text::jinja
