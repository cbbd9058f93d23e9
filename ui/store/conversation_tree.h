#pragma once

#include <map>
#include <vector>

#include "ui/store/records.h"

namespace headroom::ui {

// The messages of one conversation: a tree, whose branches come from editing and regenerating. One path from a first message to
// the leaf is shown. A value without any I/O.
class ConversationTree {
public:
    ConversationTree() = default;
    // leaf 0, or a leaf that is not there: the newest path.
    ConversationTree(std::vector<Message> messages, qint64 leaf);

    [[nodiscard]] bool empty() const { return messages_.empty(); }
    [[nodiscard]] qint64 leaf() const { return leaf_; }
    [[nodiscard]] const Message* find(qint64 id) const;
    [[nodiscard]] Message* find(qint64 id);
    // From the first message to the leaf.
    [[nodiscard]] std::vector<qint64> path() const { return path_to(leaf_); }
    // From the first message to `id`, inclusive; empty where it is not there.
    [[nodiscard]] std::vector<qint64> path_to(qint64 id) const;
    // The messages that share the parent of `id`, itself included, oldest first.
    [[nodiscard]] const std::vector<qint64>& siblings(qint64 id) const;

    // Adds a message and makes it the leaf.
    void add(Message message);
    // Shows the branch through `id`: the leaf becomes its newest descendant.
    void select(qint64 id);

private:
    [[nodiscard]] qint64 newest_below(qint64 id) const;

    std::map<qint64, Message> messages_;
    std::map<qint64, std::vector<qint64>> children_;  // by parent, 0 for first messages; ids ascending
    qint64 leaf_ = 0;
};

}  // namespace headroom::ui
