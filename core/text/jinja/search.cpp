#include "core/text/jinja/search.h"

#include <vector>

namespace headroom::text::jinja {
namespace {

// Knuth, Morris, Pratt: visits each place of `needle` until `found` says stop.
template <class Found>
void search(std::string_view text, std::string_view needle, std::size_t from, Found found) {
    std::vector<std::size_t> border(needle.size() + 1, 0);
    for (std::size_t i = 1, length = 0; i < needle.size(); ++i) {
        while (length > 0 && needle[i] != needle[length]) length = border[length];
        if (needle[i] == needle[length]) ++length;
        border[i + 1] = length;
    }
    std::size_t matched = 0;
    for (std::size_t at = from; at < text.size(); ++at) {
        while (matched > 0 && (matched == needle.size() || text[at] != needle[matched])) matched = border[matched];
        if (text[at] == needle[matched]) ++matched;
        if (matched == needle.size() && found(at + 1 - needle.size())) return;
    }
}

constexpr std::size_t kShortNeedle = 32;  // up to here the library's search is as good

}  // namespace

std::size_t find_text(std::string_view text, std::string_view needle, std::size_t from) {
    if (needle.size() <= kShortNeedle) return text.find(needle, from);
    std::size_t place = std::string_view::npos;
    search(text, needle, from, [&](std::size_t at) {
        place = at;
        return true;
    });
    return place;
}

std::size_t find_last_text(std::string_view text, std::string_view needle) {
    if (needle.size() <= kShortNeedle) return text.rfind(needle);
    std::size_t place = std::string_view::npos;
    search(text, needle, 0, [&](std::size_t at) {
        place = at;
        return false;
    });
    return place;
}

}  // namespace headroom::text::jinja
