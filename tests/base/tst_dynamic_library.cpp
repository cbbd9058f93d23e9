#include <QTest>

#include "core/base/dynamic_library.h"

using namespace headroom;

class TestDynamicLibrary : public QObject {
    Q_OBJECT
private slots:
    void findsFunctions() {
#ifdef _WIN32
        const auto library = DynamicLibrary::open("kernel32.dll");
        const char* name = "GetTickCount64";
#else
        const auto library = DynamicLibrary::open("libc.so.6");
        const char* name = "getpid";
#endif
        QVERIFY2(library.has_value(), library ? "" : library.error().message.c_str());
        QVERIFY(library->symbol(name));
        QVERIFY(!library->symbol("no_such_function"));
    }
    void absentLibrary() {
        const auto library = DynamicLibrary::open("libno-such-library.so.9");
        QVERIFY(!library);
        QCOMPARE(library.error().kind, ErrorKind::not_found);
        QVERIFY(library.error().message.find("no-such-library") != std::string::npos);
        QVERIFY(!DynamicLibrary().symbol("x"));
    }
};

QTEST_GUILESS_MAIN(TestDynamicLibrary)
#include "tst_dynamic_library.moc"
