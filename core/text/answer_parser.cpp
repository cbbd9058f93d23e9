#include "core/text/answer_parser.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/random.h"
#include "core/text/chat_template.h"
#include "core/text/json_extent.h"

namespace headroom::text {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

// How many bytes at the end of the text may be the beginning of the marker.
std::size_t partial(std::string_view text, std::string_view marker) {
    for (std::size_t length = std::min(text.size(), marker.size() - 1); length > 0; --length) {
        if (text.ends_with(marker.substr(0, length))) return length;
    }
    return 0;
}

// More white space than this is not held back to see what follows it.
constexpr std::size_t kMostSpace = 1000;

std::size_t space_at_end(std::string_view text) {
    if (text.size() > kMostSpace) text.remove_prefix(text.size() - kMostSpace);
    const auto last = text.find_last_not_of(kSpace);
    return last == std::string_view::npos ? text.size() : text.size() - last - 1;
}

}  // namespace

struct AnswerParser::State {
    enum class Mode : std::uint8_t {
        begin,            // reasoning may open
        reasoning,
        after_reasoning,  // white space is left out
        first,            // of the content: Llama's calls stand only here
        content,
        call,             // behind the marker, or at the brace
        close,            // behind a call: Hermes' closing tag
        after_call,       // white space is left out, another call may follow
    };

    State(AnswerFormat of, AnswerParserOptions with) : format(std::move(of)), options(std::move(with)) {
        if (format.starts_in_reasoning && !format.reasoning_open.empty()) mode = Mode::reasoning;
        held = options.begun;
        advance(false);
        out = {};
        any_calls = false;
        begun = marked + held;
    }

    // What is new, without what was held back of the text before.
    AnswerPart take() {
        AnswerPart part = std::exchange(out, {});
        for (std::string* text : {&part.reasoning, &part.content}) {
            if (text->empty()) continue;
            if (text->starts_with(begun)) text->erase(0, begun.size());
            begun.clear();
        }
        if (!part.calls.empty()) begun.clear();
        return part;
    }

    // Works on `held` until nothing more can be said of it.
    void advance(bool ended) {
        while (step(ended)) {}
        if (ended) held.clear();
    }

    bool step(bool ended) {
        switch (mode) {
            case Mode::begin: return begin(ended);
            case Mode::reasoning: return reasoning(ended);
            case Mode::after_reasoning: return skip_space(ended, Mode::first, {});
            case Mode::first: return first(ended);
            case Mode::content: return content(ended);
            case Mode::call: return call(ended);
            case Mode::close: return close(ended);
            case Mode::after_call: return after_call(ended);
        }
        return false;
    }

    enum class Match : std::uint8_t { yes, no, maybe };
    // Whether the text behind its white space begins with the marker; `end` is behind it then.
    Match begins_with(std::string_view marker, bool ended, std::size_t& end) const {
        const std::size_t at = std::min(held.find_first_not_of(kSpace), held.size());
        const std::string_view text = std::string_view(held).substr(at);
        end = at + marker.size();
        if (at > kMostSpace) return Match::no;
        if (text.starts_with(marker)) return Match::yes;
        return !ended && marker.starts_with(text) ? Match::maybe : Match::no;
    }

    bool begin(bool ended) {
        std::size_t end = 0;
        const Match match = format.reasoning_open.empty() ? Match::no : begins_with(format.reasoning_open, ended, end);
        if (match == Match::maybe) return false;
        if (match == Match::yes) held.erase(0, end);
        mode = match == Match::yes ? Mode::reasoning : Mode::first;
        return true;
    }

    bool reasoning(bool ended) {
        if (!reasoned) {
            held.erase(0, held.find_first_not_of(kSpace));
            // What opens it is written again by some models though the prompt ends with it.
            std::size_t end = 0;
            const Match match = begins_with(format.reasoning_open, ended, end);
            if (match == Match::maybe) return false;
            reasoned = match == Match::no;
            if (match == Match::yes) held.erase(0, end);
            return true;
        }
        const auto found = held.find(format.reasoning_close);
        std::string_view text = std::string_view(held).substr(0, found);
        std::size_t used = 0;
        if (found == std::string::npos && !ended) text.remove_suffix(partial(text, format.reasoning_close));
        text.remove_suffix(space_at_end(text));
        out.reasoning += text;
        used = text.size();
        if (found != std::string::npos) used = found + format.reasoning_close.size();
        held.erase(0, used);
        if (found == std::string::npos) return false;
        mode = Mode::after_reasoning;
        return true;
    }

    // Goes on in `next`, without the white space and the characters of `also`.
    bool skip_space(bool ended, Mode next, std::string_view also) {
        const auto at = held.find_first_not_of(std::string(kSpace) + std::string(also));
        held.erase(0, at);
        if (held.empty() && !ended) return false;
        mode = next;
        return true;
    }

    bool first(bool ended) {
        mode = Mode::content;
        if (!options.tools || format.tools != ToolSyntax::llama3) return true;
        std::size_t end = 0;
        const Match tag = begins_with("<|python_tag|>", ended, end);
        if (tag == Match::maybe) {
            mode = Mode::first;
            return false;
        }
        const auto brace = held.find_first_not_of(kSpace);
        if (tag == Match::yes) {
            begin_call(end);
        } else if (brace <= kMostSpace && held[brace] == '{') {
            begin_call(brace);
        }
        return true;
    }

    [[nodiscard]] std::string_view call_marker() const {
        if (!options.tools || format.tools == ToolSyntax::llama3) return {};
        return format.tools == ToolSyntax::hermes ? "<tool_call>" : "[TOOL_CALLS]";
    }

    // The first `length` bytes are what marks a call: they come out as content if it is none.
    void begin_call(std::size_t length) {
        marked = held.substr(0, length);
        held.erase(0, length);
        scanned = 0;
        extent.reset();
        mode = Mode::call;
    }

    bool content(bool ended) {
        const std::string_view marker = call_marker();
        if (marker.empty()) {
            out.content += held;
            held.clear();
            return false;
        }
        const auto found = held.find(marker);
        std::string_view text = std::string_view(held).substr(0, found);
        if (found == std::string::npos && !ended) text.remove_suffix(partial(text, marker));
        if (found != std::string::npos || !ended) text.remove_suffix(space_at_end(text));
        out.content += text;
        held.erase(0, text.size());
        if (found == std::string::npos) return false;
        begin_call(found - text.size() + marker.size());
        return true;
    }

    // No call: what was taken for one, up to here, is content.
    bool refuse(std::size_t length) {
        out.content += marked;
        out.content += std::string_view(held).substr(0, length);
        held.erase(0, length);
        marked.clear();
        mode = Mode::content;
        return true;
    }

    bool call(bool ended) {
        // Where it begins: white space, and with [ARGS] a name before the arguments.
        if (!extent) {
            const auto at = held.find_first_not_of(kSpace);
            if (std::min(at, held.size()) > kMostSpace) return refuse(0);
            if (at == std::string::npos) return ended && refuse(held.size());
            name.clear();
            begins_at = at;
            const bool is_list = held[at] == '[' && format.tools != ToolSyntax::hermes && format.tools != ToolSyntax::llama3;
            if (held[at] != '{' && !is_list) {
                if (format.tools != ToolSyntax::mistral_args && format.tools != ToolSyntax::mistral) return refuse(0);
                constexpr std::string_view kArguments = "[ARGS]";
                const auto end = held.find(kArguments, at);
                constexpr std::size_t kMostName = 200;
                if (std::min(end, held.size() - std::min(held.size(), kArguments.size())) > at + kMostName) return refuse(0);
                if (end == std::string::npos) return ended && refuse(held.size());
                name = held.substr(at, end - at);
                name = name.substr(0, name.find("[CALL_ID]"));
                begins_at = end + kArguments.size();
            }
            extent.emplace();
            scanned = begins_at;
        }
        JsonExtent::Found found = JsonExtent::Found::open;
        while (scanned < held.size() && found == JsonExtent::Found::open) found = extent->push(held[scanned++]);
        if (found == JsonExtent::Found::none) return refuse(scanned);
        if (found == JsonExtent::Found::open) return ended && refuse(held.size());
        const std::string_view text = std::string_view(held).substr(begins_at, scanned - begins_at);
        std::vector<ToolCall> calls;
        if (!read_calls(text, calls)) return refuse(scanned);
        for (ToolCall& one : calls) {
            one.id = next_id();
            out.calls.push_back(std::move(one));
        }
        any_calls = true;
        held.erase(0, scanned);
        marked.clear();
        mode = format.tools == ToolSyntax::hermes ? Mode::close : Mode::after_call;
        return true;
    }

    bool read_calls(std::string_view text, std::vector<ToolCall>& calls) const {
        const Json json = Json::parse(text, nullptr, false);
        if (json.is_discarded()) return false;
        if (json.is_object() && !name.empty()) {
            calls.push_back({.id = {}, .name = name, .arguments = std::string(text)});
            return is_known(name);
        }
        if (json.is_object()) return read_call(text, json, calls);
        bool valid = !json.empty();
        std::size_t i = 0;
        for_each_item(text, [&](std::string_view item) { valid = valid && json[i].is_object() && read_call(item, json[i], calls) && ++i > 0; });
        return valid;
    }

    bool read_call(std::string_view text, const Json& json, std::vector<ToolCall>& calls) const {
        const auto called = json.find("name");
        if (called == json.end() || !called->is_string() || !is_known(called->get_ref<const std::string&>())) return false;
        for (const char* key : {"arguments", "parameters"}) {
            const auto arguments = json.find(key);
            if (arguments == json.end()) continue;
            std::string written;
            if (arguments->is_object()) {
                written = written_member(text, key).value_or("");
                if (written.empty()) written = arguments->dump();  // its key is written with escapes
            } else if (arguments->is_string() && Json::parse(arguments->get_ref<const std::string&>(), nullptr, false).is_object()) {
                written = arguments->get<std::string>();
            } else {
                return false;
            }
            calls.push_back({.id = {}, .name = called->get<std::string>(), .arguments = std::move(written)});
            return true;
        }
        return false;
    }

    [[nodiscard]] bool is_known(const std::string& tool) const {
        return !tool.empty() && (options.names.empty() || std::ranges::find(options.names, tool) != options.names.end());
    }

    std::string next_id() {
        static constexpr std::string_view kLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        std::uint64_t random = next_random(options.id_seed);
        std::string id;
        for (int i = 0; i < 9; ++i, random /= kLetters.size()) id.push_back(kLetters[random % kLetters.size()]);
        return id;
    }

    bool close(bool ended) {
        std::size_t end = 0;
        const Match match = begins_with("</tool_call>", ended, end);
        if (match == Match::maybe) return false;
        if (match == Match::yes) held.erase(0, end);
        mode = Mode::after_call;
        return true;
    }

    bool after_call(bool ended) {
        if (format.tools != ToolSyntax::llama3) return skip_space(ended, Mode::content, {}) && !held.empty();
        // Several calls are told apart by a semicolon.
        if (!skip_space(ended, Mode::first, ";")) return false;
        return !held.empty();
    }

    AnswerFormat format;
    AnswerParserOptions options;
    Mode mode = Mode::begin;
    std::string held;
    bool reasoned = false;  // something of it has been seen
    bool any_calls = false;
    AnswerPart out;
    std::string begun;      // of AnswerParserOptions::begun, what may still come out as content

    // Of a call.
    std::string marked;                 // what stands before `held` and may be content
    std::string name;                   // before [ARGS]
    std::size_t begins_at = 0;          // its JSON, in `held`
    std::size_t scanned = 0;            // up to here
    std::optional<JsonExtent> extent;
};

AnswerParser::AnswerParser(AnswerFormat format, AnswerParserOptions options) : state_(std::make_unique<State>(std::move(format), std::move(options))) {}
AnswerParser::~AnswerParser() = default;
AnswerParser::AnswerParser(AnswerParser&&) noexcept = default;
AnswerParser& AnswerParser::operator=(AnswerParser&&) noexcept = default;

AnswerPart AnswerParser::push(std::string_view text) {
    state_->held += text;
    state_->advance(false);
    return state_->take();
}

AnswerPart AnswerParser::finish() {
    state_->advance(true);
    return state_->take();
}

bool AnswerParser::has_calls() const noexcept { return state_->any_calls; }

}  // namespace headroom::text
