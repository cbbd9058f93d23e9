#include "core/gguf/split.h"

#include <charconv>
#include <string_view>

namespace headroom::gguf {
namespace {

constexpr std::string_view ending = ".gguf";
constexpr std::string_view middle = "-of-";
constexpr std::size_t digits = 5;

std::optional<std::uint32_t> parse_number(std::string_view text) {
    std::uint32_t number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    return code == std::errc() && end == text.data() + text.size() && number > 0 ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<SplitName> parse_split_name(const std::string& file_name) {
    const std::string_view name = file_name;
    constexpr std::size_t tail = 1 + digits + middle.size() + digits + ending.size();  // "-00001-of-00003.gguf"
    if (name.size() <= tail) return std::nullopt;
    const std::string_view end = name.substr(name.size() - tail);
    if (end[0] != '-' || end.substr(1 + digits, middle.size()) != middle || !end.ends_with(ending)) return std::nullopt;
    const auto number = parse_number(end.substr(1, digits));
    const auto count = parse_number(end.substr(1 + digits + middle.size(), digits));
    if (!number || !count || *number > *count) return std::nullopt;
    return SplitName{std::string(name.substr(0, name.size() - tail)), *number, *count};
}

std::string split_name(const std::string& prefix, std::uint32_t number, std::uint32_t count) {
    return fmt::format("{}-{:05}{}{:05}{}", prefix, number, middle, count, ending);
}

Result<SplitInfo> read_split_info(const Metadata& metadata, const std::string& name) {
    HR_TRY(const auto count, metadata.get_unsigned("split.count"));
    HR_TRY(const auto number, metadata.get_unsigned("split.no"));
    HR_TRY(const auto tensors, metadata.get_unsigned("split.tensors.count"));
    if (!count) return SplitInfo{};
    if (*count == 0 || *count > UINT16_MAX) {
        return fail(ErrorKind::invalid_file, "{}: in metadata \"split.count\": it is {}, 1 to {} are expected", name, *count, UINT16_MAX);
    }
    if (number.value_or(0) >= *count) {
        return fail(ErrorKind::invalid_file, "{}: in metadata \"split.no\": it is {}, but the model has {} parts, counted from 0", name,
                    *number, *count);
    }
    if (!number && *count > 1) {
        return fail(ErrorKind::invalid_file, "{}: metadata \"split.no\" is missing in a part of a split model", name);
    }
    return SplitInfo{static_cast<std::uint32_t>(number.value_or(0)), static_cast<std::uint32_t>(*count), tensors};
}

}  // namespace headroom::gguf
