#include <QTest>

#include "core/text/json_schema.h"

using namespace headroom;
using text::Json;

class TestJsonSchema : public QObject {
    Q_OBJECT

private slots:
    void any_value();
    void any_object();
    void strings();
    void patterns();
    void formats();
    void integers();
    void numbers();
    void objects();
    void arrays();
    void values();
    void combinations();
    void references();
    void unknown_keywords();
    void wrong_schemas();
    void hostile_schemas();
};

#ifndef Q_MOC_RUN  // moc does not read raw strings with quotes in them

namespace {

std::shared_ptr<const text::Grammar> compile(const std::string& schema) {
    auto grammar = text::compile_json_schema(Json::parse(schema));
    if (!grammar) qFatal("%s: %s", schema.c_str(), grammar.error().message.c_str());
    return std::move(*grammar);
}

std::string error_of(const std::string& schema, const text::SchemaLimits& limits = {}) {
    const auto grammar = text::compile_json_schema(Json::parse(schema), limits);
    return grammar ? std::string("compiled") : std::string(to_string(grammar.error().kind)) + ": " + grammar.error().message;
}

void says(const std::string& schema, const std::string& message, const text::SchemaLimits& limits = {}) {
    QCOMPARE(error_of(schema, limits), message);
}
void begins(const std::string& schema, const std::string& message) {
    const std::string whole = error_of(schema);
    QVERIFY2(whole.starts_with(message), whole.c_str());
}

struct Case {
    std::string schema;
    std::vector<const char*> yes, no;
};

// All texts of `yes` are the grammar's, none of `no` is.
void check(const std::vector<Case>& cases) {
    for (const Case& one : cases) {
        const auto grammar = compile(one.schema);
        for (const char* text : one.yes) QVERIFY2(grammar->matches(text), (one.schema + " refuses " + text).c_str());
        for (const char* text : one.no) QVERIFY2(!grammar->matches(text), (one.schema + " allows " + text).c_str());
    }
}

}  // namespace

void TestJsonSchema::any_value() {
    check({{"{}",
            {"null", "true", "false", "0", "-12.5e+7", R"("a")", "[]", "{}", R"([1,[2, {"a":"b"}],null])", R"({"a": {"b": [ ]}})", " 1",
             "{\n  \"a\": 1,\n  \"b\": [\n    2\n  ]\n}"},
            {"", "nul", "01", "+1", ".5", "1.", "1e", "'a'", "[1,]", "[,1]", "{\"a\"}", "{\"a\":}", "{a:1}", "{} ", "[1 2]", "tru e", "1\n",
             "[\n\n]", "[  1]", "1e999"}},
           {"true", {"1"}, {""}}});
    begins("false", "invalid_argument: Nothing of less than 1048576 bytes c");
}

void TestJsonSchema::any_object() {
    const auto grammar = text::any_json_object();
    QVERIFY(grammar->matches("{}"));
    QVERIFY(grammar->matches("{\"a\":[1,{\"b\":null}],\"c\":\"d\"}"));
    QVERIFY(!grammar->matches("[]"));
    QVERIFY(!grammar->matches("1"));
}

void TestJsonSchema::strings() {
    check({{R"({"type":"string"})",
            {R"("")", R"("a\"b\\c\/\b\f\n\r\t\u00e9\uD83D\ude00")", "\"\xC3\xA9\xE4\xBD\xA0\xF0\x9F\x98\x80\x7F\""},
            {"\"\n\"", R"("\x")", R"("\u12")", R"("\ud83d")", R"("\ud83dA")", R"("\ude00")", "\"\xC3\"", "\"\xED\xA0\x80\"", "\"\xC0\xAF\"",
             "\"\xFF\"", "\"\xF4\x90\x80\x80\"", "\"a", "a\"", "\"\x01\""}},
           {R"({"type":"string","minLength":2,"maxLength":3})",
            {R"("ab")", "\"\xC3\xA9\xF0\x9F\x98\x80\"", R"("\ud83d\ude00a\n")"},
            {R"("")", R"("a")", R"("abcd")", "\"\xF0\x9F\x98\x80\""}},
           {R"({"minLength":1})", {R"("a")"}, {R"("")", "1"}},
           {R"({"type":"string","maxLength":0})", {R"("")"}, {R"("a")"}},
           {R"({"type":"string","maxLength":100000,"minLength":3})", {R"("abcd")"}, {R"("ab")"}}});
}

void TestJsonSchema::patterns() {
    check({{R"({"type":"string","pattern":"^[a-c]+$"})", {R"("abc")"}, {R"("")", R"("abd")", R"("abc ")"}},
           {R"({"pattern":"b"})", {R"("b")", R"("abc")", "\"\xC3\xA9\x62\"", R"("\nb\"\\b")"}, {R"("ac")", R"("")"}},
           {R"({"pattern":"^a|b$"})", {R"("ax")", R"("xb")"}, {R"("xa")", R"("bx")"}},
           {R"({"pattern":"^(?:ab|cd){2,3}$"})", {R"("abcd")", R"("cdcdab")"}, {R"("ab")", R"("abcdabcd")"}},
           {R"({"pattern":"^a{2}b?c*d{1,}e{0,1}?$"})", {R"("aad")", R"("aabccdde")"}, {R"("ad")", R"("aade ")"}},
           {R"({"pattern":"^\\d\\w\\s\\D\\W\\S$"})", {R"("1_ a-b")", R"("9Z\na b")"}, {R"("aa a-b")", R"("1_ 1-b")"}},
           {R"({"pattern":"^[^a-z\\d]$"})", {R"("A")", "\"\xE4\xBD\xA0\"", R"("\"")", R"("\\")", R"("\u0001")"}, {R"("a")", R"("5")", R"("AA")"}},
           {R"({"pattern":"^.$"})", {R"("a")", "\"\xF0\x9F\x98\x80\"", R"("\t")"}, {R"("\n")", R"("")", "\"\xE2\x80\xA8\""}},
           {R"({"pattern":"^[\\u00e0-\\u00ff\\x41-]$"})", {"\"\xC3\xA9\"", R"("A")", R"("-")"}, {R"("e")", "\"\xC3\x9F\""}},
           {R"({"pattern":"^\\u{1F600}\\/\\.$"})", {"\"\xF0\x9F\x98\x80/.\""}, {"\"\xF0\x9F\x98\x81/.\""}},
           {R"({"pattern":"^(a|)$"})", {R"("")", R"("a")"}, {R"("b")"}},
           {R"({"pattern":"","maxLength":2})", {R"("")", R"("ab")"}, {R"("abc")"}},
           {R"({"pattern":"^x","minLength":3,"maxLength":4})", {R"("xab")", "\"x\xC3\xA9\xC3\xA9\""}, {R"("xa")", R"("xabcd")", R"("abc")"}},
           {R"({"allOf":[{"pattern":"a"},{"pattern":"b"}]})", {R"("ab")", R"("b a")"}, {R"("a")", R"("b")"}}});
    const auto refuses = [](const std::string& pattern, const std::string& part) {
        const std::string message = error_of(Json({{"properties", {{"a", {{"pattern", pattern}}}}}}).dump());
        QVERIFY2(message.find("#/properties/a/pattern: the pattern ") != std::string::npos, message.c_str());
        QVERIFY2(message.find(part) != std::string::npos, message.c_str());
    };
    refuses("(?=a)", "a look-around at byte 0");
    refuses("a(?<!b)", "a look-around at byte 1");
    refuses(R"((a)\1)", "\\1 at byte 5");
    refuses(R"(\bword)", "\\b at byte 2");
    refuses(R"(\p{L})", "\\p at byte 2");
    refuses("(a", "'(' without its ')'");
    refuses("a)", "')' without its '('");
    refuses("[a", "'[' without its ']'");
    refuses("*a", "a repetition of nothing");
    refuses("a**", "a repetition of a repetition");
    refuses("a{3,2}", "more at least than at most");
    refuses("a{99999}", "more than 10,000 repetitions");
    refuses("[z-a]", "a range without order");
    refuses("(^a|b)", "^ or $ other than at the ends");
    refuses("(a|b)*a(a|b){30}", "needs more than");
    refuses("((a{100}){100}){100}", "needs more than");
    refuses(std::string(200, '(') + std::string(200, ')'), "more groups inside of each other");
}

void TestJsonSchema::formats() {
    check({{R"({"format":"date"})",
            {R"("2024-02-29")", R"("2023-12-31")", R"("2000-02-29")", R"("0004-02-29")"},
            {R"("2023-02-29")", R"("1900-02-29")", R"("2023-13-01")", R"("2023-04-31")", R"("2023-1-1")", R"("2023-00-10")"}},
           {R"({"format":"time"})", {R"("23:59:59Z")", R"("00:00:00.123+05:30")"}, {R"("24:00:00Z")", R"("12:00:00")", R"("12:00Z")"}},
           {R"({"format":"date-time"})", {R"("2024-02-29T12:00:00Z")"}, {R"("2024-02-30T12:00:00Z")", R"("2024-02-29 12:00:00Z")"}},
           {R"({"format":"uuid"})", {R"("01234567-89ab-cdef-0123-456789ABCDEF")"}, {R"("01234567-89ab-cdef-0123-456789abcde")"}},
           {R"({"format":"email"})", {R"("a.b+c@example.com")"}, {R"("a@b")", R"("@b.com")", R"("a b@c.de")"}},
           {R"({"format":"ipv4"})", {R"("0.10.255.199")"}, {R"("256.1.1.1")", R"("1.1.1")", R"("01.1.1.1")"}},
           {R"({"format":"ipv6"})", {R"("::")", R"("::1")", R"("1:2:3:4:5:6:7:8")", R"("fe80::1:2")", R"("1::")"}, {R"("1:2")", R"("1::2::3")", R"("12345::")"}},
           {R"({"format":"hostname"})", {R"("a-b.example")"}, {R"("-a")", R"("a-")", R"("a..b")"}},
           {R"({"format":"uri"})", {R"("https://a.b:80/c?d=e#f")"}, {R"("a.b")", R"("https://a b")"}},
           {R"({"format":"duration"})", {R"("P1Y2M3DT4H5M6S")", R"("PT1S")", R"("P2W")"}, {R"("P")", R"("PT")", R"("P1S")"}}});
    says(R"({"format":"iri"})", "unsupported: #/format: the format \"iri\" is not supported; these are: date, date-time, duration, email, hostname, ipv4, ipv6, time, "
                         "uri, uuid");
}

void TestJsonSchema::integers() {
    check({{R"({"type":"integer"})", {"0", "-1", "123456789012345"}, {"-0", "01", "1.0", "1e3", "1234567890123456", "-"}},
           {R"({"type":"integer","minimum":-3,"maximum":12})", {"-3", "0", "9", "12"}, {"-4", "13", "20", "-10", "100"}},
           {R"({"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":3})", {"1", "2"}, {"0", "3", "-1"}},
           {R"({"type":"integer","minimum":1.5,"maximum":3.5})", {"2", "3"}, {"1", "4"}},
           {R"({"type":"integer","minimum":-3.5,"maximum":-1.5})", {"-3", "-2"}, {"-4", "-1", "0"}},
           {R"({"type":"integer","minimum":998,"maximum":1002})", {"998", "999", "1000", "1002"}, {"997", "1003", "99", "10000", "100"}},
           {R"({"type":"integer","minimum":5})", {"5", "10", "999999999999999"}, {"4", "0", "-5"}},
           {R"({"type":"integer","maximum":-5})", {"-5", "-10"}, {"-4", "0", "5"}},
           {R"({"type":"integer","minimum":100000000000000000})", {"100000000000000000", "999999999999999999"}, {"99999999999999999"}},
           {R"({"type":"integer","multipleOf":7,"minimum":10,"maximum":40})", {"14", "21", "28", "35"}, {"7", "10", "15", "42"}},
           {R"({"type":"number","multipleOf":5})", {"0", "5", "-10", "1234565"}, {"1", "5.5", "12"}},
           {R"({"allOf":[{"multipleOf":4},{"multipleOf":6},{"minimum":1},{"maximum":30}]})", {"12", "24"}, {"4", "6", "0", "36"}}});
    // Every number near the bounds, against plain comparison.
    for (const auto& [low, high] : {std::pair(-12, 105), std::pair(7, 7), std::pair(95, 1010), std::pair(-1100, -98)}) {
        const auto grammar = compile(fmt::format(R"({{"type":"integer","minimum":{},"maximum":{}}})", low, high));
        for (int i = -1300; i <= 1300; ++i) QCOMPARE(grammar->matches(std::to_string(i)), i >= low && i <= high);
    }
    says(R"({"type":"integer","minimum":1000000000000000000})", "unsupported: #/minimum: integers of more than 18 digits are not supported");
    says(R"({"type":"integer","multipleOf":0.5})", "unsupported: #/multipleOf: only whole numbers from 1 to 1000 are supported");
    says(R"({"type":"integer","multipleOf":-2})", "invalid_argument: #/multipleOf: expected a number of more than 0");
    begins(R"({"type":"integer","minimum":3,"maximum":2})", "invalid_argument: Nothing");
}

void TestJsonSchema::numbers() {
    check({{R"({"type":"number"})", {"0", "-0.5", "1e5", "12.25E-3"}, {"1.", ".5", "1e", "--1", "NaN"}},
           {R"({"type":"number","minimum":0,"maximum":1})",
            {"0", "0.5", "1", "1.0", "0.00000000000001", "1.000"},
            {"1.1", "-0.1", "2", "1e0", "10", "0.000000000000001", "00.5", "0."}},
           {R"({"type":"number","exclusiveMinimum":0,"maximum":2.5})", {"0.1", "2.5", "2.50", "1"}, {"0", "0.0", "2.51", "3"}},
           {R"({"type":"number","minimum":-1.25,"exclusiveMaximum":-0.5})", {"-1.25", "-1", "-0.51"}, {"-1.26", "-0.5", "-0.50", "0", "1", "-2"}},
           {R"({"type":"number","minimum":9.5})", {"9.5", "9.51", "10", "123.4"}, {"9.4", "9", "1", "-9.6"}},
           {R"({"type":"number","maximum":9.5})", {"9.5", "0", "-100.5", "9"}, {"9.6", "10", "9.51"}},
           {R"({"type":"number","exclusiveMaximum":0})", {"-0.1", "-5"}, {"0", "-0", "-0.0", "1"}},
           {R"({"type":"number","minimum":1e-20,"maximum":0.001})", {"0.001", "0.0001"}, {"0", "0.01"}}});
    for (const auto& [low, high] : {std::pair(-150, 275), std::pair(5, 95), std::pair(-995, -90)}) {  // hundredths
        const auto grammar =
            compile(fmt::format(R"({{"type":"number","minimum":{},"exclusiveMaximum":{}}})", low / 100.0, high / 100.0));
        for (int i = -1200; i <= 1200; ++i) {
            if (i == 0) continue;
            const std::string text = fmt::format("{}{}.{:02}", i < 0 ? "-" : "", std::abs(i) / 100, std::abs(i) % 100);
            QVERIFY2(grammar->matches(text) == (i >= low && i < high), text.c_str());
        }
    }
    says(R"({"type":"number","minimum":1e20})", "unsupported: #/minimum: bounds leave only numbers of more than 15 digits, which are not supported");
}

void TestJsonSchema::objects() {
    check({{R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"boolean"}},"required":["a"]})",
            {R"({"a":1})", R"({"a": 1, "b": true})", "{\n\t\"a\": 1\n}"},
            {"{}", R"({"b":true})", R"({"b":true,"a":1})", R"({"a":1,"c":2})", R"({"a":true})", R"({"a":1,})", R"({"a":1 ,"b":true})"}},
           {R"({"properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}}})",
            {"{}", R"({"a":1})", R"({"b":2})", R"({"c":3})", R"({"a":1,"c":3})", R"({"a":1,"b":2,"c":3})", "{ }"},
            {R"({"c":3,"a":1})", R"({,"a":1})", R"({"a":1,"a":1})"}},
           {R"({"type":"object","properties":{"a":{"const":1}},"required":["a"],"additionalProperties":{"type":"null"}})",
            {R"({"a":1})", R"({"a":1,"b":null,"":null,"aa":null})"},
            {R"({"a":1,"a":null})", R"({"a":1,"b":1})", R"({"b":null})"}},
           {R"({"type":"object","additionalProperties":{"type":"integer"}})", {"{}", R"({"x":1,"y":2})"}, {R"({"x":"1"})"}},
           {R"({"type":"object","additionalProperties":false})", {"{}"}, {R"({"x":1})"}},
           {R"({"type":"object","additionalProperties":{"const":0},"minProperties":1,"maxProperties":2})",
            {R"({"x":0})", R"({"x":0,"y":0})"},
            {"{}", R"({"x":0,"y":0,"z":0})"}},
           {R"({"required":["x"]})", {R"({"x":[1]})"}, {"{}", "1"}},
           {R"({"properties":{"a":false,"b":{"const":1}}})", {"{}", R"({"b":1})"}, {R"({"a":1})"}},
           {R"({"properties":{"qu\"o\\te\n":{"const":1}},"required":["qu\"o\\te\n"]})", {R"({"qu\"o\\te\n":1})"}, {"{}"}}});
    begins(R"({"properties":{"a":false},"required":["a"]})", "invalid_argument: Nothing");
    says(R"({"properties":{"a":{},"b":{}},"maxProperties":1})", "unsupported: #/maxProperties: fewer than there are properties is not supported");
    says(R"({"type":"object","minProperties":2})", "unsupported: #/minProperties: more than the required properties is not supported");
}

void TestJsonSchema::arrays() {
    check({{R"({"type":"array","items":{"type":"integer"}})", {"[]", "[1]", "[1, 2,3]", "[\n  1,\n  2\n]"}, {"[1,\"a\"]", "[1", "[1,]"}},
           {R"({"type":"array","items":{"const":1},"minItems":2,"maxItems":4})", {"[1,1]", "[1,1,1,1]"}, {"[]", "[1]", "[1,1,1,1,1]"}},
           {R"({"type":"array","items":{"const":1},"maxItems":1})", {"[]", "[1]"}, {"[1,1]"}},
           {R"({"items":{"const":1},"maxItems":0})", {"[]"}, {"[1]"}},
           {R"({"items":false})", {"[]"}, {"[1]"}},
           {R"({"prefixItems":[{"const":1},{"const":2}]})", {"[]", "[1]", "[1,2]"}, {"[2]", "[1,2,3]"}},
           {R"({"prefixItems":[{"const":1},{"const":2}],"minItems":2,"items":{"const":3}})", {"[1,2]", "[1,2,3,3]"}, {"[1]", "[1,2,4]"}},
           {R"({"items":[{"const":1}],"additionalItems":{"const":2},"maxItems":3})", {"[]", "[1,2,2]"}, {"[2]", "[1,2,2,2]"}},
           {R"({"prefixItems":[{"const":1}],"minItems":2})", {"[1,null]", "[1,2,3]"}, {"[1]"}},
           {R"({"type":"array","uniqueItems":false})", {"[1,1]"}, {"{}"}}});
    begins(R"({"items":{},"minItems":3,"maxItems":2})", "invalid_argument: Nothing");
    begins(R"({"type":"string","minLength":3,"maxLength":2})", "invalid_argument: Nothing");
    check({{R"({"prefixItems":[{"const":1}],"items":{},"minItems":6,"maxItems":5,"type":["array","null"]})", {"null"}, {"[1,2,3,4,5]"}}});
    says(R"({"type":"array","uniqueItems":true})", "unsupported: #/uniqueItems: items that differ from each other are not supported");
}

void TestJsonSchema::values() {
    check({{R"({"enum":["a","ab",1,null,[1,{"x":2}],1.5,true]})",
            {R"("a")", R"("ab")", "1", "null", R"([1,{"x":2}])", "1.5", "true"},
            {"2", "false", "\"b\"", "\"abc\""}},
           {R"({"const":{"a":["b",{}],"c":1}})",
            {R"({"a":["b",{}],"c":1})", "{\n  \"a\": [\n    \"b\", { }\n  ],\n  \"c\": 1\n}"},
            {"{}", R"({"a":["b"]})", R"({"c":1,"a":["b",{}]})"}},
           {R"({"type":"string","enum":["a",1,"bcd"],"maxLength":2})", {R"("a")"}, {"1", R"("bcd")"}},
           {R"({"type":"integer","enum":[1,2.5,7],"minimum":5})", {"7"}, {"1", "2.5"}},
           {R"({"enum":[1,2,3],"allOf":[{"enum":[2,3,4]},{"maximum":2}]})", {"2"}, {"1", "3", "4"}},
           {R"({"enum":[{"b":1,"a":2},{"a":"x"}],"properties":{"a":{"type":"integer"}},"required":["a"]})", {R"({"b":1,"a":2})"}, {R"({"a":"x"})"}},
           {R"({"type":"string","nullable":true})", {"null", R"("a")"}, {"1"}},
           {R"({"type":["string","null","boolean"]})", {"null", R"("a")", "true"}, {"1", "{}"}},
           {R"({"type":"null"})", {"null"}, {"0"}}});
    begins(R"({"type":"string","enum":[1,2]})", "invalid_argument: Nothing");
}

void TestJsonSchema::combinations() {
    check({{R"({"anyOf":[{"type":"integer"},{"type":"string","maxLength":1}]})", {"1", R"("a")"}, {"true", R"("ab")"}},
           {R"({"type":"object","properties":{"k":{"const":"x"},"a":{"const":1},"b":{"const":2}},"required":["k"],
                "anyOf":[{"required":["a"]},{"required":["b"]}]})",
            {R"({"k":"x","a":1})", R"({"k":"x","b":2})", R"({"k":"x","a":1,"b":2})"},
            {R"({"k":"x"})", R"({"a":1})"}},
           {R"({"oneOf":[{"type":"object","properties":{"t":{"const":"a"},"x":{"type":"integer"}},"required":["t","x"]},
                         {"type":"object","properties":{"t":{"const":"b"},"y":{"type":"string"}},"required":["t","y"]}]})",
            {R"({"t":"a","x":1})", R"({"t":"b","y":""})"},
            {R"({"t":"a","y":""})", R"({"t":"c"})"}},
           {R"({"oneOf":[{"type":"integer","maximum":0},{"type":"integer","minimum":1},{"type":"null"}]})", {"0", "1", "null"}, {"1.5"}},
           {R"({"oneOf":[{"enum":["a","b"]},{"enum":["c",4]}]})", {R"("a")", "4"}, {R"("d")"}},
           {R"({"oneOf":[{"type":"string"},{"oneOf":[{"type":"boolean"},{"type":"null"}]}]})", {R"("")", "true", "null"}, {"1"}},
           {R"({"allOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},
                         {"properties":{"a":{"minimum":5},"b":{"type":"null"}},"required":["b"]}]})",
            {R"({"a":5,"b":null})"},
            {R"({"a":4,"b":null})", R"({"a":5})"}},
           {R"({"allOf":[{"properties":{"a":{}},"additionalProperties":false},{"properties":{"b":{}}}]})", {"{}", R"({"a":1})"}, {R"({"b":1})"}},
           {R"({"allOf":[{"anyOf":[{"const":1},{"const":2}]},{"anyOf":[{"const":2},{"const":3}]}]})", {"2"}, {"1", "3"}},
           {R"({"allOf":[{"type":"string"},{"minLength":1}]})", {R"("a")"}, {R"("")", "1"}}});
    const auto refuses_one = [](const std::string& schema) {
        const std::string message = error_of(schema);
        QVERIFY2(message.starts_with("unsupported: #/oneOf: the alternatives 0 and 1 may allow the same value"), message.c_str());
    };
    refuses_one(R"({"oneOf":[{"type":"integer"},{"type":"number"}]})");
    refuses_one(R"({"oneOf":[{"type":"string"},{"type":"string","maxLength":2}]})");
    refuses_one(R"({"oneOf":[{"type":"object","properties":{"a":{}}},{"type":"object","properties":{"b":{}}}]})");
    // Each branch alone writes no object of the other; both properties together are valid by both.
    refuses_one(R"({"type":"object","properties":{"a":{},"b":{}},"oneOf":[{"required":["a"]},{"required":["b"]}]})");
    refuses_one(R"({"oneOf":[{"properties":{"a":{}},"required":["a"]},{"type":["string","object"]}]})");
}

void TestJsonSchema::references() {
    check({{R"({"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}},
                "required":["v","next"]}}})",
            {R"({"v":1,"next":null})", R"({"v":1,"next":{"v":2,"next":{"v":3,"next":null}}})"},
            {R"({"v":1})", R"({"v":1,"next":1})"}},
           {R"({"type":"array","items":{"$ref":"#"}})", {"[]", "[[],[[]]]"}, {"[1]"}},
           {R"({"properties":{"a":{"$ref":"#/definitions/x~1y~0z%20"}},"definitions":{"x/y~z ":{"const":1}}})", {R"({"a":1})"}, {R"({"a":2})"}},
           {R"({"$ref":"#/$defs/a","maximum":3,"$defs":{"a":{"type":"integer","minimum":2}}})", {"2", "3"}, {"1", "4"}},
           {R"({"$ref":"#/anyOf/0","anyOf":[{"const":1},{"const":2}]})", {"1"}, {"2"}},
           {R"({"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"},{"const":1}]},"b":{"anyOf":[{"$ref":"#/$defs/a"},{"const":2}]}},"$ref":"#/$defs/a"})",
            {"1", "2"},
            {"3"}}});
    says(R"({"properties":{"a":{"$ref":"#/$defs/x"}}})", "invalid_argument: #/properties/a/$ref: there is nothing at \"#/$defs/x\"");
    says(R"({"$ref":"https://example.org/x"})", "unsupported: #/$ref: \"https://example.org/x\" does not point into the schema itself (\"#/…\")");
    begins(R"({"$defs":{"n":{"properties":{"a":{"$ref":"#/$defs/n"}},"required":["a"]}},"$ref":"#/$defs/n"})", "invalid_argument: Nothing");
    begins(R"({"anyOf":[{"$ref":"#"}]})", "invalid_argument: Nothing");
}

void TestJsonSchema::unknown_keywords() {
    says(R"({"properties":{"a":{"items":{"not":{}}}}})", "unsupported: #/properties/a/items/not: this keyword is not supported");
    says(R"({"$defs":{"d":{"if":{}}},"anyOf":[{"$ref":"#/$defs/d"}]})", "unsupported: #/$defs/d/if: this keyword is not supported");
    for (const char* keyword : {"patternProperties", "propertyNames", "contains", "dependentRequired", "unevaluatedProperties", "$dynamicRef", "typo"}) {
        says(fmt::format(R"({{"{}":{{}}}})", keyword), fmt::format("unsupported: #/{}: this keyword is not supported", keyword));
    }
    check({{R"({"title":"t","description":"d","default":1,"examples":[1],"$schema":"s","$id":"i","$comment":"c","deprecated":true,"x-order":1,"type":"null"})",
            {"null"},
            {"1"}}});
}

void TestJsonSchema::wrong_schemas() {
    says("[]", "invalid_argument: #: a schema is an object, true or false");
    says(R"({"properties":{"a":5}})", "invalid_argument: #/properties/a: a schema is an object, true or false");
    says(R"({"type":"text"})", "invalid_argument: #/type: expected null, boolean, integer, number, string, array, object or a list of these");
    says(R"({"minLength":-1})", "invalid_argument: #/minLength: expected a whole number of 0 or more");
    says(R"({"anyOf":[]})", "invalid_argument: #/anyOf: expected a list of schemas");
    says(R"({"required":"a"})", "invalid_argument: #/required: expected a list of names");
    says(R"({"minimum":"1"})", "invalid_argument: #/minimum: expected a number");
    says(R"({"enum":1})", "invalid_argument: #/enum: expected a list of values");
    says(R"({"minItems":100001})", "unsupported: #/minItems: more than 100000 are not supported");
    begins(R"({"items":{"minLength":100000},"minItems":100000})", "invalid_argument: Nothing of less than 1048576 bytes");
}

void TestJsonSchema::hostile_schemas() {
    std::string deep = "{}";
    for (int i = 0; i < 500; ++i) deep = "{\"items\":" + deep + "}";
    says(deep, "invalid_argument: #: the schema has values more than 128 deep inside of each other");
    // 2^20 combinations.
    Json all{{"allOf", Json::array()}};
    for (int i = 0; i < 20; ++i) {
        all["allOf"].push_back({{"anyOf", {{{"required", {fmt::format("a{}", i)}}}, {{"required", {fmt::format("b{}", i)}}}}}});
    }
    says(all.dump(), "invalid_argument: #/allOf/11/anyOf: the schema comes to more than 4096 alternatives");
    // Each reference leads to two.
    Json twice = {{"$ref", "#/$defs/0"}, {"$defs", Json::object()}};
    for (int i = 0; i < 40; ++i) {
        const std::string next = fmt::format("#/$defs/{}", i + 1);
        twice["$defs"][std::to_string(i)] = {{"type", "array"}, {"prefixItems", {{{"$ref", next}}, {{"$ref", next}}}}};
    }
    twice["$defs"]["40"] = {{"const", 1}};
    QVERIFY(compile(twice.dump())->matches("[[],[[]]]"));
    // Large lists.
    Json many{{"enum", Json::array()}};
    for (int i = 0; i < 20'000; ++i) many["enum"].push_back(fmt::format("value {}", i));
    QVERIFY(compile(many.dump())->matches("\"value 12345\""));
    Json wide{{"properties", Json::object()}};
    for (int i = 0; i < 1'000; ++i) wide["properties"][fmt::format("p{}", i)] = {{"const", i}};
    check({{wide.dump(), {R"({"p0":0,"p7":7,"p999":999})"}, {R"({"p7":7,"p0":0})"}}});
    const text::SchemaLimits few{.depth = 128, .combinations = 4096, .states = 20};
    says(R"({"type":"array","items":{"type":"string"}})", "invalid_argument: The grammar needs more than 20 states: make the schema smaller", few);
    says(R"({"pattern":"^(a|b){500}$","minLength":1900,"maxLength":3000})", "invalid_argument: #/pattern: patterns and lengths together are too much: make the pattern simpler or the lengths smaller than 2000");
}
#endif

QTEST_GUILESS_MAIN(TestJsonSchema)
#include "tst_json_schema.moc"
