// Templates whose results are those of Python's Jinja: tests/text/jinja_cases.

#include <QTest>

#include <chrono>
#include <fstream>

#include "core/text/chat_template.h"
#include "tests/support/shared_data.h"

using namespace headroom;
using text::ChatTemplate;
using text::Json;

class TestJinjaCases : public QObject {
    Q_OBJECT

private slots:
    void cases_data() {
        QTest::addColumn<QString>("file");
        for (const char* name : {"syntax", "filters", "strings"})
            QTest::newRow(name) << QString("tests/text/jinja_cases/%1.json").arg(name);
    }

    void cases() {
        QFETCH(QString, file);
        std::ifstream stream(test::source_file(file.toStdString()), std::ios::binary);
        const Json data = Json::parse(stream);
        const std::chrono::local_seconds now =
            std::chrono::local_days(std::chrono::year{2026} / 11 / 29) + std::chrono::hours(12);
        QStringList wrong;
        for (const Json& row : data["cases"]) {
            const auto source = row[0].get<std::string>();
            const auto parsed = ChatTemplate::parse(source);
            const Result<std::string> text = parsed ? parsed->render(data["context"], now) : std::unexpected(parsed.error());
            const Json seen = text ? Json(*text) : Json();
            if (seen == row[1]) continue;
            wrong += QString::fromStdString(Json(source).dump() + "\n    expected " + row[1].dump() + "\n    seen     " +
                                            (text ? seen.dump() : text.error().message));
        }
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
        QVERIFY(data["cases"].size() > 500);
    }
};

QTEST_GUILESS_MAIN(TestJinjaCases)
#include "tst_jinja_cases.moc"
