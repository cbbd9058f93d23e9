#include <QTemporaryDir>
#include <QTest>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/base/paths.h"

using namespace headroom;

class TestPaths : public QObject {
    Q_OBJECT
    QTemporaryDir folder_;
    std::filesystem::path in_folder(const char* name) const { return from_utf8(folder_.path().toStdString()) / from_utf8(name); }

private slots:
    void namesOutsideAscii() {
        const std::string name = "größe/模型 😀.gguf";
        QCOMPARE(to_utf8(from_utf8(name)), name);
        QCOMPARE(to_utf8(from_utf8(name).filename()), std::string("模型 😀.gguf"));
        QCOMPARE(to_utf8(from_utf8("")), std::string());
    }
    // Neither throws; on Linux a name is bytes and every one of them survives.
    void bytesThatAreNoText() {
        const std::string bytes = "a\xFF\xC3";
#ifdef Q_OS_WIN
        QCOMPARE(to_utf8(from_utf8(bytes)), std::string("a\xEF\xBF\xBD\xEF\xBF\xBD"));
        QCOMPARE(to_utf8(std::filesystem::path(std::wstring{L'a', wchar_t(0xD800), L'b'})), std::string("a\xEF\xBF\xBD""b"));
#else
        QCOMPARE(to_utf8(from_utf8(bytes)), bytes);
#endif
    }
    void userFolders() {
        QVERIFY(user_data_folder().is_absolute());
        QCOMPARE(default_model_folder(), user_data_folder() / "models");
#ifndef Q_OS_WIN
        qputenv("XDG_DATA_HOME", "/data of the user");
        QCOMPARE(to_utf8(user_data_folder()), std::string("/data of the user/headroom"));
        qputenv("XDG_DATA_HOME", "relative/is/ignored");  // as the XDG base directory specification says
        qputenv("HOME", "/home/somebody");
        QCOMPARE(to_utf8(user_data_folder()), std::string("/home/somebody/.local/share/headroom"));
        qunsetenv("XDG_DATA_HOME");
        QCOMPARE(to_utf8(user_data_folder()), std::string("/home/somebody/.local/share/headroom"));
        qunsetenv("HOME");
        QVERIFY(user_data_folder().is_absolute());
        QVERIFY(to_utf8(user_data_folder()).ends_with("/.local/share/headroom"));
#endif
    }
    void theProgram() {
        QVERIFY(std::filesystem::is_regular_file(program_file()));
        QCOMPARE(to_utf8(program_file().stem()), std::string("tst_paths"));
        QVERIFY(std::filesystem::equivalent(program_folder(), program_file().parent_path()));
    }
    void readsWholeFiles() {
        const auto path = in_folder("größe.bin");
        const std::string contents("a\r\n\0\xFF", 5);
        QVERIFY(write_file(path, contents).has_value());
        QCOMPARE(*read_file(path, 5), contents);
        QVERIFY(write_file(path, "").has_value());
        QCOMPARE(*read_file(path, 0), std::string());
    }
    void refusesToRead() {
        const auto path = in_folder("größe.bin");
        QVERIFY(write_file(path, "four").has_value());
        const auto large = read_file(path, 3);
        QVERIFY(!large);
        QCOMPARE(large.error().kind, ErrorKind::invalid_file);
        QCOMPARE(large.error().message, to_utf8(path) + ": is 4 B large, but at most 3 B are expected here");
        const auto absent = read_file(in_folder("absent"), 100);
        QVERIFY(!absent);
        QCOMPARE(absent.error().kind, ErrorKind::not_found);
        QCOMPARE(absent.error().message, to_utf8(in_folder("absent")) + ": cannot be read: there is no such file");
        const auto folder = read_file(from_utf8(folder_.path().toStdString()), 1 << 20);
        QVERIFY(!folder);
        QCOMPARE(folder.error().kind, ErrorKind::io);
    }
    void writesWholeFilesOrNone() {
        const auto path = in_folder("new folder/inner/file");
        QVERIFY(write_file(path, "one").has_value());
        QVERIFY(write_file(path, "three").has_value());
        QCOMPARE(*read_file(path, 100), std::string("three"));
        // Nothing else is left behind.
        QCOMPARE(std::distance(std::filesystem::directory_iterator(path.parent_path()), std::filesystem::directory_iterator()),
                 std::ptrdiff_t(1));
        // In place of a folder nothing can be written; the folder and its file stay.
        const auto refused = write_file(path.parent_path(), "x");
        QVERIFY(!refused);
        QCOMPARE(refused.error().kind, ErrorKind::io);
        QVERIFY(refused.error().message.starts_with(to_utf8(path.parent_path()) + ": cannot be written"));
        QCOMPARE(*read_file(path, 100), std::string("three"));
        QCOMPARE(std::distance(std::filesystem::directory_iterator(in_folder("new folder")), std::filesystem::directory_iterator()),
                 std::ptrdiff_t(1));
        // A file where a folder is needed.
        QVERIFY(!write_file(path / "below a file", "x"));
    }
};

QTEST_GUILESS_MAIN(TestPaths)
#include "tst_paths.moc"
