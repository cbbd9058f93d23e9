#pragma once

#include <list>
#include <memory>

#include "ui/controller/backend.h"

namespace headroom::ui {

// The real engine behind the window: one loaded model, and the sessions of the conversations used last.
class EngineBackend : public Backend {
public:
    Result<std::filesystem::path> find(std::string_view name, const std::filesystem::path& model_folder) override;
    Result<engine::Inspection> inspect(const std::filesystem::path& path, const InspectOptions& options) override;
    Result<engine::ModelInfo> load(const engine::LoadOptions& options, const engine::ProgressCallback& progress,
                                   std::stop_token stop) override;
    void unload() override;
    std::shared_ptr<engine::Model> model() override { return model_; }
    std::shared_ptr<engine::Vram> vram() override { return model_ ? model_->vram() : nullptr; }
    Result<engine::GenerateResult> answer(const AnswerRequest& request, const engine::GenerateCallbacks& callbacks,
                                          std::stop_token stop) override;
    void forget(std::int64_t conversation) override;

private:
    struct Entry {
        std::int64_t conversation;
        std::unique_ptr<engine::Session> session;
    };
    Result<engine::Session*> session_of(std::int64_t conversation);

    std::shared_ptr<engine::Model> model_;
    std::list<Entry> sessions_;  // the one used last comes first
};

}  // namespace headroom::ui
