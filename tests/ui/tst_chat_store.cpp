#include <QElapsedTimer>
#include <QFile>
#include <QSignalSpy>
#include <QSqlQuery>
#include <QTemporaryDir>
#include <QTest>

#include <algorithm>

#include "core/base/paths.h"
#include "ui/store/chat_store.h"

using namespace headroom;
using namespace headroom::ui;

namespace {

Message message(qint64 conversation, qint64 parent, Role role, const QString& text) {
    Message m;
    m.conversation = conversation;
    m.parent = parent;
    m.role = role;
    m.text = text;
    return m;
}

std::filesystem::path path_of(const QTemporaryDir& folder) { return from_utf8(folder.path().toStdString()); }

QStringList damaged_files(const QTemporaryDir& folder) {
    return QDir(folder.path()).entryList({QStringLiteral("chats.damaged-*.sqlite")});
}

}  // namespace

class TestChatStore : public QObject {
    Q_OBJECT

private slots:
    void everything_is_kept() {
        QTemporaryDir folder;
        qint64 conversation = 0;
        qint64 answer = 0;
        {
            ChatStore store(path_of(folder));
            QCOMPARE(store.open(), QString());
            ConversationSettings settings;
            settings.system_prompt = QStringLiteral("Be brief. \u00e4\U0001F600");
            settings.sampling.temperature = 0.25F;
            settings.sampling.seed = 18'446'744'073'709'551'615U;
            settings.max_tokens = 77;
            conversation = store.add_conversation(QStringLiteral("Tides"), settings);
            const qint64 question = store.add_message(message(conversation, 0, Role::user, QStringLiteral("How?")));
            Message m = message(conversation, question, Role::assistant, {});
            m.state = MessageState::streaming;
            m.id = answer = store.add_message(m);
            m.text = QStringLiteral("The Moon.");
            m.state = MessageState::length;
            m.model = QStringLiteral("Guide");
            m.prompt_tokens = 10;
            m.completion_tokens = 3;
            m.tokens_per_second = 71.5;
            m.thinking_ms = 1200;
            store.update_message(m);
            store.set_leaf(conversation, answer);
        }
        ChatStore store(path_of(folder));
        QCOMPARE(store.open(), QString());
        const auto all = store.conversations();
        QCOMPARE(all.size(), 1U);
        QCOMPARE(all[0].title, QStringLiteral("Tides"));
        const ConversationSettings settings = store.settings(conversation);
        QCOMPARE(settings.system_prompt, QStringLiteral("Be brief. \u00e4\U0001F600"));
        QCOMPARE(settings.sampling.temperature, 0.25F);
        QCOMPARE(*settings.sampling.seed, 18'446'744'073'709'551'615U);
        QCOMPARE(settings.max_tokens, 77);
        QCOMPARE(store.leaf(conversation), answer);
        const auto messages = store.messages(conversation);
        QCOMPARE(messages.size(), 2U);
        QCOMPARE(messages[1].text, QStringLiteral("The Moon."));
        QCOMPARE(messages[1].state, MessageState::length);
        QCOMPARE(messages[1].model, QStringLiteral("Guide"));
        QCOMPARE(messages[1].tokens_per_second, 71.5);
        QCOMPARE(messages[1].thinking_ms, 1200);
    }

    void deleting_can_be_undone_until_the_next_start() {
        QTemporaryDir folder;
        ChatStore store(path_of(folder));
        QVERIFY(store.open().isEmpty());
        const qint64 a = store.add_conversation(QStringLiteral("A"), {});
        store.add_message(message(a, 0, Role::user, QStringLiteral("word")));
        store.set_deleted(a, true);
        QVERIFY(store.conversations().empty());
        QVERIFY(store.search(QStringLiteral("word")).empty());
        store.set_deleted(a, false);
        QCOMPARE(store.conversations().size(), 1U);
        store.set_deleted(a, true);
        ChatStore later(path_of(folder));
        QVERIFY(later.open().isEmpty());
        later.set_deleted(a, false);
        QVERIFY(later.conversations().empty());
        QVERIFY(later.messages(a).empty());
    }

    void search_finds_words_in_titles_and_messages() {
        QTemporaryDir folder;
        ChatStore store(path_of(folder));
        QVERIFY(store.open().isEmpty());
        const qint64 a = store.add_conversation(QStringLiteral("Tides"), {});
        store.add_message(message(a, 0, Role::user, QStringLiteral("Warum gibt es \u00c4pfel? \"quoted\" 100%")));
        const qint64 b = store.add_conversation(QStringLiteral("Second"), {});
        Message m = message(b, 0, Role::user, QStringLiteral("before"));
        m.id = store.add_message(m);
        const auto found = [&](const QString& text) {
            std::vector<qint64> ids;
            for (const auto& info : store.search(text)) ids.push_back(info.id);
            return ids;
        };
        QCOMPARE(found(QStringLiteral("tid")), std::vector{a});
        QCOMPARE(found(QStringLiteral("\u00e4PF warum")), std::vector{a});
        QCOMPARE(found(QStringLiteral("warum nothing")), std::vector<qint64>{});
        QCOMPARE(found(QStringLiteral("\"quoted\" OR 100%")), std::vector<qint64>{});  // OR is a word like any other
        QCOMPARE(found(QStringLiteral("\"quot 100%")), std::vector{a});
        QCOMPARE(found(QStringLiteral("before")), std::vector{b});
        m.text = QStringLiteral("after");
        store.update_message(m);
        QCOMPARE(found(QStringLiteral("before")), std::vector<qint64>{});
        QCOMPARE(found(QStringLiteral("AFTER")), std::vector{b});
        QCOMPARE(found(QStringLiteral(" \"*( ")).size(), 2U);  // no words: everything
    }

    void damaged_files_are_set_aside_data() {
        QTest::addColumn<QByteArray>("damage");
        QTest::addColumn<int>("at");
        QTest::newRow("no database") << QByteArray(4096, 'x') << 0;
        QTest::newRow("header only") << QByteArray("SQLite format 3\0garbage", 23) << 0;
        QTest::newRow("pages") << QByteArray(8192, '\xee') << 4096;
    }
    void damaged_files_are_set_aside() {
        QFETCH(QByteArray, damage);
        QFETCH(int, at);
        QTemporaryDir folder;
        {
            ChatStore store(path_of(folder));
            QVERIFY(store.open().isEmpty());
            const qint64 a = store.add_conversation(QStringLiteral("A"), {});
            for (int i = 0; i < 50; ++i) store.add_message(message(a, 0, Role::user, QString(500, u'a')));
        }
        const QString name = folder.filePath(QStringLiteral("chats.sqlite"));
        QFile file(name);
        QVERIFY(file.open(QIODevice::ReadWrite));
        file.seek(at);
        file.write(damage);
        if (at == 0) file.resize(damage.size());
        file.seek(0);
        const QByteArray broken = file.readAll();
        file.close();

        ChatStore store(path_of(folder));
        const QString notice = store.open();
        QCOMPARE(damaged_files(folder).size(), 1);
        QVERIFY2(notice.contains(damaged_files(folder)[0]), qPrintable(notice));
        QVERIFY(store.conversations().empty());
        QVERIFY(store.add_conversation(QStringLiteral("new"), {}) > 0);
        QFile aside(folder.filePath(damaged_files(folder)[0]));
        QVERIFY(aside.open(QIODevice::ReadOnly));
        QVERIFY(aside.readAll() == broken);  // kept byte for byte
    }

    void damage_found_while_running() {
        QTemporaryDir folder;
        ChatStore store(path_of(folder));
        QVERIFY(store.open().isEmpty());
        const qint64 a = store.add_conversation(QStringLiteral("A"), {});
        for (int i = 0; i < 200; ++i) store.add_message(message(a, 0, Role::user, QString(2'000, u'a')));
        QSqlQuery checkpoint(store.database().connection());
        QVERIFY(checkpoint.exec(QStringLiteral("PRAGMA wal_checkpoint(TRUNCATE)")));
        checkpoint = QSqlQuery();
        QSqlQuery shrink(store.database().connection());
        QVERIFY(shrink.exec(QStringLiteral("PRAGMA shrink_memory")));
        QVERIFY(shrink.exec(QStringLiteral("PRAGMA cache_size = 1")));
        shrink = QSqlQuery();
        QFile file(folder.filePath(QStringLiteral("chats.sqlite")));
        QVERIFY(file.open(QIODevice::ReadWrite));
        file.seek(4096);
        file.write(QByteArray(static_cast<int>(file.size()) - 4096, '\xee'));
        file.close();
        QSignalSpy failed(&store, &ChatStore::failed);
        QSignalSpy replaced(&store, &ChatStore::replaced);
        (void)store.messages(a);
        QCOMPARE(failed.size(), 1);
        QCOMPARE(replaced.size(), 1);
        QCOMPARE(damaged_files(folder).size(), 1);
        QVERIFY(store.add_conversation(QStringLiteral("new"), {}) > 0);
    }

    void newer_and_unusable_files_are_left_alone() {
        QTemporaryDir folder;
        {
            ChatStore store(path_of(folder));
            QVERIFY(store.open().isEmpty());
            QSqlQuery query(store.database().connection());
            QVERIFY(query.exec(QStringLiteral("PRAGMA user_version = 99")));
        }
        ChatStore store(path_of(folder));
        QVERIFY(store.open().contains(QStringLiteral("newer")));
        QVERIFY(damaged_files(folder).isEmpty());
        QVERIFY(store.add_conversation(QStringLiteral("in memory"), {}) > 0);
        QCOMPARE(store.conversations().size(), 1U);

        QTemporaryDir other;
        QVERIFY(QDir(other.path()).mkdir(QStringLiteral("chats.sqlite")));  // a folder where the file should be
        ChatStore no_file(path_of(other));
        QVERIFY(!no_file.open().isEmpty());
        QVERIFY(no_file.add_conversation(QStringLiteral("in memory"), {}) > 0);
    }

    void half_made_answers_become_stopped() {
        QTemporaryDir folder;
        qint64 a = 0;
        {
            ChatStore store(path_of(folder));
            QVERIFY(store.open().isEmpty());
            a = store.add_conversation(QStringLiteral("A"), {});
            Message m = message(a, 0, Role::assistant, QStringLiteral("half"));
            m.state = MessageState::streaming;
            store.add_message(m);
        }
        ChatStore store(path_of(folder));
        QVERIFY(store.open().isEmpty());
        QCOMPARE(store.messages(a)[0].state, MessageState::stopped);
        QCOMPARE(store.messages(a)[0].text, QStringLiteral("half"));
    }

    // The window's thread makes these calls: each must be a matter of a few milliseconds.
    void calls_are_short() {
        QTemporaryDir folder;
        ChatStore store(path_of(folder));
        QVERIFY(store.open().isEmpty());
        QSqlQuery query(store.database().connection());
        query.exec(QStringLiteral("BEGIN"));
        qint64 last = 0;
        for (int i = 0; i < 1'000; ++i) {
            last = store.add_conversation(QStringLiteral("Conversation number %1 about words").arg(i), {});
            for (int k = 0; k < 4; ++k) {
                store.add_message(message(last, 0, Role::user, QStringLiteral("Some words of message %1 ").arg(k).repeated(20)));
            }
        }
        query.exec(QStringLiteral("COMMIT"));
        Message m = message(last, 0, Role::assistant, QString());
        m.id = store.add_message(m);
        std::vector<double> updates;
        for (int i = 0; i < 200; ++i) {
            m.text += QStringLiteral("Some more words of a long answer. ");
            updates.push_back(milliseconds([&] { store.update_message(m); }));
        }
        std::ranges::sort(updates);
        const double list = milliseconds([&] { QCOMPARE(store.conversations().size(), 1'000U); });
        const double search = milliseconds([&] { QVERIFY(!store.search(QStringLiteral("words message")).empty()); });
        qInfo("autosave: median %.2f ms, 99 %% %.2f ms; list of 1,000: %.1f ms; search: %.1f ms", updates[100], updates[198], list, search);
        QVERIFY(updates[100] < 20);
        QVERIFY(list < 200);
        QVERIFY(search < 500);
    }

private:
    template <class Function>
    static double milliseconds(Function function) {
        QElapsedTimer time;
        time.start();
        function();
        return static_cast<double>(time.nsecsElapsed()) / 1e6;
    }
};

QTEST_GUILESS_MAIN(TestChatStore)
#include "tst_chat_store.moc"
