#include <QTest>

#include "ui/store/conversation_tree.h"

using namespace headroom::ui;

namespace {

Message message(qint64 id, qint64 parent) {
    Message m;
    m.id = id;
    m.parent = parent;
    return m;
}

}  // namespace

class TestConversationTree : public QObject {
    Q_OBJECT

private slots:
    void empty_tree() {
        const ConversationTree tree;
        QVERIFY(tree.empty());
        QVERIFY(tree.path().empty());
        QVERIFY(tree.siblings(1).empty());
    }

    void branches() {
        // 1 ─ 2 ─ 3 ─ 4
        //      └─ 5 ─ 6
        //  7 ─ 8
        ConversationTree tree({message(1, 0), message(2, 1), message(3, 2), message(4, 3), message(5, 2), message(6, 5), message(7, 0),
                               message(8, 7)}, 4);
        QCOMPARE(tree.path(), (std::vector<qint64>{1, 2, 3, 4}));
        QCOMPARE(tree.siblings(3), (std::vector<qint64>{3, 5}));
        QCOMPARE(tree.siblings(1), (std::vector<qint64>{1, 7}));
        tree.select(5);
        QCOMPARE(tree.path(), (std::vector<qint64>{1, 2, 5, 6}));
        tree.select(7);
        QCOMPARE(tree.path(), (std::vector<qint64>{7, 8}));
        tree.select(1);  // its newest descendant
        QCOMPARE(tree.path(), (std::vector<qint64>{1, 2, 5, 6}));
        tree.add(message(9, 6));
        QCOMPARE(tree.leaf(), 9);
        QCOMPARE(tree.path_to(2), (std::vector<qint64>{1, 2}));
    }

    // Parents that are missing, or newer than their child, come only from a damaged file: no path may be endless.
    void damaged_parents() {
        const ConversationTree tree({message(1, 2), message(2, 1), message(3, 99), message(4, 4)}, 77);
        QCOMPARE(tree.path(), (std::vector<qint64>{4}));
        QCOMPARE(tree.path_to(2), (std::vector<qint64>{1, 2}));
        QCOMPARE(tree.siblings(1), (std::vector<qint64>{1, 3, 4}));
    }
};

QTEST_GUILESS_MAIN(TestConversationTree)
#include "tst_conversation_tree.moc"
