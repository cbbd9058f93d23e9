#include <QTest>

#include <fstream>
#include <sstream>

#include "core/text/answer_grammar.h"
#include "core/text/answer_parser.h"
#include "core/text/token_trie.h"
#include "tests/support/shared_data.h"
#include "tests/text/tiny_vocabulary.h"

using namespace headroom;
using text::AnswerFormat;
using text::AnswerPart;
using text::AnswerRules;
using text::Json;
using text::ToolSyntax;

class TestAnswerParser : public QObject {
    Q_OBJECT

private slots:
    void formats();
    void formats_of_real_templates();
    void shown();
    void reasoning();
    void hermes();
    void llama3();
    void mistral();
    void mistral_args();
    void no_calls();
    void begun();
    void ids();
    void hostile();
    void grammars();
    void grammar_errors();
};

#ifndef Q_MOC_RUN  // moc does not read raw strings with quotes in them

namespace {

const AnswerFormat kHermes{.tools = ToolSyntax::hermes, .reasoning_open = "<think>", .reasoning_close = "</think>"};
const AnswerFormat kLlama{.tools = ToolSyntax::llama3};
const AnswerFormat kMistral{.tools = ToolSyntax::mistral};
const AnswerFormat kMistralArgs{.tools = ToolSyntax::mistral_args, .reasoning_open = "[THINK]", .reasoning_close = "[/THINK]"};

// In pieces of `step` bytes, but never inside of a character; 0: at once.
AnswerPart parse(const AnswerFormat& format, std::string_view answer, std::size_t step, bool tools = true) {
    text::AnswerParser parser(format, {.tools = tools, .names = {"add", "get_time"}, .id_seed = 1});
    AnswerPart all;
    const auto take = [&](const AnswerPart& part) {
        all.reasoning += part.reasoning;
        all.content += part.content;
        all.calls.insert(all.calls.end(), part.calls.begin(), part.calls.end());
    };
    while (!answer.empty()) {
        std::size_t length = step == 0 ? answer.size() : std::min(step, answer.size());
        while (length < answer.size() && (static_cast<unsigned char>(answer[length]) & 0xC0) == 0x80) ++length;
        take(parser.push(answer.substr(0, length)));
        answer.remove_prefix(length);
    }
    take(parser.finish());
    if (parser.has_calls() != !all.calls.empty()) qFatal("has_calls is wrong");
    return all;
}

std::string shown(const AnswerPart& part) {
    std::string text = fmt::format("[{}][{}]", part.reasoning, part.content);
    for (const text::ToolCall& call : part.calls) text += fmt::format(" {}({})", call.name, call.arguments);
    return text;
}

// The same however it is cut.
void check(const AnswerFormat& format, const std::string& answer, const std::string& expected, bool tools = true) {
    for (const std::size_t step : {0, 1, 2, 3, 5, 7, 11, 100}) {
        if (answer.size() > 10'000 && step > 1 && step < 11) continue;
         QCOMPARE(shown(parse(format, answer, step, tools)), expected);
    }
}

std::string read(const std::filesystem::path& path) {
    std::stringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

Json two_tools() {
    return Json::parse(R"([{"type":"function","function":{"name":"add","parameters":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},
                          "required":["a","b"],"additionalProperties":false}}},
                          {"type":"function","function":{"name":"get_time"}}])");
}

}  // namespace

void TestAnswerParser::formats() {
    const auto tools_of = [](const char* source) { return text::detect_answer_format(source, "").tools; };
    QCOMPARE(tools_of("{% if tools %}<tool_call>"), ToolSyntax::hermes);
    QCOMPARE(tools_of("{{ '<|python_tag|>' }}"), ToolSyntax::llama3);
    QCOMPARE(tools_of("\"parameters\": "), ToolSyntax::llama3);
    QCOMPARE(tools_of("[TOOL_CALLS]"), ToolSyntax::mistral);
    QCOMPARE(tools_of("[TOOL_CALLS]name[ARGS]"), ToolSyntax::mistral_args);
    QCOMPARE(tools_of(""), ToolSyntax::hermes);
    QVERIFY(text::detect_answer_format("{{ tools }}", "").tools_in_template);
    QVERIFY(!text::detect_answer_format("{{ messages }}", "").tools_in_template);
    const AnswerFormat think = text::detect_answer_format("a </think> b", "user<think>\n");
    QCOMPARE(think.reasoning_open, std::string("<think>"));
    QCOMPARE(think.reasoning_close, std::string("</think>"));
    QVERIFY(think.starts_in_reasoning);
    QVERIFY(!text::detect_answer_format("<think>", "<think>\n\n</think>\n\n").starts_in_reasoning);
    QVERIFY(!text::detect_answer_format("", "<think>").starts_in_reasoning);
    QCOMPARE(text::detect_answer_format("[THINK]", "").reasoning_close, std::string("[/THINK]"));
}

void TestAnswerParser::formats_of_real_templates() {
    const auto folder = test::shared_data("testdata/templates");
    if (folder.empty()) QSKIP(test::missing_shared("testdata/templates"));
    const std::vector<std::tuple<const char*, ToolSyntax, const char*>> known{
        {"Qwen-Qwen2.5-7B-Instruct", ToolSyntax::hermes, ""},
        {"Qwen-Qwen3-0.6B", ToolSyntax::hermes, "<think>"},
        {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", ToolSyntax::hermes, ""},
        {"meta-llama-Llama-3.1-8B-Instruct", ToolSyntax::llama3, ""},
        {"meta-llama-Llama-3.2-3B-Instruct", ToolSyntax::llama3, ""},
        {"meta-llama-Llama-3.3-70B-Instruct", ToolSyntax::llama3, ""},
        {"mistralai-Mistral-Nemo-Instruct-2407", ToolSyntax::mistral, ""},
        {"mistralai-Ministral-3-14B-Reasoning-2512", ToolSyntax::mistral_args, "[THINK]"},
        {"unsloth-mistral-Devstral-Small-2507", ToolSyntax::mistral_args, ""},
        {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", ToolSyntax::hermes, "<think>"},
    };
    for (const auto& [name, tools, open] : known) {
        const AnswerFormat format = text::detect_answer_format(read(folder / (std::string(name) + ".jinja")), "");
        QVERIFY2(format.tools == tools, name);
        QVERIFY2(format.reasoning_open == open, name);
        QVERIFY2(format.tools_in_template == (std::string_view(name).find("R1") == std::string_view::npos), name);
    }
}

void TestAnswerParser::shown() {
    auto vocabulary = test::tiny_gpt2();
    vocabulary.tokens.push_back({"[TOOL_CALLS]", 3});
    vocabulary.tokens.push_back({"<tool_call>", 4});
    const auto tokenizer = test::load_tokenizer(vocabulary, [](gguf::Writer& writer) { writer.add("tokenizer.ggml.pre", "gpt-2"); });
    QCOMPARE(text::shown_tokens(kMistral, **tokenizer), std::vector<text::TokenId>{vocabulary.id("[TOOL_CALLS]")});
    QCOMPARE(text::shown_tokens(kHermes, **tokenizer), std::vector<text::TokenId>());
}

void TestAnswerParser::reasoning() {
    check(kHermes, "<think>\nHm, 2 < 3.\n</think>\n\nYes.", "[Hm, 2 < 3.][Yes.]");
    check(kHermes, "\n<think></think>\nYes. ", "[][Yes. ]");
    check(kHermes, "Yes. <think>no</think>", "[][Yes. <think>no</think>]");
    check(kHermes, " plain", "[][ plain]");
    check(kHermes, "<thin", "[][<thin]");
    check(kHermes, "<think>cut off </thi", "[cut off </thi][]");
    check(kHermes, "<think>a</think>b</think>", "[a][b</think>]");
    check(kHermes, "", "[][]");
    AnswerFormat inside = kHermes;
    inside.starts_in_reasoning = true;
    check(inside, "a \n b\n</think>\n\nc", "[a \n b][c]");
    check(inside, "<think>\na</think>c", "[a][c]");
    check(inside, "never closed ", "[never closed][]");
    check(kLlama, "<think>a</think>b", "[][<think>a</think>b]");
    check(kMistralArgs, "[THINK]a[/THINK]b", "[a][b]");
}

void TestAnswerParser::hermes() {
    check(kHermes, R"(<tool_call>
{"name": "add", "arguments": {"a": 1, "b": [2, "}</tool_call>"]}}
</tool_call>)", R"([][] add({"a": 1, "b": [2, "}</tool_call>"]}))");
    check(kHermes, R"(<think>t</think>Let me see.
<tool_call>{"name":"add","arguments":{}}</tool_call>
<tool_call>
{"arguments":{"x":"\"{"}, "name":"get_time"}
</tool_call>
)", R"([t][Let me see.] add({}) get_time({"x":"\"{"}))");
    // Without the closing tag; with arguments as a string; with text behind it.
    check(kHermes, R"(<tool_call>{"name":"add","arguments":{"a":1}})", R"([][] add({"a":1}))");
    check(kHermes, R"(<tool_call>{"name":"add","arguments":"{\"a\":1}"}</tool_call> and)", R"([][and] add({"a":1}))");
    check(kHermes, R"(<tool_call>{"name":"add","parameters":{"a":1}}</tool_call>)", R"([][] add({"a":1}))");
    check(kHermes, R"(<tool_call>{"n\u0061me":"add","argument\u0073":{"a":[1]}}</tool_call>)", R"([][] add({"a":[1]}))");
    // What is none comes out as it is.
    for (const char* text : {R"(a <tool_call>)", R"(a <tool_call> {"name":"add","argum)", R"(<tool_call>add</tool_call>)",
                             R"(<tool_call>{"name":"other","arguments":{}}</tool_call>)", R"(<tool_call>{"name":"add"}</tool_call>)",
                             R"(<tool_call>{"name":"add","arguments":[]}</tool_call>)", R"(<tool_call>{"name":5,"arguments":{}}</tool_call>)",
                             R"(<tool_call>{'name':'add'}</tool_call>)", R"(<tool_call>[{"name":"add","arguments":{}}]</tool_call>)",
                             R"(<tool_call>{"name":"add","arguments":"x"}</tool_call>)", R"(</tool_call>)", R"(<tool_call)", R"( <tool_call><tool_call>)"}) {
        check(kHermes, text, fmt::format("[][{}]", text));
    }
    // A good one behind a bad one.
    check(kHermes, R"(<tool_call>{"name":1}</tool_call><tool_call>{"name":"add","arguments":{}}</tool_call>)",
          R"([][<tool_call>{"name":1}</tool_call>] add({}))");
}

void TestAnswerParser::llama3() {
    check(kLlama, R"({"name": "add", "parameters": {"a": 1}})", R"([][] add({"a": 1}))");
    check(kLlama, R"(
<|python_tag|>{"name": "add", "parameters": {"a": 1}})", R"([][] add({"a": 1}))");
    check(kLlama, R"({"name":"add","parameters":{}}; {"name":"get_time","parameters":{}})", R"([][] add({}) get_time({}))");
    check(kLlama, R"({"type":"function","name":"add","parameters":{}})", R"([][] add({}))");
    for (const char* text : {R"({"answer": 42})", R"(Text {"name":"add","parameters":{}})", R"(<|python_tag|>print(1))", R"({"name":"add")", "<|python", " "}) {
        check(kLlama, text, fmt::format("[][{}]", text));
    }
}

void TestAnswerParser::mistral() {
    check(kMistral, R"([TOOL_CALLS][{"name": "add", "arguments": {"a": 1}, "id": "abcdefghi"}, {"name":"get_time","arguments":{}}])",
          R"([][] add({"a": 1}) get_time({}))");
    check(kMistral, R"(Now: [TOOL_CALLS] {"name": "add", "arguments": {}})", R"([][Now:] add({}))");
    for (const char* text : {R"([TOOL_CALLS][])", R"([TOOL_CALLS][{"name": "add", "arguments": {}}, 5])", R"([TOOL_CALLS][{"name": "add")", R"([TOOL_CALLS]x)", "[TOOL",
                             R"(see [1] and [TOOL_CALLS])"}) {
        check(kMistral, text, fmt::format("[][{}]", text));
    }
}

void TestAnswerParser::mistral_args() {
    check(kMistralArgs, R"([TOOL_CALLS]add[ARGS]{"a": 1}[TOOL_CALLS]get_time[CALL_ID]abcdefghi[ARGS]{})", R"([][] add({"a": 1}) get_time({}))");
    const std::string unknown = R"([TOOL_CALLS]other[ARGS]{"a": 1})";
    check(kMistralArgs, unknown, fmt::format("[][{}]", unknown));
    const std::string endless = "[TOOL_CALLS]" + std::string(300, 'x') + "[ARGS]{}";
    check(kMistralArgs, endless, fmt::format("[][{}]", endless));
}

void TestAnswerParser::no_calls() {
    const std::string call = R"(<tool_call>{"name":"add","arguments":{}}</tool_call>)";
    check(kHermes, call, fmt::format("[][{}]", call), false);
    check(kLlama, R"({"name":"add","parameters":{}})", R"([][{"name":"add","parameters":{}}])", false);
}

// What stands before the answer counts, and is not told.
void TestAnswerParser::begun() {
    const auto goes_on = [](std::string begun, std::string_view answer) {
        std::string all;
        for (const std::size_t step : {0, 1, 2, 5}) {
            text::AnswerParser parser(kHermes, {.tools = true, .names = {"add"}, .id_seed = 1, .begun = begun});
            AnswerPart whole;
            std::string_view rest = answer;
            const auto take = [&](const AnswerPart& part) {
                whole.reasoning += part.reasoning;
                whole.content += part.content;
                whole.calls.insert(whole.calls.end(), part.calls.begin(), part.calls.end());
            };
            while (!rest.empty()) {
                const std::size_t length = step == 0 ? rest.size() : std::min(step, rest.size());
                take(parser.push(rest.substr(0, length)));
                rest.remove_prefix(length);
            }
            take(parser.finish());
            if (!all.empty() && all != ::shown(whole)) return "cut otherwise: " + ::shown(whole);
            all = ::shown(whole);
        }
        return all;
    };
    QCOMPARE(goes_on("Sure, ", "it is 4."), std::string("[][it is 4.]"));
    QCOMPARE(goes_on("Sure", ", it is."), std::string("[][, it is.]"));
    QCOMPARE(goes_on("<think>So", " be it.</think>Yes"), std::string("[ be it.][Yes]"));
    QCOMPARE(goes_on("<think>So</think>", "Yes"), std::string("[][Yes]"));
    QCOMPARE(goes_on("<tool_call>{\"name\": \"add\", ", "\"arguments\": {\"a\": 1}}</tool_call>"), std::string("[][] add({\"a\": 1})"));
    QCOMPARE(goes_on("<tool_c", "all>{\"name\": \"add\", \"arguments\": {}}"), std::string("[][] add({})"));
    QCOMPARE(goes_on("<tool_c", "ane>"), std::string("[][ane>]"));  // no call: only what is new
    QCOMPARE(goes_on("<tool_call>{\"name\"", ": \"other\"}"), std::string("[][: \"other\"}]"));
}

void TestAnswerParser::ids() {
    const std::string twice = R"([TOOL_CALLS][{"name":"add","arguments":{}},{"name":"add","arguments":{}}])";
    const auto ids = [&](std::uint64_t seed) {
        text::AnswerParser parser(kMistral, {.tools = true, .names = {}, .id_seed = seed});
        const AnswerPart part = parser.push(twice);
        return std::pair(part.calls.at(0).id, part.calls.at(1).id);
    };
    QCOMPARE(ids(1), ids(1));
    QVERIFY(ids(1) != ids(2));
    QVERIFY(ids(1).first != ids(1).second);
    QCOMPARE(ids(1).first.size(), std::size_t(9));
}

void TestAnswerParser::hostile() {
    // Nothing is lost, and it takes no more than a moment.
    std::string many;
    for (int i = 0; i < 20'000; ++i) many += "<tool_call>{";
    check(kHermes, many, fmt::format("[][{}]", many));
    const std::string deep = "<tool_call>" + std::string(100'000, '{');
    check(kHermes, deep, fmt::format("[][{}]", deep));
    const std::string string = "<tool_call>{\"" + std::string(100'000, '\\');
    check(kHermes, string, fmt::format("[][{}]", string));
    const std::string spaces(50'000, ' ');
    check(kLlama, spaces + "x", fmt::format("[][{}x]", spaces));
    check(kHermes, "x" + spaces + "y", fmt::format("[][x{}y]", spaces));
    check(kHermes, "<tool_call>" + spaces + "{}", fmt::format("[][<tool_call>{}{{}}]", spaces));
    check(kHermes, "<think>" + spaces + "x" + spaces + "y</think>" + spaces + "z", fmt::format("[x{}y][z]", spaces));
    // So much white space beside a call is kept but for the end.
    check(kHermes, "x" + std::string(2000, '\n') + R"(<tool_call>{"name":"add","arguments":{}}</tool_call>)", fmt::format("[][x{}] add({{}})", std::string(1000, '\n')));
}

void TestAnswerParser::grammars() {
    const auto grammar = [](const AnswerFormat& format, const AnswerRules& rules) {
        auto made = text::compile_answer_grammar(format, rules);
        if (!made) qFatal("%s", made.error().message.c_str());
        return *made;
    };
    const std::string mark(1, static_cast<char>(text::kControlMark));
    const auto agrees = [](const text::Grammar& made, const std::vector<std::string>& yes, const std::vector<std::string>& no) {
        for (const auto& one : yes) QVERIFY2(made.matches(one), one.c_str());
        for (const auto& one : no) QVERIFY2(!made.matches(one), one.c_str());
    };
    AnswerRules rules;
    QVERIFY(grammar(kHermes, rules) == nullptr);

    rules.text = AnswerRules::Text::json_object;
    agrees(*grammar(kLlama, rules), {"{}", " \n{\"a\":1}"}, {"[]", "a{}", "<think></think>{}"});
    agrees(*grammar(kHermes, rules), {"{}", "<think>\n2 < 3 {\xC3\xA9</think>\n\n{}", "<think><<</thin</think>{}"}, {"<think>{}", "<think></think>", "x"});
    AnswerFormat inside = kHermes;
    inside.starts_in_reasoning = true;
    agrees(*grammar(inside, rules), {"a</think>{}"}, {"{}"});
    rules.text = AnswerRules::Text::json_schema;
    rules.schema = {{"type", "integer"}};
    agrees(*grammar(kLlama, rules), {"12"}, {"{}"});

    AnswerRules tools{.choice = AnswerRules::Choice::automatic, .tools = two_tools()};
    const std::string add = R"({"name": "add", "arguments": {"a": 1, "b": 2}})", time = R"({"name":"get_time","arguments":{}})";
    const std::string damaged = R"({"name": "add", "arguments": {"a": 1}})";
    const auto hermes = [](const std::string& call) { return "<tool_call>\n" + call + "\n</tool_call>"; };
    agrees(*grammar(kHermes, tools),
           {"", "Any text, <tool_calls> too.", hermes(add), "Text\n" + hermes(add) + "\n" + hermes(time), "<think>t</think>\n" + hermes(time), "<<tool_call" ,
            mark + "<tool_call>" + mark + time + mark + "</tool_call>" + mark},
           {"<tool_call>", hermes(damaged), hermes(add) + "x", hermes(R"({"name":"other","arguments":{}})"), "\xFF", "\xC3"});
    tools.parallel = false;
    agrees(*grammar(kHermes, tools), {hermes(add)}, {hermes(add) + hermes(time)});
    tools.choice = AnswerRules::Choice::required;
    agrees(*grammar(kHermes, tools), {"\n" + hermes(add), "<think>t</think>" + hermes(time)}, {"", "Text", "Text" + hermes(add)});
    tools.choice = AnswerRules::Choice::named;
    tools.name = "get_time";
    agrees(*grammar(kHermes, tools), {hermes(time)}, {hermes(add)});

    AnswerRules both{.text = AnswerRules::Text::json_schema, .schema = {{"const", 1}}, .choice = AnswerRules::Choice::automatic, .tools = two_tools()};
    agrees(*grammar(kHermes, both), {"1", hermes(add)}, {"text"});

    AnswerRules llama{.choice = AnswerRules::Choice::automatic, .tools = two_tools()};
    const std::string call = R"({"name": "add", "parameters": {"a": 1, "b": 2}})";
    agrees(*grammar(kLlama, llama), {"", "Text {", call, mark + "<|python_tag|>" + mark + call, " " + call}, {"{", "{}", "{\"a\":1}", add});
    llama.choice = AnswerRules::Choice::required;
    agrees(*grammar(kLlama, llama), {call}, {"", "Text", "<|python_tag|>"});

    AnswerRules mistral{.choice = AnswerRules::Choice::automatic, .tools = two_tools()};
    const std::string list = "[" + add + ", " + time + "]";
    agrees(*grammar(kMistral, mistral), {"Text [1]", mark + "[TOOL_CALLS]" + mark + list, R"([TOOL_CALLS] [{"name":"get_time","arguments":{}, "id":"aB3456789"}])"},
           {"[TOOL_CALLS]", "[TOOL_CALLS][]", "[TOOL_CALLS][" + damaged + "]"});
    agrees(*grammar(kMistralArgs, mistral), {"Text", mark + "[TOOL_CALLS]" + mark + "add" + mark + "[ARGS]" + mark + R"({"a":1,"b":2}[TOOL_CALLS]get_time[ARGS]{})"},
           {"[TOOL_CALLS]add[ARGS]{}", "[TOOL_CALLS]other[ARGS]{}"});
}

void TestAnswerParser::grammar_errors() {
    const auto says = [](const Json& tools, const std::string& message, const std::string& name = {}) {
        const AnswerRules rules{.choice = name.empty() ? AnswerRules::Choice::required : AnswerRules::Choice::named, .tools = tools, .name = name};
        const auto made = text::compile_answer_grammar(kHermes, rules);
        QVERIFY(!made);
        QCOMPARE(made.error().message, message);
    };
    const auto tool = [](const Json& function) { return Json::array({{{"type", "function"}, {"function", function}}}); };
    says(Json::array(), "tools: expected a list of tools");
    says(Json::array({5}), R"(tools[0]: expected an object with "type": "function" and a "function")");
    says(tool({{"description", "x"}}), "tools[0].function.name: expected 1 to 64 letters, digits, '_', '-' or '.'");
    says(tool({{"name", "a b"}}), "tools[0].function.name: expected 1 to 64 letters, digits, '_', '-' or '.'");
    says(tool({{"name", "a"}, {"parameters", {{"type", "array"}}}}), R"(tools[0].function.parameters/type: a tool's arguments are an "object")");
    says(tool({{"name", "a"}, {"parameters", {{"properties", {{"x", {{"not", 1}}}}}}}}),
         "tools[0].function.parameters/properties/x/not: this keyword is not supported");
    says(two_tools(), R"(tool_choice: there is no tool named "sub")", "sub");
    Json twice = two_tools();
    twice[1]["function"]["name"] = "add";
    says(twice, R"(tools[1].function.name: there are two tools named "add")");
    const AnswerRules rules{.text = AnswerRules::Text::json_schema, .schema = {{"if", true}}};
    QCOMPARE(text::compile_answer_grammar(kHermes, rules).error().message, std::string("response_format/if: this keyword is not supported"));
}

#endif

QTEST_GUILESS_MAIN(TestAnswerParser)
#include "tst_answer_parser.moc"
