// Chat templates of real models, byte for byte; what a user sees when one fails; and the limits on hostile ones.

#include <QTest>

#include <chrono>
#include <fstream>

#include "core/base/paths.h"
#include "core/text/chat_template.h"
#include "tests/support/shared_data.h"

using namespace headroom;
using text::ChatTemplate;
using text::Json;

namespace {

const std::chrono::local_seconds kNow = std::chrono::local_days(std::chrono::year{2026} / 11 / 29) + std::chrono::hours(12);

QByteArray bytes(std::string_view text) { return {text.data(), static_cast<qsizetype>(text.size())}; }

Result<std::string> render(const std::string& source, const Json& context = Json::object(), const text::TemplateLimits& limits = {}) {
    HR_TRY(const auto parsed, ChatTemplate::parse(source, limits));
    return parsed.render(context, kNow);
}

}  // namespace

class TestChatTemplate : public QObject {
    Q_OBJECT

private slots:
    void real_templates_data();
    void real_templates();
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
                << bytes(*source) << bytes(context.dump()) << bytes(row[is_error ? "error" : "text"].get<std::string>()) << is_error;
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

QTEST_GUILESS_MAIN(TestChatTemplate)
#include "tst_chat_template.moc"
