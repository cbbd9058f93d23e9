#include "core/text/chat_prompt.h"

#include <utility>

#include "core/base/system.h"

namespace headroom::text {
namespace {

constexpr int kDeepest = 200;  // as in TemplateLimits: the template could not read more

// Marks the control tokens in every string of value, the names in objects included. False where it is nested too deeply.
bool mark_strings(Json& value, const Tokenizer& tokenizer, int depth) {
    if (depth > kDeepest) return false;
    if (value.is_string()) {
        auto& text = value.get_ref<std::string&>();
        text = tokenizer.mark_control(text);
    } else if (value.is_array()) {
        for (Json& element : value)
            if (!mark_strings(element, tokenizer, depth + 1)) return false;
    } else if (value.is_object()) {
        Json marked = Json::object();
        for (auto& [name, element] : value.items()) {
            if (!mark_strings(element, tokenizer, depth + 1)) return false;
            marked[tokenizer.mark_control(name)] = std::move(element);
        }
        value = std::move(marked);
    }
    return true;
}

void parse_arguments(Json& call) {
    if (!call.is_object()) return;
    const auto it = call.find("arguments");
    if (it == call.end() || !it->is_string()) return;
    Json parsed = Json::parse(it->get_ref<const std::string&>(), nullptr, false);
    if (parsed.is_object()) *it = std::move(parsed);
}

std::string token_text(const Tokenizer& tokenizer, std::optional<TokenId> id) { return id ? tokenizer.piece(*id, true) : std::string(); }

}  // namespace

void parse_tool_arguments(Json& context) {
    if (!context.is_object()) return;
    const auto messages = context.find("messages");
    if (messages == context.end() || !messages->is_array()) return;
    for (Json& message : *messages) {
        if (!message.is_object()) continue;
        const auto calls = message.find("tool_calls");
        if (calls == message.end() || !calls->is_array()) continue;
        for (Json& call : *calls) {
            parse_arguments(call);
            if (call.is_object() && call.contains("function")) parse_arguments(call["function"]);
        }
    }
}

Result<std::vector<TokenId>> chat_prompt(const ChatTemplate& chat_template, const Tokenizer& tokenizer, Json context,
                                         std::chrono::local_seconds now) {
    if (!context.is_object()) return fail(ErrorKind::invalid_argument, "the context of a chat template must be a JSON object");
    parse_tool_arguments(context);
    for (const char* part : {"messages", "tools"})
        if (const auto it = context.find(part); it != context.end() && !mark_strings(*it, tokenizer, 0))
            return fail(ErrorKind::invalid_argument, "the {} are nested more than {} levels deep", part, kDeepest);
    if (!context.contains("bos_token")) context["bos_token"] = token_text(tokenizer, tokenizer.bos());
    if (!context.contains("eos_token")) context["eos_token"] = token_text(tokenizer, tokenizer.eos());
    HR_TRY(const std::string rendered, chat_template.render(context, now));
    return tokenizer.encode_chat(rendered);
}

std::chrono::local_seconds local_now() { return local_time(); }

}  // namespace headroom::text
