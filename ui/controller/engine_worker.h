#pragma once

#include <QObject>
#include <QString>

#include <memory>
#include <stop_token>

#include "ui/controller/backend.h"

namespace headroom::ui {

// How an answer ended.
struct AnswerOutcome {
    engine::FinishReason finish = engine::FinishReason::stop;
    engine::GenerateStats stats;
    QString error;  // in words for the user; empty: none
};

// Owns the backend; moved to the engine's thread. EngineController queues its public functions, one after the other, and gets the
// signals queued back. `ticket` and `answer` are the caller's numbers, handed back so that late results can be told apart.
class EngineWorker : public QObject {
    Q_OBJECT

public:
    explicit EngineWorker(std::unique_ptr<Backend> backend);

    // name: as -m of the command line. Ends with inspected() or load_failed().
    void inspect(quint64 ticket, const std::string& name, const std::filesystem::path& model_folder, const InspectOptions& options);
    // Ends with loaded() or load_failed().
    void load(quint64 ticket, const engine::LoadOptions& options, std::stop_token stop);
    void unload();
    // Ends with answer_finished().
    void answer(qint64 answer, const AnswerRequest& request, std::stop_token stop);
    void forget(qint64 conversation);

signals:
    void inspected(quint64 ticket, const std::filesystem::path& path, const engine::Inspection& inspection);
    void load_progress(quint64 ticket, const engine::LoadProgress& progress);
    void loaded(quint64 ticket, const engine::ModelInfo& info, const std::shared_ptr<engine::Vram>& vram,
                const std::shared_ptr<engine::Model>& model);
    void load_failed(quint64 ticket, bool cancelled, const QString& problem);
    void prompt_progress(qint64 answer, int done, int total);
    void text_added(qint64 answer, const QString& text, const engine::GenerateStats& stats);
    void answer_finished(qint64 answer, const AnswerOutcome& outcome);

private:
    std::unique_ptr<Backend> backend_;
};

}  // namespace headroom::ui
