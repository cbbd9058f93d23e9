#pragma once

// What the conversations' database holds, as plain values.

#include <QString>

#include "core/engine/sampling.h"

namespace headroom::ui {

enum class Role : int { user = 0, assistant = 1 };

enum class MessageState : int {
    complete = 0,
    streaming = 1,  // being made, or waiting for the model; found in the file at start: the program was killed
    stopped = 2,    // ended by the user (or by a kill)
    length = 3,     // ended by the context's end or the limit of tokens
    failed = 4,     // Message::error says why
};

struct Message {
    qint64 id = 0;
    qint64 conversation = 0;
    qint64 parent = 0;  // 0: the first message of its branch
    Role role = Role::user;
    MessageState state = MessageState::complete;
    QString text = {};
    QString error = {};
    QString model = {};           // that answered
    qint64 created_ms = 0;   // since 1970, UTC
    int prompt_tokens = 0;
    int completion_tokens = 0;
    double tokens_per_second = 0;
    qint64 thinking_ms = 0;  // how long the reasoning took
};

struct ConversationInfo {
    qint64 id = 0;
    QString title;
    qint64 updated_ms = 0;
    bool operator==(const ConversationInfo&) const = default;
};

// What a conversation asks of the model beside its messages.
struct ConversationSettings {
    QString system_prompt;
    engine::SamplingOptions sampling;
    int max_tokens = -1;  // -1: to the end of the context
};

}  // namespace headroom::ui
