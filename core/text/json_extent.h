#pragma once

// Where JSON values end and begin in text that is still coming.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace headroom::text {

// Finds the end of an object or a list by its brackets; what stands between them is not checked.
class JsonExtent {
public:
    enum class Found : std::uint8_t { open, end, none };  // goes on; ended; what begins here is neither, or too deep
    // The next byte. The first must be the bracket.
    [[nodiscard]] Found push(char c) noexcept;

private:
    int depth_ = 0;
    bool in_string_ = false, escaped_ = false;
};

// The value of a member of a valid JSON object, as it is written there; none where there is no such key. Of several the last.
[[nodiscard]] std::optional<std::string_view> written_member(std::string_view object, std::string_view key);

// Calls take(item) with each item of a valid JSON list, as it is written there.
template <class Take>
void for_each_item(std::string_view list, Take take);

// Behind the value that begins at `at` in valid JSON, and behind the white space there.
[[nodiscard]] std::size_t behind_value(std::string_view json, std::size_t at) noexcept;
[[nodiscard]] std::size_t behind_space(std::string_view json, std::size_t at) noexcept;

template <class Take>
void for_each_item(std::string_view list, Take take) {
    std::size_t at = behind_space(list, list.find('[') + 1);
    while (at < list.size() && list[at] != ']') {
        const std::size_t end = behind_value(list, at);
        take(list.substr(at, end - at));
        at = behind_space(list, end);
        if (at < list.size() && list[at] == ',') at = behind_space(list, at + 1);
    }
}

}  // namespace headroom::text
