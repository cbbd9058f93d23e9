#pragma once

#include <QObject>
#include <QThread>

#include <memory>
#include <optional>
#include <stop_token>

#include "ui/controller/engine_worker.h"

namespace headroom::ui {

// What to open and how.
struct OpenRequest {
    std::string name = "builtin";        // as -m of the command line: a path, "builtin", or a name in the folder
    std::filesystem::path model_folder;
    int context = 0;                     // as engine::LoadOptions
    int threads = 0;
    engine::KvType kv_type = engine::KvType::f16;
};

// What the window shows of the model: a copy, changed only together with model_changed().
struct ModelStatus {
    enum class State {
        none,        // nothing was opened yet, or loading was cancelled
        inspecting,  // the file's header is being read
        asking,      // it needs more memory than there is: load_anyway() or cancel_load()
        loading,
        ready,
        failed,      // `problem` says why
    } state = State::none;
    OpenRequest request;
    std::filesystem::path path;  // from `asking` on
    engine::ModelInfo info;      // from `asking` on
    engine::Estimate estimate;   // from `asking` on
    engine::LoadProgress progress;
    std::shared_ptr<engine::Model> model;  // while `ready`: for the server
    std::shared_ptr<engine::Vram> vram;  // while `ready`; null where it runs on the processor alone
    bool held = false;           // while `inspecting`: it waits for hold_loads(false)
    QString problem;
};

// The window's only door to the engine. Lives in the window's thread; never waits except in its destructor. Commands are queued to
// the worker's thread, results come back as signals; cancelling does not queue: it sets a flag the engine looks at all the time.
class EngineController : public QObject {
    Q_OBJECT

public:
    // data_folder: where verdicts on devices and wishes for their VRAM are kept; empty: nowhere.
    explicit EngineController(std::unique_ptr<Backend> backend, std::filesystem::path data_folder = {}, QObject* parent = nullptr);
    // Stops what is running and waits for the thread.
    ~EngineController() override;

    [[nodiscard]] const ModelStatus& model() const { return model_; }
    // Stops an answer and a load that are running, reads the file's header, then loads it if its estimate fits.
    void open(const OpenRequest& request);
    void load_anyway();
    void cancel_load();
    // While true no load begins: a device's memory is being tested, and what a load takes there would disturb the measurement.
    void hold_loads(bool hold);

    // Answers in the order of the calls. `answer` is a number of the caller's, not in use. Ends with exactly one answer_finished().
    void answer(qint64 answer, const AnswerRequest& request);
    void stop_answer(qint64 answer);
    void forget(qint64 conversation);

signals:
    void model_changed();  // state, info, estimate or problem
    void load_progress();  // model().progress
    void prompt_progress(qint64 answer, int done, int total);
    void text_added(qint64 answer, const QString& text, const engine::GenerateStats& stats);
    void answer_finished(qint64 answer, const AnswerOutcome& outcome);

private:
    void on_inspected(quint64 ticket, const std::filesystem::path& path, const engine::Inspection& inspection);
    void on_loaded(quint64 ticket, const engine::ModelInfo& info, const std::shared_ptr<engine::Vram>& vram,
                   const std::shared_ptr<engine::Model>& model);
    void on_load_failed(quint64 ticket, bool cancelled, const QString& problem);
    void start_load();
    void stop_answers();
    template <class Function>
    void queue(Function function);

    QThread thread_;
    EngineWorker* worker_;  // deleted in its thread
    std::filesystem::path data_folder_;
    bool hold_ = false;
    ModelStatus model_;
    quint64 ticket_ = 0;    // of the newest open(): results of older ones are dropped
    std::stop_source load_stop_;
    std::map<qint64, std::stop_source> answers_;  // queued and running
};

}  // namespace headroom::ui
