// Chat templates of real models, byte for byte; what a user sees when one fails; and the limits on hostile ones.

#include <QTest>

#include <chrono>
#include <fstream>
#include <thread>

#include "core/base/paths.h"
#include "core/text/chat_template.h"
#include "tests/support/shared_data.h"

using namespace headroom;
using text::ChatTemplate;
using text::Json;

namespace {

const std::chrono::local_seconds kNow = std::chrono::local_days(std::chrono::year{2026} / 11 / 29) + std::chrono::hours(12);

QByteArray bytes(std::string_view text) { return {text.data(), static_cast<qsizetype>(text.size())}; }

Result<std::string> render(const std::string& source, const Json& context = Json::object(),
                           const text::TemplateLimits& limits = {}) {
    HR_TRY(const auto parsed, ChatTemplate::parse(source, limits));
    return parsed.render(context, kNow);
}

}  // namespace

class TestChatTemplate : public QObject {
    Q_OBJECT

private slots:
    void real_templates_data();
    void real_templates();
    void errors_name_the_line_data();
    void errors_name_the_line();
    void other_templates_are_refused();
    void raised_words_come_through();
    void hostile_templates_end_data();
    void hostile_templates_end();
    void nothing_is_left_of_circles();
    void deep_data_is_refused();
    void plain_marks_pass();
    void bytes_that_are_no_text();
    void dates();
    void one_template_in_many_threads();
    void a_long_conversation();
};

void TestChatTemplate::real_templates_data() {
    const auto folder = test::shared_data("testdata/templates");
    if (folder.empty()) QSKIP(test::missing_shared("testdata/templates"));
    QTest::addColumn<QByteArray>("source");
    QTest::addColumn<QByteArray>("context");
    QTest::addColumn<QByteArray>("expected");
    QTest::addColumn<bool>("is_error");
    std::ifstream stream(folder / "expected.json", std::ios::binary);
    const Json all = Json::parse(stream);
    for (const auto& [name, rows] : all["expected"].items()) {
        const auto source = read_file(folder / from_utf8(name), 1 << 20);
        QVERIFY2(source, name.c_str());
        for (const auto& [variant, row] : rows.items()) {
            Json context = all["common"];
            context.update(all["cases"][variant]);
            const bool is_error = row.contains("error");
            QTest::newRow((name + " " + variant).c_str())
                << bytes(*source) << bytes(context.dump()) << bytes(row[is_error ? "error" : "text"].get<std::string>())
                << is_error;
        }
    }
}

void TestChatTemplate::real_templates() {
    QFETCH(QByteArray, source);
    QFETCH(QByteArray, context);
    QFETCH(QByteArray, expected);
    QFETCH(bool, is_error);
    const auto rendered = render(source.toStdString(), Json::parse(context.toStdString()));
    if (is_error) {
        QVERIFY2(!rendered, rendered ? rendered->c_str() : "");
        QCOMPARE(rendered.error().kind, ErrorKind::template_failed);
        // The template's own words come through; other failures have words of ours.
        if (expected.startsWith("TemplateError: ")) QCOMPARE(bytes(rendered.error().message), expected.mid(15));
        return;
    }
    QVERIFY2(rendered, rendered ? "" : rendered.error().message.c_str());
    QCOMPARE(bytes(*rendered), expected);
}

void TestChatTemplate::errors_name_the_line_data() {
    QTest::addColumn<QByteArray>("source");
    QTest::addColumn<QByteArray>("message");
    QTest::newRow("unknown variable's attribute")
        << QByteArray("a\n{{ x.y }}") << QByteArray("chat template, line 2: 'x' is undefined");
    QTest::newRow("behind a loop") << QByteArray("{% for i in [1] %}\n{{ i }}\n{% endfor %}\n{{ 1 + 'a' }}")
                                   << QByteArray("chat template, line 4: '+' is not possible between a int and a str");
    QTest::newRow("in a macro") << QByteArray("{% macro m() %}\n\n{{ none.x.y }}{% endmacro %}\n\n{{ m() }}")
                                << QByteArray("chat template, line 3: a None has no 'x'");
    QTest::newRow("behind a macro") << QByteArray("{% macro m() %}\n{% endmacro %}\n{{ m() + 1 }}")
                                    << QByteArray("chat template, line 3: '+' is not possible between a str and a int");
    QTest::newRow("over several lines") << QByteArray("{{ [1,\n2,\nq.z] }}")
                                        << QByteArray("chat template, line 3: 'q' is undefined");
    QTest::newRow("a tag without an end") << QByteArray("\n{% if x %}\n")
                                          << QByteArray("chat template, line 2: this 'if' has no end: 'endif' is missing");
    QTest::newRow("an open tag") << QByteArray("a\nb {{ x")
                                 << QByteArray("chat template, line 2: this tag has no end: '}}' is missing");
    QTest::newRow("an unknown filter") << QByteArray("\n\n{{ x|nope }}")
                                       << QByteArray("chat template, line 3: there is no filter named 'nope'");
    QTest::newRow("an unknown tag") << QByteArray("{% nope %}")
                                    << QByteArray("chat template, line 1: there is no tag named 'nope' here");
    QTest::newRow("a large number") << QByteArray("{{ 9223372036854775807 + 1 }}")
                                    << QByteArray("chat template, line 1: a number does not fit into 64 bits");
}

void TestChatTemplate::errors_name_the_line() {
    QFETCH(QByteArray, source);
    QFETCH(QByteArray, message);
    const auto rendered = render(source.toStdString());
    QVERIFY(!rendered);
    QCOMPARE(rendered.error().kind, ErrorKind::template_failed);
    QCOMPARE(bytes(rendered.error().message), message);
}

void TestChatTemplate::other_templates_are_refused() {
    for (const char* source : {"{% include 'x' %}", "{% extends 'x' %}", "{% import 'x' as y %}", "{% from 'x' import y %}"}) {
        const auto parsed = ChatTemplate::parse(source);
        QVERIFY(!parsed);
        QVERIFY(bytes(parsed.error().message).contains("a chat template is one file"));
    }
}

void TestChatTemplate::raised_words_come_through() {
    const auto rendered = render("{% if true %}\n{{ raise_exception('Only \"user\" — please') }}{% endif %}");
    QVERIFY(!rendered);
    QCOMPARE(bytes(rendered.error().message), QByteArray("Only \"user\" — please"));
}

void TestChatTemplate::hostile_templates_end_data() {
    QTest::addColumn<QByteArray>("source");
    const auto row = [](const char* name, const std::string& source) { QTest::newRow(name) << bytes(source); };
    const auto many = [](std::string_view part, int times) {
        std::string all;
        for (int i = 0; i < times; ++i) all += part;
        return all;
    };
    row("long text", "{{ 'x' * 10**9 }}");
    row("long list", "{{ [1] * 10**9 }}");
    row("long text, longest factor", "{{ 'x' * 9223372036854775807 }}");
    row("range", "{{ range(10**12)|list }}");
    row("loops in loops", "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}");
    row("replace", "{{ ('a' * 10**6)|replace('a', 'b' * 10**6) }}");
    row("replace of nothing", "{{ ('a' * 10**6).replace('', 'b' * 10**6) }}");
    row("join", "{{ ('b' * 10**6).join('a' * 10**6) }}");
    row("center", "{{ 'x'.center(10**12) }}");
    row("ljust", "{{ 'x'.ljust(10**18, '-') }}");
    row("zfill", "{{ '1'.zfill(10**12) }}");
    row("center filter", "{{ 'x'|center(10**12) }}");
    row("indent", "{{ ('a\\n' * 10**6)|indent(10**6) }}");
    row("indent of JSON", "{{ [[[1]]]|tojson(indent=10**10) }}");
    row("percent width", "{{ '%999999999999d' % 1 }}");
    row("percent precision", "{{ '%.999999999f' % 1.5 }}");
    row("percent star", "{{ '%*d' % (10**15, 1) }}");
    row("format width", "{{ '{:>999999999999}'.format('a') }}");
    row("format precision", "{{ '{:.999999999f}'.format(1.5) }}");
    row("expandtabs", "{{ '\\t'.expandtabs(10**12) }}");
    row("power", "{{ 10**10**10 }}");
    row("power of 2", "{{ 2**63 }}");
    row("least number negated", "{{ -(-9223372036854775807 - 1) }}");
    row("least number divided", "{{ (-9223372036854775807 - 1) // -1 }}");
    row("batch", "{{ [1]|batch(10**12, 0)|list }}");
    row("slices", "{{ [1]|slice(10**12)|list }}");
    row("wide date", "{{ strftime_now('%c' * 10**7) }}");
    row("endless macro", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}");
    row("endless macros",
        "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{% if true %}{{ a() }}{% endif %}{% endmacro %}{{ a() }}");
    row("endless caller",
        "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{{ caller() }}{% endmacro %}{% call m() %}{% endcall %}");
    row("endless loop", "{% for x in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}");
    row("macro through map", "{% macro m(x) %}{% set y = [1]|map('string')|list %}{{ m(y) }}{% endmacro %}{{ m(1) }}");
    row("list in list", "{% set ns = namespace(l=[]) %}{% for i in range(99999) %}{% set ns.l = [ns.l] %}{% endfor %}");
    row("tuple in tuple", "{% set ns = namespace(l=()) %}{% for i in range(99999) %}{% set ns.l = (ns.l,) %}{% endfor %}");
    row("dict in dict", "{% set ns = namespace(l={}) %}{% for i in range(99999) %}{% set ns.l = {'a': ns.l} %}{% endfor %}");
    row("wide and deep",
        "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(150) %}{% set ns.a = [ns.a, ns.a] %}"
        "{% set ns.b = [ns.b, ns.b] %}{% endfor %}{{ ns.a == ns.b }}");
    row("wide and deep key",
        "{% set ns = namespace(a=(1,)) %}{% for i in range(150) %}{% set ns.a = (ns.a, ns.a) %}{% endfor %}{{ {ns.a: 1} }}");
    row("wide and deep text",
        "{% set ns = namespace(a=[1]) %}{% for i in range(150) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}{{ ns.a }}");
    row("wide and deep JSON",
        "{% set ns = namespace(a=[1]) %}{% for i in range(150) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}{{ ns.a|tojson }}");
    row("circle printed", "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}");
    row("circle through a list printed", "{% set ns = namespace() %}{% set ns.a = [ns, ns] %}{{ ns }}");
    row("much memory",
        "{% set ns = namespace(l=[]) %}{% for i in range(9999) %}{% set ns.l = ns.l + ['x' * 10**7] %}{% endfor %}");
    row("many namespaces",
        "{% for i in range(99999) %}{% for j in range(999) %}{% set ns = namespace(a=i) %}{% endfor %}{% endfor %}");
    row("doubling text", "{% set ns = namespace(s='x') %}{% for i in range(64) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}");
    row("doubling block",
        "{% set ns = namespace(s='x') %}{% for i in range(64) %}{% set ns.s %}{{ ns.s }}{{ ns.s }}{% endset %}{% endfor %}");
    row("much output", "{% for i in range(99999) %}{{ 'x' * 1000 }}{% endfor %}");
    row("slow search", "{% set s = 'a' * 10**7 %}{% for i in range(99999) %}{{ ('a' * 5 * 10**6 ~ 'b') in s }}{% endfor %}");
    row("slow split", "{% set s = 'a' * 10**6 %}{% for i in range(99999) %}{{ s.split('a')|length }}{% endfor %}");
    row("slow characters",
        "{% set s = 'ä' * 10**6 %}{% for i in range(99999) %}{% for j in range(999) %}{{ s[999999] }}{% endfor %}{% endfor %}");
    row("parentheses", "{{ " + many("(", 20'000) + "1" + many(")", 20'000) + " }}");
    row("brackets", "{{ " + many("[", 20'000) + many("]", 20'000) + " }}");
    row("braces", "{{ " + many("{1:", 20'000) + "1" + many("}", 20'000) + " }}");
    row("nots", "{{ " + many("not ", 20'000) + "1 }}");
    row("signs", "{{ " + many("- ", 20'000) + "1 }}");
    row("elses", "{{ " + many("1 if 0 else ", 20'000) + "1 }}");
    row("ifs in ifs", many("{% if 1 %}", 20'000));
    row("for in for", many("{% for i in [1] %}", 20'000));
    row("macros in macros", many("{% macro m() %}", 20'000));
    row("subscripts", "{{ a" + many("[0]", 20'000) + " }}");
    row("subscripts in subscripts", "{{ " + many("a[", 20'000) + " }}");
    row("attributes", "{{ a" + many(".b", 20'000) + " }}");
    row("calls", "{{ a" + many("()", 20'000) + " }}");
    row("calls in calls", "{{ " + many("a(", 20'000) + " }}");
    row("filters", "{{ a" + many("|string", 20'000) + " }}");
    row("filters in filters", "{{ " + many("a|default(", 20'000) + " }}");
    row("tests in tests", "{{ " + many("a is eq(", 20'000) + " }}");
    row("targets", "{% set " + many("(", 20'000) + " }}");
}

void TestChatTemplate::hostile_templates_end() {
    QFETCH(QByteArray, source);
    // A fortieth of the steps: enough for any conversation, and quick in builds that check everything.
    text::TemplateLimits limits;
    limits.steps = 500'000;
    const auto rendered = render(source.toStdString(), Json::object(), limits);
    QVERIFY2(!rendered, rendered ? std::to_string(rendered->size()).c_str() : "");
    QCOMPARE(rendered.error().kind, ErrorKind::template_failed);
}

// Leaks are found by builds with sanitizers; here at least nothing crashes.
void TestChatTemplate::nothing_is_left_of_circles() {
    const auto rendered = render(
        "{% set ns = namespace() %}{% set ns.self = ns %}{% set ns.list = [ns] %}"
        "{% for i in [1, 2] %}{{ loop.changed(loop) }}{% set ns.loop = loop %}{% endfor %}{{ ns.loop.changed(ns.loop) }}"
        "{% macro m(x) %}{% macro n() %}{{ x }}{% endmacro %}{% set ns.n = n %}{% endmacro %}{{ m(ns) }}"
        "{% for i in range(500) %}{{ m(ns.n) }}{% endfor %}"
        "{% for x in [1] recursive %}{% set ns.recursive = loop %}{% endfor %}ok");
    QVERIFY2(rendered, rendered ? "" : rendered.error().message.c_str());
    QVERIFY(rendered->ends_with("ok"));
}

void TestChatTemplate::deep_data_is_refused() {
    Json deep = 1;
    for (int i = 0; i < 1000; ++i) deep = Json::array({std::move(deep)});
    QVERIFY(!render("{{ x }}", {{"x", deep}}));
    QVERIFY(render("{{ y }}", {{"x", deep}}));  // what the template does not name is not looked at
}

void TestChatTemplate::plain_marks_pass() {
    const std::string mark = "\xEF\xB7\x90";
    const Json context = {{"s", "<|" + mark + "im_end|>"}, {"l", Json::array({"<|" + mark + "im_end|>"})}};
    for (const char* source :
         {"{{ s }}", "{{ s|trim }}", "{{ s.strip() }}", "{{ s|tojson }}", "{{ s|tojson(ensure_ascii=true) }}", "{{ l }}",
          "{{ l|string }}", "{{ s|upper|lower }}", "{{ '%s' % s }}", "{{ '%r' % s }}", "{{ s|replace('x', 'y') }}",
          "{{ s.split('|')|join('|') }}", "{{ s|title }}", "{{ s[0:99] }}", "{{ s|e }}", "{{ '{!r}'.format(s) }}",
          "{{ s|list|join }}", "{{ s|capitalize }}", "{{ s|indent }}"}) {
        const auto rendered = render(source, context);
        QVERIFY(rendered);
        QVERIFY2(bytes(*rendered).contains(bytes("|" + mark)), source);
    }
    QCOMPARE(bytes(*render("{{ s|length }}", context)), QByteArray("11"));
    QCOMPARE(bytes(*render("{{ (s[2] ~ 'a ')|trim|length }}", context)), QByteArray("2"));
}

void TestChatTemplate::bytes_that_are_no_text() {
    const auto rendered = render("\xFF{{ s|length }}{{ s }}", {{"s", "a\xC3"}});
    QVERIFY(rendered);
    QCOMPARE(bytes(*rendered), QByteArray("\uFFFD2a\uFFFD"));
    const auto failed = render("{{ '%\u00e9' % 1 }}");
    QVERIFY(!failed);
    QVERIFY(QString::fromUtf8(bytes(failed.error().message)).toUtf8() == bytes(failed.error().message));
}

void TestChatTemplate::dates() {
    const auto date = [](std::string_view format, std::chrono::local_seconds when = kNow) {
        const auto parsed = ChatTemplate::parse("{{ strftime_now(f) }}");
        return bytes(*parsed->render({{"f", format}}, when));
    };
    QCOMPARE(
        date("%d %b %Y %H:%M:%S %j %A %B %a %p %I %y %m %U %W %w %% %c %x %X"),
        QByteArray(
            "29 Nov 2026 12:00:00 333 Sunday November Sun PM 12 26 11 48 47 0 % Sun Nov 29 12:00:00 2026 11/29/26 12:00:00"));
    QCOMPARE(date("%-d %e %F %T %D %R %h %u %V %G %g %C %k %l %P %r %^a %_m %-m %f|%z%Z"),
             QByteArray("29 29 2026-11-29 12:00:00 11/29/26 12:00 Nov 7 48 2026 26 20 12 12 pm 12:00:00 PM SUN 11 11 000000|"));
    const auto day = [](int year, unsigned month, unsigned of_month) {
        return std::chrono::local_seconds(std::chrono::local_days(std::chrono::year(year) / month / of_month));
    };
    QCOMPARE(date("%-d %e %j %U %W %V %G", day(2027, 1, 1)), QByteArray("1  1 001 00 00 53 2026"));
    QCOMPARE(date("%U %W %V %G %I %p", day(2024, 12, 30)), QByteArray("52 53 01 2025 12 AM"));
    QCOMPARE(date("100%"), QByteArray("100%"));
}

void TestChatTemplate::one_template_in_many_threads() {
    const auto parsed = ChatTemplate::parse(
        "{% macro m(x) %}{{ x ~ '!' }}{% endmacro %}{% for i in range(50) %}{{ m(n) }}{{ {'a': 'b'}['a'] }}{% endfor %}");
    QVERIFY(parsed);
    std::vector<std::string> results(4);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < results.size(); ++i) {
        threads.emplace_back([&, i] {
            for (int j = 0; j < 20; ++j) results[i] = parsed->render({{"n", i}}, kNow).value_or("");
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::size_t i = 0; i < results.size(); ++i) {
        std::string expected;
        for (int j = 0; j < 50; ++j) expected += std::to_string(i) + "!b";
        QCOMPARE(bytes(results[i]), bytes(expected));
    }
}

void TestChatTemplate::a_long_conversation() {
    Json messages = Json::array();
    std::string expected;
    for (int i = 0; i < 1000; ++i) {
        const std::string role = i % 2 == 0 ? "user" : "assistant";
        const std::string content = "Message " + std::to_string(i) + " " + std::string(500, 'x');
        messages.push_back({{"role", role}, {"content", "  " + content + "\n"}});
        expected += "<|im_start|>" + role + "\n" + content + "<|im_end|>\n";
    }
    const auto rendered = render(
        "{%- for message in messages %}\n    {{- '<|im_start|>' + message['role'] + '\\n' }}\n"
        "    {%- if message.role == 'user' or (message.role == 'assistant' and not message.tool_calls) %}\n"
        "        {{- message.content | trim + '<|im_end|>\\n' }}\n    {%- endif %}\n{%- endfor %}",
        {{"messages", messages}});
    QVERIFY2(rendered, rendered ? "" : rendered.error().message.c_str());
    QCOMPARE(bytes(*rendered), bytes(expected));
}

QTEST_GUILESS_MAIN(TestChatTemplate)
#include "tst_chat_template.moc"
