#include "core/text/answer_grammar.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "core/base/quote.h"
#include "core/text/grammar/schema_compiler.h"
#include "core/text/token_trie.h"

namespace headroom::text {
namespace {

constexpr std::size_t kMostNameBytes = 64;

bool is_name(std::string_view name) {
    const auto allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
    };
    return !name.empty() && name.size() <= kMostNameBytes && std::ranges::all_of(name, allowed);
}

class AnswerCompiler {
public:
    AnswerCompiler(const AnswerFormat& format, const AnswerRules& rules) : format_(format), rules_(rules), builder_(limits_.states), json_(builder_) {}

    Result<std::shared_ptr<const Grammar>> compile() {
        const bool calls = rules_.choice != AnswerRules::Choice::none;
        const bool must_call = rules_.choice == AnswerRules::Choice::required || rules_.choice == AnswerRules::Choice::named;
        if (calls) HR_CHECK(read_tools());
        const StateId start = builder_.state(), body = builder_.state(), end = builder_.state(true);
        write_reasoning(start, body);
        if (must_call) {
            write_calls(blanks(body), end);
        } else if (rules_.text == AnswerRules::Text::free) {
            write_text_or_calls(body, end);
        } else {
            const StateId value = blanks(body);
            if (rules_.text == AnswerRules::Text::json_object) {
                builder_.call(value, json_.object(), end);
            } else {
                HR_TRY(const RuleId schema, add_json_schema(builder_, json_, rules_.schema, "response_format", limits_));
                builder_.call(value, schema, end);
            }
            if (calls) write_calls(value, end);
        }
        return builder_.build(builder_.rule(start));
    }

private:
    struct Tool {
        std::string name;
        RuleId arguments;
    };

    Result<> read_tools() {
        if (!rules_.tools.is_array() || rules_.tools.empty()) return fail(ErrorKind::invalid_argument, "tools: expected a list of tools");
        const bool named = rules_.choice == AnswerRules::Choice::named;
        std::vector<std::string> names;
        for (std::size_t i = 0; i < rules_.tools.size(); ++i) {
            const Json& tool = rules_.tools[i];
            const auto function = tool.is_object() ? tool.find("function") : tool.end();
            if (!tool.is_object() || function == tool.end() || !function->is_object()) {
                return fail(ErrorKind::invalid_argument, "tools[{}]: expected an object with \"type\": \"function\" and a \"function\"", i);
            }
            const auto written = function->find("name");
            if (written == function->end() || !written->is_string() || !is_name(written->get_ref<const std::string&>())) {
                return fail(ErrorKind::invalid_argument, "tools[{}].function.name: expected 1 to {} letters, digits, '_', '-' or '.'", i, kMostNameBytes);
            }
            const auto name = written->get<std::string>();
            if (std::ranges::find(names, name) != names.end()) {
                return fail(ErrorKind::invalid_argument, "tools[{}].function.name: there are two tools named {}", i, quote(name));
            }
            names.push_back(name);
            if (named && name != rules_.name) continue;
            Json parameters = {{"type", "object"}, {"additionalProperties", false}};
            if (const auto given = function->find("parameters"); given != function->end() && !given->is_null()) parameters = *given;
            const std::string path = fmt::format("tools[{}].function.parameters", i);
            if (!parameters.is_object()) return fail(ErrorKind::invalid_argument, "{}: expected a schema of an object", path);
            if (!parameters.contains("type")) parameters["type"] = "object";
            if (parameters["type"] != "object") return fail(ErrorKind::invalid_argument, "{}/type: a tool's arguments are an \"object\"", path);
            HR_TRY(const RuleId arguments, add_json_schema(builder_, json_, parameters, path, limits_));
            tools_.push_back({name, arguments});
        }
        if (named && tools_.empty()) return fail(ErrorKind::invalid_argument, "tool_choice: there is no tool named {}", quote(rules_.name));
        return {};
    }

    // A marker as running text, or as the control token of that text.
    void marker(StateId from, std::string_view text, StateId to) {
        builder_.literal(from, text, to);
        constexpr auto kMark = static_cast<char>(kControlMark);
        builder_.literal(from, kMark + std::string(text) + kMark, to);
    }

    // Up to four blanks or line ends.
    StateId blanks(StateId from) {
        const StateId blank = builder_.state(), end = builder_.state(true), behind = builder_.state();
        builder_.bytes(blank, ' ', ' ', end);
        builder_.bytes(blank, '\n', '\n', end);
        constexpr std::uint32_t kMost = 4;
        builder_.call(from, builder_.repeat(builder_.rule(blank), 0, kMost), behind);
        return behind;
    }

    // Any text up to the first place where the marker stands, which leads to `behind`. may_end: the answer may end anywhere before it.
    void text_until(StateId from, std::string_view text, StateId behind, bool may_end) {
        // matched[k]: the text so far ends with k bytes of the marker (Knuth, Morris and Pratt, 1977).
        std::vector<StateId> matched;
        for (std::size_t k = 0; k < text.size(); ++k) matched.push_back(builder_.state(may_end));
        const auto follow = [&](std::size_t k, char byte) {
            const std::string seen = std::string(text.substr(0, k)) + byte;
            for (std::size_t length = std::min(seen.size(), text.size()); length > 0; --length) {
                if (std::string_view(seen).ends_with(text.substr(0, length))) return length;
            }
            return std::size_t{0};
        };
        for (std::size_t k = 0; k < matched.size(); ++k) {
            int first = 0;
            for (int byte = 0; byte < 128; ++byte) {
                const std::size_t next = follow(k, static_cast<char>(byte));
                if (byte < 127 && follow(k, static_cast<char>(byte + 1)) == next) continue;
                builder_.bytes(matched[k], static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(byte),
                               next == text.size() ? behind : matched[next]);
                first = byte + 1;
            }
            builder_.beyond_ascii(matched[k], matched[0]);
            constexpr auto kMark = static_cast<char>(kControlMark);
            builder_.literal(matched[k], kMark + std::string(text) + kMark, behind);
        }
        builder_.jump(from, matched[0]);
    }

    void write_reasoning(StateId start, StateId body) {
        if (format_.reasoning_open.empty()) return builder_.jump(start, body);
        if (format_.starts_in_reasoning) return text_until(start, format_.reasoning_close, body, false);
        builder_.jump(start, body);
        const StateId inside = builder_.state();
        marker(blanks(start), format_.reasoning_open, inside);
        text_until(inside, format_.reasoning_close, body, false);
    }

    void write_text_or_calls(StateId body, StateId end) {
        if (format_.tools != ToolSyntax::llama3) {
            const StateId behind = builder_.state();
            text_until(body, call_marker(), behind, true);
            write_calls_behind_marker(behind, end);
            return;
        }
        // What begins with a brace is a call; other text is not looked at any further.
        builder_.accept(body);
        const StateId begin = blanks(body), text = builder_.state(true);
        builder_.jump(begin, end);
        write_calls(begin, end);
        builder_.bytes(begin, 0, '\n' - 1, text);
        builder_.bytes(begin, '\n' + 1, ' ' - 1, text);
        builder_.bytes(begin, ' ' + 1, '{' - 1, text);
        builder_.bytes(begin, '{' + 1, 0x7F, text);
        builder_.beyond_ascii(begin, text);
        builder_.bytes(text, 0, 0x7F, text);
        builder_.beyond_ascii(text, text);
    }

    [[nodiscard]] std::string_view call_marker() const { return format_.tools == ToolSyntax::hermes ? "<tool_call>" : "[TOOL_CALLS]"; }

    // At least one call, with what marks it.
    void write_calls(StateId from, StateId end) {
        if (format_.tools == ToolSyntax::llama3) {
            const StateId call = builder_.state();
            builder_.jump(from, call);
            marker(from, "<|python_tag|>", call);
            builder_.call(call, call_rule("parameters", false), end);
            return;
        }
        const StateId behind = builder_.state();
        marker(from, call_marker(), behind);
        write_calls_behind_marker(behind, end);
    }

    void write_calls_behind_marker(StateId from, StateId end) {
        const StateId behind = builder_.state();
        switch (format_.tools) {
            case ToolSyntax::hermes: {
                const StateId call = builder_.state();
                builder_.call(blanks(from), call_rule("arguments", false), call);
                marker(blanks(call), "</tool_call>", behind);
                break;
            }
            case ToolSyntax::mistral: {
                const StateId list = builder_.state(), close = builder_.state();
                builder_.bytes(blanks(from), '[', '[', list);
                const RuleId call = call_rule("arguments", true);
                builder_.call(list, call, close);
                if (rules_.parallel) builder_.call(json_.comma(close), call, close);
                builder_.bytes(close, ']', ']', end);
                return;
            }
            case ToolSyntax::mistral_args:
                for (const Tool& tool : tools_) {
                    const StateId arguments = builder_.state();
                    marker(builder_.literal(from, tool.name), "[ARGS]", arguments);
                    builder_.call(arguments, tool.arguments, behind);
                }
                break;
            case ToolSyntax::llama3: return;  // has no marker of its own
        }
        builder_.jump(behind, end);
        if (rules_.parallel) marker(blanks(behind), call_marker(), from);
    }

    // {"name": …, "arguments": …} of any of the tools.
    RuleId call_rule(std::string_view arguments_key, bool may_have_id) {
        const StateId start = builder_.state(), close = builder_.state(), brace = builder_.state(), end = builder_.state(true);
        const StateId open = builder_.literal(start, "{"), key = builder_.state();
        builder_.call(open, json_.space(), key);
        const StateId name = json_.colon(builder_.literal(key, "\"name\""));
        for (const Tool& tool : tools_) {
            const StateId second = json_.comma(builder_.literal(name, "\"" + tool.name + "\""));
            const StateId value = json_.colon(builder_.literal(second, fmt::format("\"{}\"", arguments_key)));
            builder_.call(value, tool.arguments, close);
        }
        if (may_have_id) {
            StateId at = builder_.literal(json_.colon(builder_.literal(json_.comma(close), "\"id\"")), "\"");
            constexpr int kIdLetters = 9;
            for (int i = 0; i < kIdLetters; ++i) {
                const StateId next = builder_.state();
                builder_.bytes(at, '0', '9', next);
                builder_.bytes(at, 'A', 'Z', next);
                builder_.bytes(at, 'a', 'z', next);
                at = next;
            }
            builder_.bytes(at, '"', '"', brace);
        }
        builder_.call(close, json_.space(), brace);
        builder_.bytes(brace, '}', '}', end);
        return builder_.rule(start);
    }

    const AnswerFormat& format_;
    const AnswerRules& rules_;
    SchemaLimits limits_;
    GrammarBuilder builder_;
    JsonRules json_;
    std::vector<Tool> tools_;
};

}  // namespace

Result<std::shared_ptr<const Grammar>> compile_answer_grammar(const AnswerFormat& format, const AnswerRules& rules) try {
    if (rules.text == AnswerRules::Text::free && rules.choice == AnswerRules::Choice::none) return nullptr;
    return AnswerCompiler(format, rules).compile();
} catch (const std::bad_alloc&) {
    return fail(ErrorKind::out_of_memory, "There is not enough memory for the schemas of this request");
} catch (const Json::exception&) {
    return fail(ErrorKind::invalid_argument, "A schema of this request holds text that is not UTF-8");
}

}  // namespace headroom::text
