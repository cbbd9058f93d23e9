// Text in pieces: however it is cut, what comes out of Utf8Stream and StopMatcher is the same as for the whole.
// Input: a byte that decides the cuts, up to three stop sequences that end with a zero byte, the text.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/quote.h"
#include "core/text/stream.h"
#include "tests/fuzz/expect.h"

using namespace headroom::text;

namespace {

// The text in pieces of `step`, step + 1, … bytes (0: in one).
template <class Push>
void in_pieces(std::string_view text, std::size_t step, Push push) {
    if (step == 0) return push(text);
    for (std::size_t at = 0; at < text.size(); at += step++) push(text.substr(at, step));
}

std::string utf8_of(std::string_view text, std::size_t step) {
    Utf8Stream stream;
    std::string out;
    in_pieces(text, step, [&](std::string_view piece) { out += stream.push(piece); });
    return out + stream.finish();
}

struct Stopped {
    std::string text;
    bool stopped = false;
    bool operator==(const Stopped&) const = default;
};

Stopped stop_in(const std::vector<std::string>& stops, std::string_view text, std::size_t step) {
    StopMatcher matcher(stops);
    Stopped result;
    in_pieces(text, step, [&](std::string_view piece) {
        if (result.stopped) return;
        const auto out = matcher.push(piece);
        result.text += out.text;
        result.stopped = out.stopped;
    });
    if (!result.stopped) result.text += matcher.finish();
    return result;
}

// The same by looking at every end of the text in turn.
Stopped stop_plainly(const std::vector<std::string>& stops, std::string_view text) {
    for (std::size_t end = 1; end <= text.size(); ++end) {
        std::size_t longest = 0;
        for (const std::string& stop : stops) {
            if (text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
        }
        if (longest > 0) return {std::string(text.substr(0, end - longest)), true};
    }
    return {std::string(text), false};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view rest(reinterpret_cast<const char*>(data), size);
    if (rest.empty()) return 0;
    const std::size_t step = 1 + static_cast<unsigned char>(rest[0]) % 7;
    rest.remove_prefix(1);
    std::vector<std::string> stops;
    while (stops.size() < 3) {
        const auto end = rest.find('\0');
        if (end == std::string_view::npos) break;
        stops.emplace_back(rest.substr(0, end));
        rest.remove_prefix(end + 1);
    }

    const std::string whole = utf8_of(rest, 0);
    FUZZ_EXPECT(utf8_of(rest, step) == whole);
    FUZZ_EXPECT(utf8_of(whole, step) == whole);  // what came out is valid

    const Stopped stopped = stop_plainly(stops, rest);
    FUZZ_EXPECT(stop_in(stops, rest, 0) == stopped);
    FUZZ_EXPECT(stop_in(stops, rest, step) == stopped);
    return 0;
}
