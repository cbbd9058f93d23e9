#include "ui/controller/engine_backend.h"

#include <algorithm>

namespace headroom::ui {
namespace {

// Conversations whose KV cache is kept, so that going back to one does not read it again. Each may take the whole context's KV.
constexpr std::size_t kSessions = 3;

}  // namespace

Result<std::filesystem::path> EngineBackend::find(std::string_view name, const std::filesystem::path& model_folder) {
    return engine::find_model(name, model_folder);
}

Result<engine::Inspection> EngineBackend::inspect(const std::filesystem::path& path, const InspectOptions& options) {
    HR_TRY(const gguf::File file, gguf::File::open(path));
    return engine::inspect(file, options.context, options.kv_type);
}

Result<engine::ModelInfo> EngineBackend::load(const engine::LoadOptions& options, const engine::ProgressCallback& progress,
                                              std::stop_token stop) {
    unload();
    HR_TRY(model_, engine::Model::load(options, progress, std::move(stop)));
    return model_->info();
}

void EngineBackend::unload() {
    sessions_.clear();
    model_.reset();
}

Result<engine::GenerateResult> EngineBackend::answer(const AnswerRequest& request, const engine::GenerateCallbacks& callbacks,
                                                     std::stop_token stop) {
    if (!model_) return fail(ErrorKind::invalid_argument, "No model is loaded: open one first.");
    text::Json messages = text::Json::array();
    for (const ChatTurn& turn : request.turns) messages.push_back({{"role", turn.role}, {"content", turn.text}});
    HR_TRY(auto prompt, model_->chat_prompt({{"messages", std::move(messages)}, {"add_generation_prompt", true}}));
    HR_TRY(engine::Session * session, session_of(request.conversation));
    engine::GenerateRequest generate;
    generate.prompt = std::move(prompt);
    generate.sampling = request.sampling;
    generate.max_tokens = request.max_tokens;
    return session->generate(generate, callbacks, std::move(stop));
}

Result<engine::Session*> EngineBackend::session_of(std::int64_t conversation) {
    const auto found = std::ranges::find(sessions_, conversation, &Entry::conversation);
    if (found != sessions_.end()) {
        sessions_.splice(sessions_.begin(), sessions_, found);
    } else {
        while (sessions_.size() >= kSessions) sessions_.pop_back();
        HR_TRY(auto session, engine::Session::create(model_));
        sessions_.push_front({conversation, std::move(session)});
    }
    return sessions_.front().session.get();
}

void EngineBackend::forget(std::int64_t conversation) {
    sessions_.remove_if([&](const Entry& entry) { return entry.conversation == conversation; });
}

}  // namespace headroom::ui
