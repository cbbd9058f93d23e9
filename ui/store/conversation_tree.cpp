#include "ui/store/conversation_tree.h"

#include <algorithm>

namespace headroom::ui {

ConversationTree::ConversationTree(std::vector<Message> messages, qint64 leaf) {
    std::ranges::sort(messages, {}, &Message::id);
    for (Message& message : messages) {
        // A parent is always older than its child: anything else (a damaged file) becomes a first message, so that no path has a loop.
        if (message.parent >= message.id || !messages_.contains(message.parent)) message.parent = 0;
        add(std::move(message));
    }
    if (messages_.contains(leaf)) {
        leaf_ = leaf;
    } else if (!messages_.empty()) {
        leaf_ = newest_below(0);
    }
}

const Message* ConversationTree::find(qint64 id) const {
    const auto found = messages_.find(id);
    return found == messages_.end() ? nullptr : &found->second;
}

Message* ConversationTree::find(qint64 id) {
    const auto found = messages_.find(id);
    return found == messages_.end() ? nullptr : &found->second;
}

std::vector<qint64> ConversationTree::path_to(qint64 id) const {
    std::vector<qint64> path;
    for (const Message* message = find(id); message; message = find(message->parent)) path.push_back(message->id);
    std::ranges::reverse(path);
    return path;
}

const std::vector<qint64>& ConversationTree::siblings(qint64 id) const {
    static const std::vector<qint64> none;
    const Message* message = find(id);
    return message ? children_.at(message->parent) : none;
}

void ConversationTree::add(Message message) {
    const qint64 id = message.id;
    children_[message.parent].push_back(id);
    messages_.insert_or_assign(id, std::move(message));
    leaf_ = id;
}

void ConversationTree::select(qint64 id) {
    if (messages_.contains(id)) leaf_ = newest_below(id);
}

qint64 ConversationTree::newest_below(qint64 id) const {
    for (auto children = children_.find(id); children != children_.end(); children = children_.find(id)) id = children->second.back();
    return id;
}

}  // namespace headroom::ui
