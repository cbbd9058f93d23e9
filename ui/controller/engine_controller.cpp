#include "ui/controller/engine_controller.h"

namespace headroom::ui {

EngineController::EngineController(std::unique_ptr<Backend> backend, std::filesystem::path data_folder, QObject* parent)
    : QObject(parent), worker_(new EngineWorker(std::move(backend))), data_folder_(std::move(data_folder)) {
    worker_->moveToThread(&thread_);
    connect(&thread_, &QThread::finished, worker_, &QObject::deleteLater);
    connect(worker_, &EngineWorker::inspected, this, &EngineController::on_inspected);
    connect(worker_, &EngineWorker::loaded, this, &EngineController::on_loaded);
    connect(worker_, &EngineWorker::load_failed, this, &EngineController::on_load_failed);
    connect(worker_, &EngineWorker::load_progress, this, [this](quint64 ticket, const engine::LoadProgress& progress) {
        if (ticket != ticket_ || model_.state != ModelStatus::State::loading) return;
        model_.progress = progress;
        emit load_progress();
    });
    connect(worker_, &EngineWorker::prompt_progress, this, &EngineController::prompt_progress);
    connect(worker_, &EngineWorker::text_added, this, &EngineController::text_added);
    connect(worker_, &EngineWorker::answer_finished, this, [this](qint64 answer, const AnswerOutcome& outcome) {
        answers_.erase(answer);
        emit answer_finished(answer, outcome);
    });
    thread_.setObjectName(QStringLiteral("engine"));
    thread_.start();
}

EngineController::~EngineController() {
    load_stop_.request_stop();
    stop_answers();
    thread_.quit();
    thread_.wait();
}

template <class Function>
void EngineController::queue(Function function) {
    QMetaObject::invokeMethod(worker_, std::move(function), Qt::QueuedConnection);
}

void EngineController::open(const OpenRequest& request) {
    load_stop_.request_stop();
    stop_answers();
    model_ = {};
    model_.state = ModelStatus::State::inspecting;
    model_.request = request;
    queue([worker = worker_, ticket = ++ticket_, request] {
        worker->inspect(ticket, request.name, request.model_folder, {request.context, request.kv_type});
    });
    emit model_changed();
}

void EngineController::on_inspected(quint64 ticket, const std::filesystem::path& path, const engine::Inspection& inspection) {
    if (ticket != ticket_) return;
    model_.path = path;
    model_.info = inspection.info;
    model_.estimate = inspection.estimate;
    if (inspection.estimate.fits()) {
        start_load();
    } else {
        model_.state = ModelStatus::State::asking;
        emit model_changed();
    }
}

void EngineController::load_anyway() {
    if (model_.state == ModelStatus::State::asking) start_load();
}

void EngineController::hold_loads(bool hold) {
    hold_ = hold;
    if (!hold && model_.held) start_load();
}

void EngineController::start_load() {
    if (hold_) {
        model_.state = ModelStatus::State::inspecting;
        model_.held = true;
        emit model_changed();
        return;
    }
    model_.held = false;
    model_.state = ModelStatus::State::loading;
    model_.progress = {};
    load_stop_ = {};
    const engine::LoadOptions options{.path = model_.path, .context = model_.request.context, .threads = model_.request.threads,
                                      .kv_type = model_.request.kv_type, .data_folder = data_folder_};
    queue([worker = worker_, ticket = ticket_, options, stop = load_stop_.get_token()] { worker->load(ticket, options, stop); });
    emit model_changed();
}

void EngineController::cancel_load() {
    using State = ModelStatus::State;
    if (model_.state != State::inspecting && model_.state != State::asking && model_.state != State::loading) return;
    load_stop_.request_stop();
    ++ticket_;
    model_.state = State::none;
    model_.held = false;
    // A load that ended just now must not stay in memory.
    queue([worker = worker_] { worker->unload(); });
    emit model_changed();
}

void EngineController::on_loaded(quint64 ticket, const engine::ModelInfo& info, const std::shared_ptr<engine::Vram>& vram,
                                 const std::shared_ptr<engine::Model>& model) {
    if (ticket != ticket_) return;
    model_.state = ModelStatus::State::ready;
    model_.info = info;
    model_.vram = vram;
    model_.model = model;
    emit model_changed();
}

void EngineController::on_load_failed(quint64 ticket, bool cancelled, const QString& problem) {
    if (ticket != ticket_) return;
    model_.state = cancelled ? ModelStatus::State::none : ModelStatus::State::failed;
    model_.problem = problem;
    emit model_changed();
}

void EngineController::answer(qint64 answer, const AnswerRequest& request) {
    const auto [entry, added] = answers_.try_emplace(answer);
    Q_ASSERT(added);
    queue([worker = worker_, answer, request, stop = entry->second.get_token()] { worker->answer(answer, request, stop); });
}

void EngineController::stop_answer(qint64 answer) {
    if (const auto found = answers_.find(answer); found != answers_.end()) found->second.request_stop();
}

void EngineController::stop_answers() {
    for (auto& [answer, stop] : answers_) stop.request_stop();
}

void EngineController::forget(qint64 conversation) {
    queue([worker = worker_, conversation] { worker->forget(conversation); });
}

}  // namespace headroom::ui
