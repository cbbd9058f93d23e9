#pragma once

// What a loaded model consists of, shared by model.cpp and session.cpp.

#include <memory>
#include <optional>

#include "core/base/thread_pool.h"
#include "core/engine/engine.h"
#include "core/engine/turn_lock.h"
#include "core/model/forward.h"
#include "core/model/transformer.h"
#include "core/text/chat_template.h"
#include "core/text/tokenizer.h"

namespace headroom::engine {

struct Model::State {
    State(gguf::File opened, model::Transformer bound, int threads)
        : file(std::move(opened)), transformer(std::move(bound)), pool(threads), forward(transformer, pool) {}

    gguf::File file;
    ModelInfo info;
    std::unique_ptr<const text::Tokenizer> tokenizer;
    std::optional<Result<text::ChatTemplate>> chat_template;  // an error is told to those who ask for a chat
    model::Transformer transformer;                           // points into file

    // For whoever has the turn.
    TurnLock turns;
    ThreadPool pool;
    model::Forward forward;
};

}  // namespace headroom::engine
