#include "ui/controller/engine_worker.h"

#include <spdlog/spdlog.h>

#include "core/base/paths.h"

namespace headroom::ui {

EngineWorker::EngineWorker(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {}

void EngineWorker::inspect(quint64 ticket, const std::string& name, const std::filesystem::path& model_folder, const InspectOptions& options) {
    const auto path = backend_->find(name, model_folder);
    const auto inspection = path ? backend_->inspect(*path, options) : std::unexpected(path.error());
    if (!inspection) {
        spdlog::warn("model {}: {}", name, inspection.error().message);
        emit load_failed(ticket, false, QString::fromStdString(inspection.error().message));
    } else if (!inspection->problem.empty()) {
        spdlog::warn("model {}: {}", name, inspection->problem);
        emit load_failed(ticket, false, QString::fromStdString(inspection->problem));
    } else {
        emit inspected(ticket, *path, *inspection);
    }
}

void EngineWorker::load(quint64 ticket, const engine::LoadOptions& options, std::stop_token stop) {
    spdlog::info("loading {}", to_utf8(options.path));
    const auto info = backend_->load(options, [&](const engine::LoadProgress& progress) { emit load_progress(ticket, progress); }, stop);
    if (info) {
        spdlog::info("loaded {} ({}, {}), context {}", info->name, info->family, info->quantization, info->context);
        for (const std::string& warning : info->warnings) spdlog::warn("{}", warning);
        emit loaded(ticket, *info, backend_->vram(), backend_->model());
        return;
    }
    const bool cancelled = info.error().kind == ErrorKind::cancelled;
    if (!cancelled) spdlog::error("{}", info.error().message);
    emit load_failed(ticket, cancelled, QString::fromStdString(info.error().message));
}

void EngineWorker::unload() { backend_->unload(); }

void EngineWorker::answer(qint64 answer, const AnswerRequest& request, std::stop_token stop) {
    engine::GenerateCallbacks callbacks;
    callbacks.on_text = [&](std::string_view text, const engine::GenerateStats& stats) {
        emit text_added(answer, QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())), stats);
    };
    callbacks.on_prompt = [&](int done, int total) { emit prompt_progress(answer, done, total); };
    AnswerOutcome outcome;
    if (stop.stop_requested()) {
        outcome.finish = engine::FinishReason::cancelled;
    } else if (const auto result = backend_->answer(request, callbacks, stop)) {
        outcome.finish = result->finish;
        outcome.stats = result->stats;
        spdlog::info("answer: {} of {} prompt tokens read at {:.1f}/s, {} tokens written at {:.1f}/s, {}",
                     result->stats.prompt_tokens - result->stats.reused_tokens, result->stats.prompt_tokens, result->stats.prompt_tps(),
                     result->stats.completion_tokens, result->stats.completion_tps(), to_string(result->finish));
    } else {
        spdlog::warn("answer: {}", result.error().message);
        outcome.error = QString::fromStdString(result.error().message);
    }
    emit answer_finished(answer, outcome);
}

void EngineWorker::forget(qint64 conversation) { backend_->forget(conversation); }

}  // namespace headroom::ui
