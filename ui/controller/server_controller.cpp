#include "ui/controller/server_controller.h"

#include <chrono>

#include "core/base/paths.h"
#include "core/server/guard.h"

namespace headroom::ui {

using namespace std::chrono_literals;

ServerController::ServerController(std::unique_ptr<ServerBackend> backend, EngineController& engine, Settings& settings, QObject* parent)
    : QObject(parent), worker_(new ServerWorker(std::move(backend))), engine_(engine), settings_(settings) {
    worker_->moveToThread(&thread_);
    connect(&thread_, &QThread::finished, worker_, &QObject::deleteLater);
    connect(worker_, &ServerWorker::started, this, [this](const QString& address) {
        if (stopping_) return;
        address_ = address;
        set_state(State::on);
        if (poll_.isActive()) queue([worker = worker_] { worker->read(); });
    });
    connect(worker_, &ServerWorker::failed, this, [this](const QString& problem) {
        running_ = false;
        if (stopping_) return;
        problem_ = problem;
        set_state(State::failed);
    });
    connect(worker_, &ServerWorker::stopped, this, [this] {
        running_ = stopping_ = false;
        in_progress_.clear();
        emit requests_changed();
        emit held_changed();
        update();
    });
    connect(worker_, &ServerWorker::was_read, this, [this](const auto& in_progress, const auto& recent) {
        reading_ = false;
        in_progress_ = in_progress;
        recent_ = recent;
        emit requests_changed();
    });
    connect(&engine_, &EngineController::model_changed, this, [this] {
        update();
        emit held_changed();
    });
    poll_.setInterval(500ms);
    connect(&poll_, &QTimer::timeout, this, [this] {
        if (reading_ || state_ != State::on) return;
        reading_ = true;
        queue([worker = worker_] { worker->read(); });
    });
    thread_.setObjectName(QStringLiteral("server"));
    thread_.start();
    update();
}

ServerController::~ServerController() {
    thread_.quit();
    thread_.wait();
}

template <class Function>
void ServerController::queue(Function function) {
    QMetaObject::invokeMethod(worker_, std::move(function), Qt::QueuedConnection);
}

void ServerController::set_state(State state) {
    state_ = state;
    emit changed();
}

QString ServerController::model_name() const {
    const ModelStatus& model = engine_.model();
    if (model.state != ModelStatus::State::ready) return {};
    if (model.request.name == "builtin") return QStringLiteral("builtin");
    return QString::fromStdString(to_utf8(model.path.stem()));
}

// Brings what is into line with what is wanted, as far as nothing is under way.
void ServerController::update() {
    if (stopping_) return;
    const bool ready = engine_.model().state == ModelStatus::State::ready;
    if (running_ && !(is_wanted() && ready)) {
        stopping_ = true;
        queue([worker = worker_] { worker->stop(); });
        set_state(is_wanted() ? State::waiting : State::off);
    } else if (!is_wanted()) {
        if (state_ != State::off) set_state(State::off);
    } else if (!ready) {
        if (state_ != State::waiting) set_state(State::waiting);
    } else if (!running_ && state_ != State::failed) {
        running_ = true;
        ServerSetup setup{.port = port(), .key = settings_.text(Settings::Key::server_key).toStdString(), .origins = {},
                          .model_name = model_name().toStdString(), .model_path = engine_.model().path, .model = engine_.model().model};
        for (const QString& origin : origins()) setup.origins.push_back(origin.toStdString());
        queue([worker = worker_, setup = std::move(setup)] { worker->start(setup); });
        set_state(State::starting);
    }
}

void ServerController::restart() {
    if (running_ && !stopping_) {
        stopping_ = true;
        queue([worker = worker_] { worker->stop(); });
    }
    if (state_ == State::failed) state_ = State::off;
    update();
    emit changed();
}

void ServerController::set_wanted(bool wanted) {
    if (state_ == State::failed) state_ = State::off;
    settings_.set(Settings::Key::server_on, wanted);
    update();
    emit changed();
}

void ServerController::set_port(int port) {
    if (port == this->port()) return;
    settings_.set(Settings::Key::server_port, port);
    restart();
}

void ServerController::set_origins(const QStringList& list) {
    if (list == origins()) return;
    settings_.set(Settings::Key::server_origins, list);
    restart();
}

QString ServerController::make_key() {
    const QString key = QString::fromStdString(server::make_api_key());
    settings_.set(Settings::Key::server_key, key);
    restart();
    return key;
}

void ServerController::remove_key() {
    settings_.set(Settings::Key::server_key, QString());
    restart();
}

void ServerController::cancel(std::uint64_t request) {
    queue([worker = worker_, request] {
        worker->cancel(request);
        worker->read();
    });
}

void ServerController::set_watching(bool watching) {
    if (!watching) return poll_.stop();
    poll_.start();
    if (state_ == State::on) queue([worker = worker_] { worker->read(); });
}

}  // namespace headroom::ui
