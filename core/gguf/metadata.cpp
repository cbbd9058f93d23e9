#include "core/gguf/metadata.h"

#include "core/base/quote.h"

namespace headroom::gguf {
namespace {

// "a float32", "an array of string", "an int32 of -3": what a value is, for a message.
std::string describe(const Value& value) {
    const auto article = [](std::string_view name) { return name.starts_with('a') || name.starts_with('i') ? "an" : "a"; };
    const std::string_view type = to_string(value.type);
    if (const auto* array = std::get_if<Array>(&value.data)) return fmt::format("an array of {}", to_string(array->element));
    if (const auto* number = std::get_if<std::int64_t>(&value.data)) return fmt::format("{} {} of {}", article(type), type, *number);
    return fmt::format("{} {}", article(type), type);
}

}  // namespace

bool Metadata::add(std::string_view key, Value value) {
    if (!index_.emplace(key, entries_.size()).second) return false;
    entries_.emplace_back(key, std::move(value));
    return true;
}

const Value* Metadata::find(std::string_view key) const noexcept {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &entries_[found->second].second;
}

std::unexpected<Error> Metadata::wrong(std::string_view key, const Value& value, std::string_view expected) const {
    return fail(ErrorKind::invalid_file, "{}: metadata {} is {}, but {} is expected", file_, quote(key), describe(value), expected);
}

Result<std::optional<std::uint64_t>> Metadata::get_unsigned(std::string_view key) const {
    const Value* value = find(key);
    if (!value) return std::nullopt;
    if (const auto* number = std::get_if<std::uint64_t>(&value->data)) return *number;
    if (const auto* number = std::get_if<std::int64_t>(&value->data); number && *number >= 0) {
        return static_cast<std::uint64_t>(*number);
    }
    return wrong(key, *value, "an integer of 0 or more");
}

Result<std::optional<double>> Metadata::get_float(std::string_view key) const {
    const Value* value = find(key);
    if (!value) return std::nullopt;
    if (const auto* number = std::get_if<double>(&value->data)) return *number;
    if (const auto* number = std::get_if<std::uint64_t>(&value->data)) return static_cast<double>(*number);
    if (const auto* number = std::get_if<std::int64_t>(&value->data)) return static_cast<double>(*number);
    return wrong(key, *value, "a number");
}

Result<std::optional<bool>> Metadata::get_bool(std::string_view key) const {
    const Value* value = find(key);
    if (!value) return std::nullopt;
    if (const auto* flag = std::get_if<bool>(&value->data)) return *flag;
    return wrong(key, *value, "a bool");
}

Result<std::optional<std::string_view>> Metadata::get_string(std::string_view key) const {
    const Value* value = find(key);
    if (!value) return std::nullopt;
    if (const auto* text = std::get_if<std::string_view>(&value->data)) return *text;
    return wrong(key, *value, "a string");
}

Result<const Array*> Metadata::get_array(std::string_view key, ValueType element) const {
    const Value* value = find(key);
    if (!value) return nullptr;
    if (const auto* array = std::get_if<Array>(&value->data); array && array->element == element) return array;
    return wrong(key, *value, fmt::format("an array of {}", to_string(element)));
}

}  // namespace headroom::gguf
