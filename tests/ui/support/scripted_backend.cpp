#include "tests/ui/support/scripted_backend.h"

#include "core/base/bytes.h"
#include "core/base/paths.h"

namespace headroom::test {

engine::Inspection Script::default_inspection() {
    engine::Inspection inspection;
    inspection.info.name = "Guide";
    inspection.info.family = "qwen3moe";
    inspection.info.quantization = "Q4_K_M";
    inspection.info.context = 2048;
    inspection.info.trained_context = 2048;
    inspection.info.has_chat_template = true;
    inspection.estimate.weights_bytes = 16 * MiB;
    inspection.estimate.kv_bytes = 12 * MiB;
    inspection.estimate.scratch_bytes = 4 * MiB;
    inspection.estimate.available_ram = 12 * GiB;
    return inspection;
}

void Script::hold() {
    const std::scoped_lock lock(mutex_);
    allowed_ = 0;
}

void Script::release(int steps) {
    const std::scoped_lock lock(mutex_);
    allowed_ = std::max(allowed_, 0) + steps;
    changed_.notify_all();
}

void Script::go() {
    const std::scoped_lock lock(mutex_);
    allowed_ = -1;
    changed_.notify_all();
}

bool Script::step(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    const bool may = changed_.wait(lock, stop, [this] { return allowed_ != 0; });
    if (may && allowed_ > 0) --allowed_;
    return may && !stop.stop_requested();
}

std::vector<ui::AnswerRequest> Script::requests() const {
    const std::scoped_lock lock(mutex_);
    return requests_;
}

std::vector<engine::LoadOptions> Script::loads() const {
    const std::scoped_lock lock(mutex_);
    return loads_;
}

std::vector<std::int64_t> Script::forgotten() const {
    const std::scoped_lock lock(mutex_);
    return forgotten_;
}

bool Script::loaded() const {
    const std::scoped_lock lock(mutex_);
    return loaded_;
}

Result<std::filesystem::path> ScriptedBackend::find(std::string_view name, const std::filesystem::path&) {
    if (script_->find_error) return std::unexpected(*script_->find_error);
    return name == "builtin" ? std::filesystem::path("guide-q4_k_m.gguf") : from_utf8(name);
}

Result<engine::Inspection> ScriptedBackend::inspect(const std::filesystem::path&, const ui::InspectOptions& options) {
    engine::Inspection inspection = script_->inspection;
    if (options.context > 0) inspection.info.context = options.context;
    return inspection;
}

Result<engine::ModelInfo> ScriptedBackend::load(const engine::LoadOptions& options, const engine::ProgressCallback& progress,
                                                std::stop_token stop) {
    {
        const std::scoped_lock lock(script_->mutex_);
        script_->loads_.push_back(options);
        script_->loaded_ = false;
    }
    const std::uint64_t total = script_->inspection.estimate.weights_bytes;
    for (int done = 1; done <= 10; ++done) {
        progress({engine::LoadProgress::Stage::reading, done / 10.0, total * static_cast<unsigned>(done) / 10, total});
        if (!script_->step(stop)) return fail(ErrorKind::cancelled, "loading was cancelled");
    }
    if (script_->load_error) return std::unexpected(*script_->load_error);
    const std::scoped_lock lock(script_->mutex_);
    script_->loaded_ = true;
    engine::ModelInfo info = script_->inspection.info;
    if (options.context > 0) info.context = options.context;
    return info;
}

void ScriptedBackend::unload() {
    const std::scoped_lock lock(script_->mutex_);
    script_->loaded_ = false;
}

Result<engine::GenerateResult> ScriptedBackend::answer(const ui::AnswerRequest& request, const engine::GenerateCallbacks& callbacks,
                                                       std::stop_token stop) {
    {
        const std::scoped_lock lock(script_->mutex_);
        script_->requests_.push_back(request);
    }
    engine::GenerateResult result;
    result.stats.prompt_tokens = 40 * static_cast<int>(request.turns.size());
    callbacks.on_prompt(0, result.stats.prompt_tokens);
    const auto own = script_->answers.find(request.turns.back().text);
    for (const std::string& chunk : own == script_->answers.end() ? script_->chunks : own->second) {
        if (!script_->step(stop)) {
            result.finish = engine::FinishReason::cancelled;
            return result;
        }
        result.text += chunk;
        result.stats.completion_tokens += 1;
        result.stats.completion_seconds = (result.stats.completion_tokens - 1) / 71.0;
        callbacks.on_text(chunk, result.stats);
    }
    if (script_->answer_error) return std::unexpected(*script_->answer_error);
    result.finish = script_->finish;
    return result;
}

void ScriptedBackend::forget(std::int64_t conversation) {
    const std::scoped_lock lock(script_->mutex_);
    script_->forgotten_.push_back(conversation);
}

}  // namespace headroom::test
