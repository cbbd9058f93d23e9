#include "core/text/jinja/runtime.h"

#include <algorithm>
#include <numeric>

#include "core/text/jinja/unicode.h"

namespace headroom::text::jinja {
namespace {

constexpr std::uint64_t kMemoryPerOutput = 8;    // a rendering may hold this many times its largest text
constexpr std::int64_t kLongestRange = 100'000;  // as Jinja's sandbox has it

}  // namespace

Runtime::Runtime(const TemplateLimits& limits, std::chrono::local_seconds now)
    : limits_(limits), now_(now), steps_left_(limits.steps), memory_(limits.output_bytes * kMemoryPerOutput) {}

Runtime::~Runtime() {
    for (const auto& name_space : name_spaces_) name_space->clear();
}

void Runtime::out_of_steps() const { fail("the template takes more than {} steps", limits_.steps); }
void Runtime::too_long() const { fail("the template makes a text of more than {} bytes", limits_.output_bytes); }

void Runtime::check_items(std::uint64_t items) {
    step(items);
    if (items > limits_.output_bytes / sizeof(Value)) fail("the template makes a list of {} items: too many", items);
}

Value Runtime::checked(Kind kind, std::shared_ptr<const Object> object) const {
    if (object->depth() > limits_.depth) fail("the template nests values more than {} deep", limits_.depth);
    return {kind, std::move(object)};
}

Value Runtime::string(std::string text, bool markup) {
    check_size(text.size());
    step_copy(text.size());
    if (text.size() <= 1 && !markup) return character(text);
    return {Kind::string, std::make_shared<const String>(&memory_, std::move(text), markup)};
}

Value Runtime::character(std::string_view text) {
    const auto make = [&] { return Value(Kind::string, std::make_shared<const String>(&memory_, std::string(text), false)); };
    if (text.empty()) {
        if (empty_.is(Kind::none)) empty_ = make();
        return empty_;
    }
    if (text.size() > 1) return make();
    const auto index = static_cast<unsigned char>(text[0]);
    if (characters_.empty()) characters_.resize(128);
    Value& known = characters_[index & 0x7F];
    if (known.is(Kind::none)) known = make();
    return known;
}

Value Runtime::list(std::vector<Value> items) {
    return checked(Kind::list, std::make_shared<const List>(&memory_, std::move(items)));
}
Value Runtime::tuple(std::vector<Value> items) {
    return checked(Kind::tuple, std::make_shared<const List>(&memory_, std::move(items)));
}

Value Runtime::group(Value key, Value items) {
    std::vector<Value> pair;
    pair.push_back(std::move(key));
    pair.push_back(std::move(items));
    return checked(Kind::tuple, std::make_shared<const List>(&memory_, std::move(pair), true));
}

void Runtime::check_key(const Value& key) {
    step(1);
    switch (key.kind()) {
        case Kind::string: step_bytes(key.string().text().size()); break;
        case Kind::tuple:
            for (const Value& item : key.list().items()) check_key(item);
            break;
        case Kind::list:
        case Kind::dict:
        case Kind::view: fail("a {} cannot be a key of a dict", type_name(key));
        default: break;
    }
}

Value Runtime::dict(std::vector<Entry> entries) {
    for (const Entry& entry : entries) check_key(entry.first);
    std::vector<std::uint32_t> sorted(entries.size());
    std::iota(sorted.begin(), sorted.end(), 0u);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return compare_keys(entries[a].first, entries[b].first) < 0; });
    bool repeated = false;
    for (std::size_t i = 1; i < sorted.size() && !repeated; ++i) {
        repeated = compare_keys(entries[sorted[i - 1]].first, entries[sorted[i]].first) == 0;
    }
    if (repeated) {
        std::vector<bool> drop(entries.size());
        for (std::size_t first = 0, i = 1; i < sorted.size(); ++i) {
            if (compare_keys(entries[sorted[first]].first, entries[sorted[i]].first) == 0) {
                entries[sorted[first]].second = std::move(entries[sorted[i]].second);
                drop[sorted[i]] = true;
            } else {
                first = i;
            }
        }
        std::vector<Entry> kept;
        for (std::size_t i = 0; i < entries.size(); ++i) {
            if (!drop[i]) kept.push_back(std::move(entries[i]));
        }
        return dict(std::move(kept));
    }
    return checked(Kind::dict, std::make_shared<const Dict>(&memory_, std::move(entries), std::move(sorted)));
}

Value Runtime::view(const Value& dict, View::Part part) {
    return checked(Kind::view, std::make_shared<const View>(&memory_, dict, part));
}

Value Runtime::range(std::int64_t start, std::int64_t stop, std::int64_t step_size) {
    if (step_size == 0) fail("range() needs a step other than 0");
    // Unsigned, because stop - start may not fit.
    const auto distance = step_size > 0 ? static_cast<std::uint64_t>(stop) - static_cast<std::uint64_t>(start)
                                        : static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(stop);
    const auto size = step_size > 0 ? static_cast<std::uint64_t>(step_size) : 0 - static_cast<std::uint64_t>(step_size);
    const bool empty = step_size > 0 ? start >= stop : start <= stop;
    const std::uint64_t length = empty ? 0 : (distance - 1) / size + 1;
    if (length > kLongestRange) fail("range() with more than {} numbers", kLongestRange);
    return {Kind::range,
            std::make_shared<const RangeObject>(&memory_, start, stop, step_size, static_cast<std::int64_t>(length))};
}

Value Runtime::iterator(std::vector<Value> items) {
    return checked(Kind::iterator, std::make_shared<const Iterator>(&memory_, std::move(items)));
}

Value Runtime::name_space() {
    auto made = std::make_shared<Namespace>(&memory_);
    name_spaces_.push_back(made);
    return {Kind::name_space, std::move(made)};
}

Value Runtime::undefined(std::string message) {
    step_copy(message.size());
    return {Kind::undefined, std::make_shared<const String>(&memory_, std::move(message), false)};
}

void Text::repeat(std::string_view part, std::uint64_t times) {
    if (part.empty() || times == 0) return;
    // A number of times that is too large for any text would overflow the product.
    const std::uint64_t most = std::min(times, runtime_.limits().output_bytes + 1);
    make_room(most * part.size());
    if (part.size() == 1) {
        text_.append(most, part[0]);
        return;
    }
    text_.reserve(text_.size() + most * part.size());
    for (std::uint64_t i = 0; i < most; ++i) text_ += part;
}

}  // namespace headroom::text::jinja
