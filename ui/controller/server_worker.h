#pragma once

#include <QObject>
#include <QString>

#include <memory>
#include <vector>

#include "ui/controller/server_backend.h"

namespace headroom::ui {

// Owns the backend; moved to the server's thread. ServerController queues its public functions and gets the signals queued back.
class ServerWorker : public QObject {
    Q_OBJECT

public:
    explicit ServerWorker(std::unique_ptr<ServerBackend> backend) : backend_(std::move(backend)) {}
    ~ServerWorker() override { backend_->stop(); }

    // Ends with started() or failed().
    void start(const ServerSetup& setup);
    // Ends with stopped().
    void stop();
    // Ends with was_read().
    void read();
    void cancel(std::uint64_t request) { backend_->cancel(request); }

signals:
    void started(const QString& address);
    void failed(const QString& problem);
    void stopped();
    void was_read(const std::vector<server::RequestRecord>& in_progress, const std::vector<server::RequestRecord>& recent);

private:
    std::unique_ptr<ServerBackend> backend_;
};

}  // namespace headroom::ui
