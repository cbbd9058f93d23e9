#include <QProcess>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include <cstdio>

#include "ui/single_instance/single_instance.h"

using namespace headroom::ui;

class TestSingleInstance : public QObject {
    Q_OBJECT

private slots:
    void a_second_start_hands_its_arguments_over() {
        QTemporaryDir folder;
        SingleInstance first(folder.path());
        QVERIFY(first.claim({}));
        QSignalSpy again(&first, &SingleInstance::started_again);
        QProcess second;
        second.start(QCoreApplication::applicationFilePath(),
                     {QStringLiteral("--second"), folder.path(), QStringLiteral("/models/\u00e4 b.gguf"), QStringLiteral("4096")});
        QTRY_COMPARE_WITH_TIMEOUT(second.state(), QProcess::NotRunning, 20'000);
        QCOMPARE(second.exitCode(), 42);  // it was not the first
        QTRY_COMPARE(again.size(), 1);
        QCOMPARE(again[0][0].toStringList(), QStringList({QStringLiteral("/models/\u00e4 b.gguf"), QStringLiteral("4096")}));
    }

    void another_folder_is_another_program() {
        QTemporaryDir one;
        QTemporaryDir two;
        SingleInstance a(one.path());
        SingleInstance b(two.path());
        QVERIFY(a.claim({}));
        QVERIFY(b.claim({}));
    }

    void the_place_is_free_when_the_first_ends() {
        QTemporaryDir folder;
        {
            SingleInstance first(folder.path());
            QVERIFY(first.claim({}));
        }
        QProcess killed;
        killed.start(QCoreApplication::applicationFilePath(), {QStringLiteral("--stay"), folder.path()});
        QVERIFY(killed.waitForReadyRead(20'000));
        killed.kill();
        QVERIFY(killed.waitForFinished());
        SingleInstance second(folder.path());
        QVERIFY(second.claim({}));
    }
};

int main(int argc, char** argv) {
    QCoreApplication application(argc, argv);
    const QStringList arguments = QCoreApplication::arguments();
    if (arguments.value(1) == QLatin1String("--second")) return SingleInstance(arguments.value(2)).claim(arguments.sliced(3)) ? 0 : 42;
    if (arguments.value(1) == QLatin1String("--stay")) {
        SingleInstance instance(arguments.value(2));
        if (!instance.claim({})) return 1;
        puts("ready");
        fflush(stdout);
        return QCoreApplication::exec();
    }
    TestSingleInstance test;
    return QTest::qExec(&test, argc, argv);
}

#include "tst_single_instance.moc"
