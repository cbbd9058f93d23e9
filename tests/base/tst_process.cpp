#include <QTemporaryDir>
#include <QTest>

#include <cstdlib>
#include <thread>

#include "core/base/paths.h"
#include "core/base/process.h"
#include "core/base/system.h"

using namespace headroom;
using namespace std::chrono_literals;

namespace {

// What this executable does when it is started as a child: tst_process --child WHAT …
int child(int argc, char** argv) {
    const std::string what = argc > 2 ? argv[2] : "";
    if (what == "echo") {
        for (int i = 3; i < argc; ++i) write_standard_output(std::string(argv[i]) + "\n");
        return 7;
    }
    if (what == "many") {
        for (int i = 0; i < 1000; ++i) write_standard_output(std::string(1000, 'x'));
        return 0;
    }
    write_standard_output("begun\n");
    if (what == "crash") std::abort();
    if (what == "hang") std::this_thread::sleep_for(10min);
    return 0;
}

ChildCommand command(std::vector<std::string> arguments, std::chrono::milliseconds limit = 20s) {
    arguments.insert(arguments.begin(), "--child");
    return {.program = program_file(), .arguments = std::move(arguments), .time_limit = limit};
}

}  // namespace

class TestProcess : public QObject {
    Q_OBJECT
private slots:
    void passesArgumentsAndOutput() {
        const auto result = run_child(command({"echo", "a b", "\"q\\\"", "", "c\\", "größe"}));
        QVERIFY2(result.has_value(), result ? "" : result.error().message.c_str());
        QCOMPARE(result->end, ChildResult::End::exited);
        QCOMPARE(result->code, 7);
#ifdef _WIN32
        QVERIFY(result->output.starts_with("a b\n\"q\\\"\n\nc\\\n"));  // main's argv holds the code page's characters there
#else
        QCOMPARE(result->output, std::string("a b\n\"q\\\"\n\nc\\\ngröße\n"));
#endif
        QCOMPARE(describe_end(*result, 20s), std::string("ended with code 7"));
    }
    void keepsWhatFitsAndReadsTheRest() {
        auto many = command({"many"});
        many.output_limit = 1500;
        const auto result = run_child(many);
        QVERIFY(result.has_value());
        QCOMPARE(result->code, 0);
        QCOMPARE(result->output.size(), std::size_t(1500));
    }
    void endsAChildThatHangs() {
        // The limit leaves a slow machine (and wine) the time to start the child.
        const auto result = run_child(command({"hang"}, 3s));
        QVERIFY(result.has_value());
        QCOMPARE(result->end, ChildResult::End::timed_out);
        QCOMPARE(result->output, std::string("begun\n"));
        QVERIFY2(result->seconds >= 3 && result->seconds < 15, std::to_string(result->seconds).c_str());
        QCOMPARE(describe_end(*result, 3s), std::string("did not finish in 3 s"));
    }
    void endsAChildWhenAsked() {
        std::stop_source stop;
        auto hang = command({"hang"});
        hang.stop = stop.get_token();
        std::string came;
        hang.on_output = [&](std::string_view output) {  // told while the child runs
            came += output;
            stop.request_stop();
        };
        const auto result = run_child(hang);
        QVERIFY(result.has_value());
        QCOMPARE(result->end, ChildResult::End::stopped);
        QCOMPARE(came, std::string("begun\n"));
        QCOMPARE(result->output, came);
        QVERIFY2(result->seconds < 15, std::to_string(result->seconds).c_str());
        QCOMPARE(describe_end(*result, 20s), std::string("was stopped"));
    }
    void reportsACrash() {
        const auto result = run_child(command({"crash"}));
        QVERIFY(result.has_value());
        QVERIFY(result->output.starts_with("begun\n"));
#ifdef _WIN32
        QVERIFY(result->end == ChildResult::End::crashed || result->code == 3);  // abort() of the C runtime ends with 3
#else
        QCOMPARE(describe_end(*result, 20s), std::string("crashed (signal 6, Aborted)"));
#endif
    }
    void absentProgram() {
        const auto result = run_child({.program = program_folder() / "no-such-program", .arguments = {}});
        QVERIFY(!result);
        QVERIFY(result.error().message.find("no-such-program") != std::string::npos);
    }
    void openFiles() {
        const auto count = open_file_count();
        const auto limit = open_file_limit();
        QCOMPARE(count.has_value(), limit.has_value());
        if (!count) return;
        QTemporaryDir folder;
        QFile file(folder.filePath("x"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        QCOMPARE(*open_file_count(), *count + 1);
        QCOMPARE(raise_open_file_limit(1)->soft, limit->soft);  // never lowered
        QCOMPARE(raise_open_file_limit(limit->hard)->soft, limit->hard);
    }
    void writesFilesWhole() {
        QTemporaryDir folder;
        const auto path = from_utf8(folder.path().toStdString()) / "a" / "b.json";
        QVERIFY(write_file(path, "one").has_value());
        QVERIFY(write_file(path, "two").has_value());
        QCOMPARE(*read_file(path, 100), std::string("two"));
        QCOMPARE(QDir(folder.filePath("a")).entryList(QDir::Files).size(), 1);
        QVERIFY(!write_file(path / "c", "x"));
    }
};

int main(int argc, char** argv) {
    if (argc > 1 && std::string(argv[1]) == "--child") return child(argc, argv);
    QCoreApplication app(argc, argv);
    TestProcess test;
    return QTest::qExec(&test, argc, argv);
}
#include "tst_process.moc"
