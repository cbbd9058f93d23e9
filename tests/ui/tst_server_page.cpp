#include <QClipboard>
#include <QLabel>
#include <QLineEdit>
#include <QSpinBox>

#include "tests/ui/support/window_fixture.h"
#include "ui/markdown/code_block.h"
#include "ui/theme/switch.h"

using namespace headroom;
using namespace headroom::test;
using namespace headroom::ui;

// The Server page by its object names, over a scripted server.
class TestServerPage : public QObject {
    Q_OBJECT

private slots:
    void init() { fixture_ = std::make_unique<WindowFixture>(); }
    void cleanup() { fixture_.reset(); }

    void one_switch() {
        open();
        QVERIFY(text("server_state").startsWith(QStringLiteral("Off.")));
        QVERIFY(!fixture_->find("server_address"));
        QVERIFY(script().starts().empty());
        fixture_->click("server_switch");
        QTRY_COMPARE(text("server_address"), QStringLiteral("http://127.0.0.1:8080"));
        QCOMPARE(text("server_state"), QStringLiteral("On, for programs on this computer. The model is called “builtin”."));
        QVERIFY(script().running());
        QCOMPARE(script().starts().size(), 1U);
        QCOMPARE(script().starts()[0].model_name, std::string("builtin"));
        QVERIFY(script().starts()[0].key.empty());
        fixture_->click("copy_server_address");
        QCOMPARE(QGuiApplication::clipboard()->text(), QStringLiteral("http://127.0.0.1:8080"));
        fixture_->click("server_switch");
        QTRY_VERIFY(!script().running());
        QVERIFY(text("server_state").startsWith(QStringLiteral("Off.")));
        // With the keyboard too.
        fixture_->find("server_switch")->setFocus();
        QTest::keyClick(fixture_->find("server_switch"), Qt::Key_Space);
        QTRY_VERIFY(script().running());
    }

    void it_is_on_again_at_the_next_start() {
        open();
        fixture_->click("server_switch");
        QTRY_VERIFY(script().running());
        fixture_->stop();
        QVERIFY(!script().running());
        fixture_->start();
        QTRY_VERIFY(script().running());
        QCOMPARE(script().starts().size(), 2U);
    }

    void it_waits_for_a_model_and_goes_with_it() {
        fixture_->start(false);
        fixture_->click("server_button");
        fixture_->click("server_switch");
        QCOMPARE(text("server_state"), QStringLiteral("On as soon as a model is loaded."));
        QVERIFY(script().starts().empty());
        fixture_->program->open_first_model({}, 0, 0);
        QTRY_VERIFY(script().running());
        // Another model: the server has let go of the first one before the second is loaded.
        fixture_->script->hold();
        fixture_->window().open_model(QStringLiteral("/models/other.gguf"));
        QTRY_COMPARE(fixture_->script->loads().size(), 2U);
        QVERIFY(!script().running());
        fixture_->script->go();
        QTRY_VERIFY(script().running());
        QCOMPARE(script().starts().size(), 2U);
        QCOMPARE(script().starts()[1].model_name, std::string("other"));
    }

    void a_key_is_shown_once() {
        open();
        QCOMPARE(text("server_key_state"), QStringLiteral("No key is asked for."));
        QVERIFY(!fixture_->find("server_key") && !fixture_->find("remove_server_key"));
        fixture_->click("server_switch");
        QTRY_VERIFY(script().running());
        fixture_->click("new_server_key");
        const QString key = fixture_->find<QLineEdit>("server_key")->text();
        QVERIFY(key.size() >= 32);
        fixture_->click("copy_server_key");
        QCOMPARE(QGuiApplication::clipboard()->text(), key);
        QTRY_COMPARE(script().starts().size(), 2U);
        QCOMPARE(script().starts()[1].key, key.toStdString());
        QTRY_VERIFY(script().running());
        fixture_->click("log_button");
        fixture_->click("server_button");
        QVERIFY(!fixture_->find("server_key"));
        QCOMPARE(text("server_key_state"), QStringLiteral("A key is asked for."));
        fixture_->click("new_server_key");
        QVERIFY(fixture_->find<QLineEdit>("server_key")->text() != key);
        fixture_->click("remove_server_key");
        QTRY_VERIFY(!script().starts().empty() && script().starts().back().key.empty() && script().running());
        QCOMPARE(text("server_key_state"), QStringLiteral("No key is asked for."));
    }

    void port_and_origins() {
        open();
        fixture_->click("server_switch");
        QTRY_VERIFY(script().running());
        auto* port = fixture_->find<QSpinBox>("server_port");
        port->setFocus();
        port->selectAll();
        QTest::keyClicks(port, QStringLiteral("9090"));
        QTest::keyClick(port, Qt::Key_Return);
        QTRY_COMPARE(text("server_address"), QStringLiteral("http://127.0.0.1:9090"));
        auto* origins = fixture_->find<QLineEdit>("server_origins");
        origins->setFocus();
        QTest::keyClicks(origins, QStringLiteral("https://a.example,  http://b.example:3000"));
        QTest::keyClick(origins, Qt::Key_Return);
        QTRY_COMPARE(script().starts().back().origins, (std::vector<std::string>{"https://a.example", "http://b.example:3000"}));
        QCOMPARE(script().starts().back().port, 9090);
        QVERIFY(example().contains(QStringLiteral("http://127.0.0.1:9090/v1/chat/completions")));
    }

    void what_goes_wrong_is_said() {
        script().set_error(Error{ErrorKind::io, "Port 8080 is in use by another program: choose another one"});
        open();
        fixture_->click("server_switch");
        QTRY_COMPARE(text("server_state"), QStringLiteral("Port 8080 is in use by another program: choose another one"));
        script().set_error({});
        fixture_->find<QSpinBox>("server_port")->setValue(8081);
        QTRY_COMPARE(text("server_address"), QStringLiteral("http://127.0.0.1:8081"));
    }

    void requests_are_listed_and_ended() {
        server::RequestRecord running, done;
        running.number = 7;
        running.action = "POST /v1/chat/completions";
        running.stage = "answering";
        running.completion_tokens = 12;
        running.seconds = 1.5;
        running.completion_tps = 8;
        done.number = 6;
        done.action = "GET /v1/models";
        done.stage = "done";
        done.status = 200;
        script().set_requests({running}, {done});
        open();
        QVERIFY(fixture_->find("server_request_none") && fixture_->find("server_recent_none"));
        fixture_->click("server_switch");
        QTRY_COMPARE(text("server_request_state"), QStringLiteral("answers, 12 tokens"));
        QVERIFY(text("server_request_what").endsWith(QStringLiteral("POST /v1/chat/completions")));
        QVERIFY(text("server_request_speed").contains(QStringLiteral("tok/s, 1")));
        QCOMPARE(text("server_recent_state"), QStringLiteral("200"));
        QVERIFY(!fixture_->find("server_request_none") && !fixture_->find("server_recent_cancel"));
        fixture_->click("server_request_cancel");
        QTRY_COMPARE(script().cancelled(), std::vector<std::uint64_t>{7});
        QTRY_VERIFY(fixture_->find("server_request_none"));
    }

private:
    ServerScript& script() const { return *fixture_->server; }
    void open() {
        fixture_->start();
        fixture_->click("server_button");
    }
    QString text(const char* name) const {
        const auto* label = fixture_->find<QLabel>(name);
        return label ? label->text() : QString();
    }
    QString example() const {
        const auto* block = fixture_->window().findChild<QWidget*>(QStringLiteral("server_page"))->findChild<CodeBlock*>();
        return block ? block->code() : QString();
    }

    std::unique_ptr<WindowFixture> fixture_;
};

QTEST_MAIN(TestServerPage)
#include "tst_server_page.moc"
