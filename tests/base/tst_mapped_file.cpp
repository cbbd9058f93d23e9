#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#ifndef Q_OS_WIN
#include <sys/stat.h>
#endif

#include "core/base/mapped_file.h"
#include "core/base/paths.h"

using namespace headroom;

class TestMappedFile : public QObject {
    Q_OBJECT
private slots:
    void readsAFileWithANameOutsideAscii() {
        QTemporaryDir folder;
        const QString name = folder.filePath(QString::fromUtf8("größe 模型.bin"));
        QFile out(name);
        QVERIFY(out.open(QIODevice::WriteOnly));
        out.write("hello");
        out.close();
        auto file = MappedFile::open(from_utf8(name.toStdString()));
        QVERIFY2(file.has_value(), file ? "" : file.error().message.c_str());
        QCOMPARE(file->bytes().size(), std::size_t(5));
        QCOMPARE(static_cast<char>(file->bytes()[4]), 'o');
        file->will_need(0, 100);
        file->drop(3, 100);
        file->drop(100, 1);
        QCOMPARE(static_cast<char>(file->bytes()[0]), 'h');  // dropped pages come back from the file
        MappedFile moved = std::move(*file);
        QCOMPARE(moved.bytes().size(), std::size_t(5));
        QVERIFY(file->bytes().empty());
    }
    void emptyFile() {
        QTemporaryDir folder;
        QFile out(folder.filePath("empty"));
        QVERIFY(out.open(QIODevice::WriteOnly));
        out.close();
        const auto file = MappedFile::open(from_utf8(out.fileName().toStdString()));
        QVERIFY(file.has_value());
        QVERIFY(file->bytes().empty());
    }
    void absentFileAndFolder() {
        QTemporaryDir folder;
        const auto absent = MappedFile::open(from_utf8(folder.filePath("nothing").toStdString()));
        QVERIFY(!absent);
        QCOMPARE(absent.error().kind, ErrorKind::not_found);
        QVERIFY(absent.error().message.find("nothing") != std::string::npos);
        const auto path = folder.path().toStdString();
        const auto directory = MappedFile::open(from_utf8(path));
        QVERIFY(!directory);
        QCOMPARE(directory.error().kind, ErrorKind::invalid_argument);
        QCOMPARE(directory.error().message, to_utf8(from_utf8(path)) + ": is not a regular file");
    }
    void aDevice() {
#ifdef Q_OS_WIN
        const std::string path = "NUL";
#else
        const std::string path = "/dev/null";
#endif
        const auto device = MappedFile::open(path);
        QVERIFY(!device);
        QCOMPARE(device.error().kind, ErrorKind::invalid_argument);
        QCOMPARE(device.error().message, path + ": is not a regular file");
    }
#ifndef Q_OS_WIN
    // A pipe that nobody writes to: an error at once, where a plain open would wait for ever.
    void aPipe() {
        QTemporaryDir folder;
        const auto path = folder.filePath("pipe").toStdString();
        QCOMPARE(::mkfifo(path.c_str(), 0600), 0);
        const auto pipe = MappedFile::open(path);
        QVERIFY(!pipe);
        QCOMPARE(pipe.error().kind, ErrorKind::invalid_argument);
        QCOMPARE(pipe.error().message, path + ": is not a regular file");
    }
    void aNameThatIsNoText() {
        const auto absent = MappedFile::open("/absent/\xFF\n.gguf");
        QVERIFY(!absent);
        QCOMPARE(absent.error().message, std::string("/absent/\\xFF\\x0A.gguf: cannot be opened: No such file or directory"));
    }
#endif
};

QTEST_GUILESS_MAIN(TestMappedFile)
#include "tst_mapped_file.moc"
