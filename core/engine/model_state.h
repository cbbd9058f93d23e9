#pragma once

// What a loaded model consists of, shared by model.cpp and session.cpp.

#include <memory>
#include <mutex>
#include <optional>

#include "core/base/thread_pool.h"
#include "core/engine/engine.h"
#include "core/engine/turn_lock.h"
#include "core/engine/vram_control.h"
#include "core/gpu/driver.h"
#include "core/model/cpu_runner.h"
#include "core/model/runner.h"
#include "core/model/transformer.h"
#include "core/text/chat_template.h"
#include "core/text/tokenizer.h"

namespace headroom::engine {

struct Model::State {
    State(gguf::File opened, model::Transformer bound) : file(std::move(opened)), transformer(std::move(bound)) {}

    ~State() {
        if (vram) vram->close();  // its thread works with the runner
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    // Makes the pool and places the model on the devices that the options name; without one, or where it does not fit, the runner stays empty and a warning in
    // info says why. Errors: cancelled, and what choose_devices says of a device that the user named.
    [[nodiscard]] Result<> use_devices(const LoadOptions& options, const std::function<void(std::uint64_t bytes)>& copied,
                                       const std::stop_token& stop);

    gguf::File file;
    ModelInfo info;
    std::unique_ptr<const text::Tokenizer> tokenizer;
    std::once_flag token_trie_made;
    std::shared_ptr<const text::TokenTrie> token_trie;
    std::optional<Result<text::ChatTemplate>> chat_template;  // an error is told to those who ask for a chat
    model::Transformer transformer;                           // points into file

    // For whoever has the turn.
    TurnLock turns;
    std::unique_ptr<ThreadPool> pool;
    std::vector<std::unique_ptr<gpu::Driver>> drivers;  // of the devices the runner uses
    std::unique_ptr<model::Runner> runner;
    std::unique_ptr<model::CpuRunner> embedder;  // made when the first embedding is wanted
    std::shared_ptr<VramControl> vram;  // of the runner's devices
};

}  // namespace headroom::engine
