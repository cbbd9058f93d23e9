#include <QTest>

#include "tests/cli/cli_process.h"

using namespace headroom::test;

// Help, versions, wrong usage, files that are not there or damaged: exit codes and where things are told.
class TestCliUsage : public QObject {
    Q_OBJECT

private:
    Cli cli_;

private slots:
    void version() {
        const auto result = cli_.run({"--version"});
        QCOMPARE(result.code, 0);
        QCOMPARE(result.out, QByteArray("headroom-cli 0.1.0\n"));
        QCOMPARE(result.error, QByteArray());
    }

    void help() {
        const auto all = cli_.run({"--help"});
        QCOMPARE(all.code, 0);
        QCOMPARE(all.error, QByteArray());
        for (const char* command : {"chat", "complete", "tokenize", "detokenize", "template", "inspect", "eval", "perplexity", "bench"}) {
            QVERIFY2(all.out.contains(QByteArray("\n  ") + command + ' '), command);
            const auto one = cli_.run({command, "--help"});
            QCOMPARE(one.code, 0);
            QVERIFY2(one.out.contains("--json") && one.out.contains(command), command);
        }
    }

    void wrong_usage_data() {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<QByteArray>("told");
        const auto row = [](const QStringList& arguments, const char* told) {
            QTest::newRow(qPrintable(arguments.join(' '))) << arguments << QByteArray(told);
        };
        row({}, "Name a command");
        row({"dance"}, "no command \"dance\"");
        row({"chat", "--colour"}, "--colour");
        row({"chat", "-p"}, "--prompt");
        row({"chat", "-p", "x", "--temp", "warm"}, "--temp");
        row({"chat", "-p", "x", "--temp", "-1"}, "temperature");
        row({"chat", "-p", "x", "--top-p", "2"}, "top-p");
        row({"chat", "-p", "x", "--threads", "0"}, "--threads");
        row({"chat", "-p", "x", "--ctx", "-5"}, "--ctx");
        row({"chat", "-p", "x", "--seed", "a"}, "--seed");
        row({"complete", "-p", ""}, "empty");
        row({"detokenize"}, "IDS");
        row({"detokenize", "x"}, "IDS");
        row({"template"}, "--context");
        row({"eval"}, "--tokens");
        row({"perplexity"}, "FILE");
        row({"bench", "-n", "0"}, "--decode-tokens");
        row({"bench", "-p", "100", "--ctx", "100"}, "do not fit");
    }
    void wrong_usage() {
        QFETCH(QStringList, arguments);
        QFETCH(QByteArray, told);
        const auto result = cli_.run(arguments);
        QCOMPARE(result.code, 2);
        QCOMPARE(result.out, QByteArray());
        QVERIFY2(result.error.startsWith("headroom-cli: ") && result.error.contains(told), result.error.constData());
    }

    void impossible_data() {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<QByteArray>("told");
        const auto row = [](const QStringList& arguments, const char* told) {
            QTest::newRow(qPrintable(arguments.join(' '))) << arguments << QByteArray(told);
        };
        row({"inspect", "no-such-model"}, "no-such-model");
        row({"chat", "-m", "no-such-model", "-p", "x"}, "no-such-model");
        row({"chat", "-p", "x", "--device", "cuda:0"}, "cuda:0");
        row({"tokenize", "--file", "no-such-file"}, "no-such-file");
        row({"detokenize", "8192"}, "8192");
        row({"template", "--context", "no-such-file"}, "no-such-file");
        row({"eval", "--tokens", "no-such-file"}, "no-such-file");
        row({"perplexity", "no-such-file"}, "no-such-file");
        row({"chat", "--ctx", "8", "-p", "a question of more than eight tokens, I think"}, "context holds 8");
    }
    void impossible() {
        QFETCH(QStringList, arguments);
        QFETCH(QByteArray, told);
        const auto result = cli_.run(arguments);
        QCOMPARE(result.code, 1);
        QCOMPARE(result.out, QByteArray());
        QVERIFY2(result.error.startsWith("headroom-cli: ") && result.error.contains(told), result.error.constData());
        QCOMPARE(result.error.count('\n'), 1);  // one line
    }

    void broken_files() {
        const QString empty = cli_.write("empty.gguf", "");
        const QString noise = cli_.write("noise.gguf", QByteArray(1000, 'x'));
        const QString short_one = cli_.write("short.gguf", QByteArray("GGUF\3\0\0\0", 8));
        for (const QString& file : {empty, noise, short_one}) {
            for (const char* command : {"inspect", "chat", "tokenize"}) {
                QStringList arguments{command, "-m", file};
                if (command == QByteArray("chat")) arguments << "-p";
                if (command != QByteArray("inspect")) arguments << "x";
                const auto result = cli_.run(arguments);
                QCOMPARE(result.code, 1);
                QCOMPARE(result.out, QByteArray());
                QVERIFY2(result.error.contains(file.section('/', -1).toUtf8()), result.error.constData());
                QCOMPARE(result.error.count('\n'), 1);
            }
        }
        const auto refused = [&](const QByteArray& content, const char* told) {
            const auto result = cli_.run({"eval", "--tokens", cli_.write("tokens.json", content)});
            QCOMPARE(result.code, 1);
            QVERIFY2(result.error.contains(told), result.error.constData());
        };
        refused("{", "not JSON");
        refused("[1]", "expected an object");
        refused("{}", "\"tokens\"");
        refused(R"({"tokens": [1, "2"]})", "element 1 of \"tokens\"");
        refused(R"({"tokens": [1, -2]})", "element 1 of \"tokens\"");
        refused(R"({"tokens": [1, 2.5]})", "element 1 of \"tokens\"");
        refused(R"({"tokens": [1, 99999999999999]})", "element 1 of \"tokens\"");
        refused(R"({"tokens": [1], "positions": 0})", "\"positions\"");
        refused(R"({"tokens": []})", "empty");
        refused(R"({"tokens": [1], "positions": [1]})", "position 1");
        refused(R"({"tokens": [8192]})", "8192");
        QCOMPARE(cli_.run({"perplexity", cli_.write("a.txt", "a")}).code, 1);
    }

    void model_folder() {
#ifdef Q_OS_WIN
        QSKIP("the folder of the person who runs the tests is left alone");
#endif
        const auto before = cli_.run({"tokenize", "-m", "mine", "x"});
        QCOMPARE(before.code, 1);
        QVERIFY(QFile::copy(QCoreApplication::applicationDirPath() + "/model/guide-q4_k_m.gguf", cli_.model_folder() + "/mine.gguf"));
        for (const char* name : {"mine", "mine.gguf"}) {
            const auto result = cli_.run({"tokenize", "-m", name, "Hello"});
            QCOMPARE(result.code, 0);
            QCOMPARE(result.out, QByteArray("1091\n"));
        }
        const auto wrong = cli_.run({"tokenize", "-m", "yours", "x"});
        QCOMPARE(wrong.code, 1);
        QVERIFY2(wrong.error.contains("mine"), wrong.error.constData());
    }
};

QTEST_GUILESS_MAIN(TestCliUsage)
#include "tst_cli_usage.moc"
