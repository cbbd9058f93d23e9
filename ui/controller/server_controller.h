#pragma once

#include <QObject>
#include <QStringList>
#include <QThread>
#include <QTimer>

#include <vector>

#include "ui/controller/engine_controller.h"
#include "ui/controller/server_worker.h"
#include "ui/store/settings.h"

namespace headroom::ui {

// The window's only door to the local server. Lives in the window's thread; never waits except in its destructor. The server answers with the
// window's model: it stops before another one is loaded, and starts again with that one.
class ServerController : public QObject {
    Q_OBJECT

public:
    enum class State {
        off,
        waiting,   // switched on; there is no model yet
        starting,
        on,
        failed,    // problem()
    };

    // settings: whether it is on, port, key and origins are kept there. Starts by itself where it was on.
    ServerController(std::unique_ptr<ServerBackend> backend, EngineController& engine, Settings& settings, QObject* parent = nullptr);
    // Stops the server and waits for the thread.
    ~ServerController() override;

    [[nodiscard]] State state() const { return state_; }
    [[nodiscard]] const QString& address() const { return address_; }  // `on`
    [[nodiscard]] const QString& problem() const { return problem_; }
    [[nodiscard]] bool is_wanted() const { return settings_.get(Settings::Key::server_on).toBool(); }
    [[nodiscard]] int port() const { return settings_.number(Settings::Key::server_port); }
    [[nodiscard]] bool has_key() const { return !settings_.text(Settings::Key::server_key).isEmpty(); }
    [[nodiscard]] QStringList origins() const { return settings_.get(Settings::Key::server_origins).toStringList(); }
    // What clients call the model; empty: there is none.
    [[nodiscard]] QString model_name() const;

    void set_wanted(bool wanted);
    // Each begins the server anew where it is on.
    void set_port(int port);
    void set_origins(const QStringList& origins);
    // A key that was not there before. Shown to the user once.
    QString make_key();
    void remove_key();

    [[nodiscard]] const std::vector<server::RequestRecord>& in_progress() const { return in_progress_; }
    [[nodiscard]] const std::vector<server::RequestRecord>& recent() const { return recent_; }  // newest first
    void cancel(std::uint64_t request);
    // While true the requests are read twice a second.
    void set_watching(bool watching);

    // The server still holds a model that the window has let go: no other one may be loaded.
    [[nodiscard]] bool holds_old_model() const { return running_ && engine_.model().state != ModelStatus::State::ready; }

signals:
    void changed();           // state, address, problem, key
    void requests_changed();
    void held_changed();      // holds_old_model()

private:
    void update();
    void restart();
    template <class Function>
    void queue(Function function);
    void set_state(State state);

    QThread thread_;
    ServerWorker* worker_;  // deleted in its thread
    EngineController& engine_;
    Settings& settings_;
    State state_ = State::off;
    QString address_, problem_;
    bool running_ = false;   // start() was queued, and stopped() or failed() has not come
    bool stopping_ = false;  // stop() was queued, and stopped() has not come
    bool reading_ = false;
    std::vector<server::RequestRecord> in_progress_, recent_;
    QTimer poll_;
};

}  // namespace headroom::ui
