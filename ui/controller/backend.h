#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/engine.h"

namespace headroom::ui {

struct ChatTurn {
    std::string role;  // "system", "user", "assistant"
    std::string text;  // UTF-8
};

struct AnswerRequest {
    std::int64_t conversation = 0;  // whose earlier work (the KV cache) may be reused
    std::vector<ChatTurn> turns;    // the conversation so far, ending with the user's message
    engine::SamplingOptions sampling;
    int max_tokens = -1;            // -1: to the end of the context
};

// How a model would be loaded, for its estimate: as in engine::LoadOptions.
struct InspectOptions {
    int context = 0;
    engine::KvType kv_type = engine::KvType::f16;
};

// What the window needs of the engine. Called from the engine's worker thread only, one call at a time; stop tokens are triggered
// from the window's thread. The seam for tests: a scripted backend stands in for the engine.
class Backend {
public:
    virtual ~Backend() = default;

    // As engine::find_model and engine::inspect.
    virtual Result<std::filesystem::path> find(std::string_view name, const std::filesystem::path& model_folder) = 0;
    virtual Result<engine::Inspection> inspect(const std::filesystem::path& path, const InspectOptions& options) = 0;

    // Loads a model in place of the one there is, which is let go first. As engine::Model::load.
    virtual Result<engine::ModelInfo> load(const engine::LoadOptions& options, const engine::ProgressCallback& progress,
                                           std::stop_token stop) = 0;
    virtual void unload() = 0;
    // The loaded model, for the server; null where there is none.
    virtual std::shared_ptr<engine::Model> model() = 0;
    // Of the loaded model, as engine::Model::vram.
    virtual std::shared_ptr<engine::Vram> vram() = 0;

    // As engine::Session::generate, for the conversation's session.
    virtual Result<engine::GenerateResult> answer(const AnswerRequest& request, const engine::GenerateCallbacks& callbacks,
                                                  std::stop_token stop) = 0;
    // The conversation is gone: its session is not needed any more.
    virtual void forget(std::int64_t conversation) = 0;
};

}  // namespace headroom::ui
