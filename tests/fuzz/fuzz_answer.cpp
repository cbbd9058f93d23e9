// An answer in pieces: however it is cut, the parser's parts are the same, and without calls and reasoning nothing is lost.
// Input: a byte for the format, one for the cuts, the answer.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/utf8.h"
#include "core/text/answer_parser.h"
#include "core/text/chat_template.h"
#include "core/text/stream.h"
#include "tests/fuzz/expect.h"

using namespace headroom;
using namespace headroom::text;

namespace {

AnswerPart parse(const AnswerFormat& format, bool tools, std::string_view text, std::size_t step) {
    AnswerParser parser(format, {.tools = tools, .names = {}, .id_seed = 1});
    AnswerPart all;
    const auto take = [&](const AnswerPart& part) {
        FUZZ_EXPECT(utf8_valid_prefix(part.content) == part.content.size());
        all.reasoning += part.reasoning;
        all.content += part.content;
        all.calls.insert(all.calls.end(), part.calls.begin(), part.calls.end());
    };
    while (!text.empty()) {
        std::size_t length = std::min(text.size(), step);
        while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) ++length;
        take(parser.push(text.substr(0, length)));
        text.remove_prefix(length);
    }
    take(parser.finish());
    return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    AnswerFormat format{.tools = static_cast<ToolSyntax>(data[0] % 4)};
    if ((data[0] & 4) != 0) {
        format.reasoning_open = "<think>";
        format.reasoning_close = "</think>";
        format.starts_in_reasoning = (data[0] & 8) != 0;
    }
    const bool tools = (data[0] & 16) == 0;
    Utf8Stream utf8;
    std::string text = utf8.push(std::string_view(reinterpret_cast<const char*>(data) + 2, size - 2));
    text += utf8.finish();
    const AnswerPart whole = parse(format, tools, text, text.size());
    FUZZ_EXPECT(parse(format, tools, text, 1 + data[1] % 20) == whole);
    FUZZ_EXPECT(parse(format, tools, text, 1) == whole);
    for (const ToolCall& call : whole.calls) {
        FUZZ_EXPECT(tools && !call.name.empty());
        FUZZ_EXPECT(Json::parse(call.arguments, nullptr, false).is_object());
    }
    if (whole.calls.empty() && format.reasoning_open.empty()) FUZZ_EXPECT(whole.content == text);
    return 0;
}
