// Any bytes as a chat template: it renders, or ends with an error, within its limits.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/text/chat_template.h"
#include "core/base/utf8.h"
#include "tests/fuzz/expect.h"

using namespace headroom;
using namespace headroom::text;

namespace {

// What templates are given: a conversation with a tool call, and a value of each kind.
const Json& context() {
    static const Json object = Json::parse(R"({
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Grüße, <b>you</b>\n"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": {"x": [1, 2.5, true, null]}}}]},
            {"role": "tool", "name": "f", "content": "{\"y\": 1}"},
            {"role": "user", "content": [{"type": "text", "text": "and?"}]}],
        "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object",
                   "properties": {"x": {"type": "array", "items": {"type": "number"}}}, "required": ["x"]}}}],
        "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true,
        "n": -3, "big": 9223372036854775807, "f": 1e300, "s": "a,b, c", "e": ""})");
    return object;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const TemplateLimits limits{.steps = 50'000, .depth = TemplateLimits().depth, .output_bytes = 1u << 18};
    const auto check = [](const Error& error) {
        FUZZ_EXPECT(error.kind == ErrorKind::template_failed);
        FUZZ_EXPECT(utf8_valid_prefix(error.message) == error.message.size());
    };
    const auto parsed = ChatTemplate::parse(std::string(reinterpret_cast<const char*>(data), size), limits);
    if (!parsed) {
        check(parsed.error());
        return 0;
    }
    const std::chrono::local_seconds now(std::chrono::seconds(1'700'000'000));
    const auto text = parsed->render(context(), now);
    if (!text) {
        check(text.error());
        return 0;
    }
    FUZZ_EXPECT(text->size() <= limits.output_bytes);
    FUZZ_EXPECT(utf8_valid_prefix(*text) == text->size());
    const auto again = parsed->render(context(), now);
    FUZZ_EXPECT(again && *again == *text);  // rendering leaves no trace
    return 0;
}
