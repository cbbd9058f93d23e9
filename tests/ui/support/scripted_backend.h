#pragma once

// A backend that does what a test says: it stands in for the engine.

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "ui/controller/backend.h"

namespace headroom::test {

// Shared by the test and the backend (which belongs to the engine's thread). Set the plain fields before the call they are for.
class Script {
public:
    engine::Inspection inspection = default_inspection();
    std::shared_ptr<engine::Vram> vram;                   // of the loaded model; null: the processor alone
    std::optional<Error> find_error;
    std::optional<Error> load_error;
    std::vector<std::string> chunks{"Hello", " there."};  // of every answer
    std::map<std::string, std::vector<std::string>> answers;  // by the user's last message, instead of `chunks`
    std::optional<Error> answer_error;                    // after the chunks
    engine::FinishReason finish = engine::FinishReason::stop;

    // From now on nothing goes on by itself: a load waits after each of its ten steps, an answer before each chunk …
    void hold();
    // … until so many steps are allowed,
    void release(int steps);
    // or everything again.
    void go();

    [[nodiscard]] std::vector<ui::AnswerRequest> requests() const;
    [[nodiscard]] std::vector<engine::LoadOptions> loads() const;
    [[nodiscard]] std::vector<std::int64_t> forgotten() const;
    [[nodiscard]] bool loaded() const;

private:
    friend class ScriptedBackend;
    static engine::Inspection default_inspection();
    bool step(std::stop_token stop);  // false: stopped

    mutable std::mutex mutex_;
    std::condition_variable_any changed_;
    int allowed_ = -1;  // -1: any number
    bool loaded_ = false;
    std::vector<ui::AnswerRequest> requests_;
    std::vector<engine::LoadOptions> loads_;
    std::vector<std::int64_t> forgotten_;
};

class ScriptedBackend : public ui::Backend {
public:
    explicit ScriptedBackend(std::shared_ptr<Script> script) : script_(std::move(script)) {}

    Result<std::filesystem::path> find(std::string_view name, const std::filesystem::path& model_folder) override;
    Result<engine::Inspection> inspect(const std::filesystem::path& path, const ui::InspectOptions& options) override;
    Result<engine::ModelInfo> load(const engine::LoadOptions& options, const engine::ProgressCallback& progress,
                                   std::stop_token stop) override;
    void unload() override;
    std::shared_ptr<engine::Model> model() override { return nullptr; }
    std::shared_ptr<engine::Vram> vram() override { return script_->vram; }
    Result<engine::GenerateResult> answer(const ui::AnswerRequest& request, const engine::GenerateCallbacks& callbacks,
                                          std::stop_token stop) override;
    void forget(std::int64_t conversation) override;

private:
    std::shared_ptr<Script> script_;
};

}  // namespace headroom::test
