#include "core/server/chat_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <random>
#include <span>

#include "core/base/quote.h"

namespace headroom::server {
namespace {

constexpr std::size_t kMostStops = 16;
constexpr std::size_t kLongestStop = 1000;
constexpr std::size_t kMostBiases = 1024;
constexpr std::size_t kEndOfPrompt = 64;  // tokens: enough to see whether the prompt ends inside of reasoning

std::uint64_t random_seed() {
    std::random_device random;
    return (std::uint64_t{random()} << 32) | random();
}

// A string, or the texts of parts. Null: nothing.
ApiResult<std::optional<std::string>> read_content(const Json* content, const std::string& at) {
    if (content == nullptr) return std::nullopt;
    if (content->is_string()) return content->get<std::string>();
    if (!content->is_array()) return refuse(at, "{} must be a string, an array of parts or null", at);
    std::string text;
    for (std::size_t i = 0; i < content->size(); ++i) {
        const Json& part = (*content)[i];
        const std::string here = fmt::format("{}[{}]", at, i);
        if (!part.is_object()) return refuse(here, "{} must be an object with \"type\" and \"text\"", here);
        Fields fields(part, here);
        const auto type = fields.string("type");
        if (fields.error()) return std::unexpected(*fields.error());
        if (!type) return refuse(here + ".type", "{}.type is missing", here);
        if (*type != "text" && *type != "refusal") {
            return refuse(here + ".type", "{}.type is {}: only \"text\" is possible, the model reads nothing else", here, quote(*type));
        }
        const auto words = fields.string(*type);
        if (fields.error()) return std::unexpected(*fields.error());
        if (!words) return refuse(here + "." + *type, "{}.{} is missing", here, *type);
        if (!text.empty()) text += "\n";
        text += *words;
    }
    return text;
}

ApiResult<Json> read_calls(const Json& calls, const std::string& at) {
    Json out = Json::array();
    for (std::size_t i = 0; i < calls.size(); ++i) {
        const std::string here = fmt::format("{}[{}]", at, i);
        if (!calls[i].is_object()) return refuse(here, "{} must be an object", here);
        Fields fields(calls[i], here);
        const auto type = fields.string("type");
        const auto id = fields.string("id");
        const Json* function = fields.object("function");
        if (fields.error()) return std::unexpected(*fields.error());
        if (type && *type != "function") return refuse(here + ".type", "{}.type is {}, only \"function\" is known", here, quote(*type));
        if (function == nullptr) return refuse(here + ".function", "{}.function is missing", here);
        Fields inner(*function, here + ".function");
        const auto name = inner.string("name");
        const Json* arguments = inner.any("arguments");
        if (inner.error()) return std::unexpected(*inner.error());
        if (!name || name->empty()) return refuse(here + ".function.name", "{}.function.name is missing", here);
        if (arguments != nullptr && !arguments->is_string() && !arguments->is_object()) {
            return refuse(here + ".function.arguments", "{}.function.arguments must be a string with JSON", here);
        }
        Json call{{"type", "function"}, {"function", {{"name", *name}, {"arguments", arguments != nullptr ? *arguments : Json("{}")}}}};
        if (id) call["id"] = *id;
        out.push_back(std::move(call));
    }
    return out;
}

}  // namespace

ApiResult<void> read_messages(const Json& messages, ChatRequest& out) {
    if (messages.empty()) return refuse("messages", "messages is empty: there is nothing to answer");
    if (messages.size() > kMostMessages) return refuse("messages", "There are {} messages, possible are {}", messages.size(), kMostMessages);
    constexpr std::array<std::string_view, 6> roles{"system", "developer", "user", "assistant", "tool", "function"};
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const std::string at = fmt::format("messages[{}]", i);
        if (!messages[i].is_object()) return refuse(at, "{} must be an object with \"role\" and \"content\"", at);
        Fields fields(messages[i], at);
        std::string role = fields.string("role").value_or("");
        const auto name = fields.string("name");
        const auto call_id = fields.string("tool_call_id");
        const Json* calls = fields.array("tool_calls");
        if (fields.error()) return std::unexpected(*fields.error());
        if (role.empty()) return refuse(at + ".role", "{}.role is missing", at);
        if (std::ranges::find(roles, role) == roles.end()) {
            return refuse(at + ".role", "{}.role is {}, known are system, developer, user, assistant and tool", at, quote(role));
        }
        auto content = read_content(fields.any("content"), at + ".content");
        if (!content) return std::unexpected(content.error());
        if (!*content && role != "assistant") return refuse(at + ".content", "{}.content is missing", at);
        if (role == "developer") role = "system";
        if (role == "function") role = "tool";
        const bool last = i + 1 == messages.size();
        const bool has_calls = calls != nullptr && !calls->empty();
        if (last && role == "assistant" && !has_calls) {
            out.prefill = content->value_or("");
            if (messages.size() == 1) return refuse("messages", "The only message is the assistant's: there is nothing to answer");
            continue;
        }
        Json message{{"role", role}, {"content", content->value_or("")}};
        if (name) message["name"] = *name;
        if (call_id) message["tool_call_id"] = *call_id;
        if (has_calls) {
            if (role != "assistant") return refuse(at + ".tool_calls", "{}.tool_calls belongs to an assistant's message", at);
            auto read = read_calls(*calls, at + ".tool_calls");
            if (!read) return std::unexpected(read.error());
            message["tool_calls"] = std::move(*read);
        }
        out.messages.push_back(std::move(message));
    }
    return {};
}

ApiResult<Json> read_tools(const Json& tools) {
    if (tools.size() > kMostTools) return refuse("tools", "There are {} tools, possible are {}", tools.size(), kMostTools);
    for (std::size_t i = 0; i < tools.size(); ++i) {
        const std::string at = fmt::format("tools[{}]", i);
        if (!tools[i].is_object()) return refuse(at, "{} must be an object", at);
        Fields fields(tools[i], at);
        const auto type = fields.string("type");
        const Json* function = fields.object("function");
        if (fields.error()) return std::unexpected(*fields.error());
        if (type.value_or("function") != "function") return refuse(at + ".type", "{}.type is {}, only \"function\" is known", at, quote(*type));
        if (function == nullptr) return refuse(at + ".function", "{}.function is missing", at);
        Fields inner(*function, at + ".function");
        const auto name = inner.string("name");
        (void)inner.string("description");
        (void)inner.object("parameters");
        if (inner.error()) return std::unexpected(*inner.error());
        if (!name || name->empty()) return refuse(at + ".function.name", "{}.function.name is missing", at);
    }
    return tools;
}

ApiResult<ChatPlan> plan_chat(engine::Model& model, GrammarCache& grammars, const ChatRequest& request) {
    using Choice = text::AnswerRules::Choice;
    const text::AnswerRules& rules = request.rules;
    Json context = request.variables;
    context["messages"] = request.messages;
    if (!rules.tools.empty() && rules.choice != Choice::none) context["tools"] = rules.tools;
    auto prompt = to_api(model.chat_prompt(context));
    if (!prompt) return std::unexpected(prompt.error());
    ChatPlan plan{.prompt = std::move(*prompt)};

    const auto chat_template = model.file().get_string("tokenizer.chat_template");
    const auto end = std::span(plan.prompt).last(std::min(plan.prompt.size(), kEndOfPrompt));
    const text::AnswerFormat format =
        text::detect_answer_format(chat_template && *chat_template ? **chat_template : std::string_view(), model.tokenizer().decode(end, true));
    plan.shown = text::shown_tokens(format, model.tokenizer());
    text::AnswerParserOptions options{.tools = rules.choice != Choice::none, .names = {}, .id_seed = random_seed()};
    for (const Json& tool : rules.tools) options.names.push_back(tool["function"]["name"].get<std::string>());
    plan.parser.emplace(format, std::move(options));

    if (request.prefill) {
        for (const text::TokenId id : model.tokenizer().encode(*request.prefill, {.parse_special = false, .add_bos = false})) plan.prompt.push_back(id);
        plan.parser->second.begun = *request.prefill;
    }
    if (rules.text != text::AnswerRules::Text::free || rules.choice != Choice::none) {
        const std::string key = to_text({{"text", static_cast<int>(rules.text)}, {"schema", rules.schema}, {"choice", static_cast<int>(rules.choice)},
                                         {"tools", rules.tools}, {"name", rules.name}, {"parallel", rules.parallel}, {"syntax", static_cast<int>(format.tools)},
                                         {"open", format.reasoning_open}, {"close", format.reasoning_close}, {"inside", format.starts_in_reasoning}});
        const auto make = [&] { return text::compile_answer_grammar(format, rules); };
        auto grammar = grammars.get(model.token_trie(), key, make);
        if (!grammar) {
            ApiError error = to_api_error(grammar.error());
            error.code = "invalid_schema";
            error.param = rules.text == text::AnswerRules::Text::free ? "tools" : "response_format";
            return std::unexpected(std::move(error));
        }
        plan.grammar = std::move(*grammar);
        if (request.prefill) {
            plan.begun = *request.prefill;
            if (!text::Constraint(plan.grammar).accept_text(plan.begun)) {
                return refuse("messages", "The last message is the assistant's, and no answer that {} allows begins with it",
                              rules.text == text::AnswerRules::Text::free ? "tool_choice" : "response_format");
            }
        }
    }
    return plan;
}

void read_common_sampling(Fields& fields, const SamplingLimits& most, engine::SamplingOptions& sampling) {
    const auto real = [&](std::string_view name, float& target, double lowest, double highest) {
        if (const auto value = fields.number(name, lowest, highest)) target = static_cast<float>(*value);
    };
    real("temperature", sampling.temperature, 0, most.temperature);
    real("top_p", sampling.top_p, 0, 1);
    if (sampling.top_p == 0) {  // the likeliest alone
        sampling.top_p = 1;
        sampling.top_k = 1;
    }
    real("min_p", sampling.min_p, 0, 1);
    real("repeat_penalty", sampling.repeat_penalty, 0.01, 100);
    real("presence_penalty", sampling.presence_penalty, -most.penalty, most.penalty);
    real("frequency_penalty", sampling.frequency_penalty, -most.penalty, most.penalty);
    if (const auto k = fields.integer("top_k", 0, INT32_MAX)) sampling.top_k = static_cast<int>(*k);
    if (const auto seed = fields.integer("seed", INT64_MIN, INT64_MAX)) sampling.seed = static_cast<std::uint64_t>(*seed);
}

engine::SamplingOptions read_sampling(Fields& fields) {
    engine::SamplingOptions sampling;
    read_common_sampling(fields, {.temperature = 2, .penalty = 2}, sampling);
    if (const Json* biases = fields.object("logit_bias")) {
        if (biases->size() > kMostBiases) fields.fail("logit_bias", fmt::format("logit_bias has {} entries, possible are {}", biases->size(), kMostBiases));
        for (const auto& [key, value] : biases->items()) {
            int id = -1;
            const auto [end, code] = std::from_chars(key.data(), key.data() + key.size(), id);
            if (code != std::errc() || end != key.data() + key.size() || id < 0) {
                fields.fail("logit_bias", fmt::format("logit_bias has the key {}, expected are token ids", quote(key)));
            } else if (!value.is_number() || std::abs(value.get<double>()) > 100) {
                fields.fail("logit_bias", fmt::format("logit_bias[{}] must be a number from -100 to 100", quote(key)));
            } else {
                sampling.logit_bias[id] = static_cast<float>(value.get<double>());
            }
        }
    }
    return sampling;
}

std::vector<std::string> read_stops(Fields& fields, std::string_view name) {
    const Json* value = fields.any(name);
    if (value == nullptr) return {};
    std::vector<std::string> stops;
    const auto add = [&](const Json& stop) {
        if (stop.is_string() && stop.get_ref<const std::string&>().size() <= kLongestStop) {
            stops.push_back(stop.get<std::string>());
        } else {
            fields.fail(name, fmt::format("{} must be a string, or an array of strings, of at most {} bytes", fields.param(name), kLongestStop));
        }
    };
    if (value->is_array()) {
        if (value->size() > kMostStops) fields.fail(name, fmt::format("{} has {} texts, possible are {}", fields.param(name), value->size(), kMostStops));
        for (const Json& stop : *value) add(stop);
    } else {
        add(*value);
    }
    return stops;
}

}  // namespace headroom::server
