#include "ui/controller/server_worker.h"

#include <spdlog/spdlog.h>

namespace headroom::ui {

void ServerWorker::start(const ServerSetup& setup) {
    const auto address = backend_->start(setup);
    if (address) {
        spdlog::info("the server listens at {}", *address);
        emit started(QString::fromStdString(*address));
    } else {
        spdlog::warn("server: {}", address.error().message);
        emit failed(QString::fromStdString(address.error().message));
    }
}

void ServerWorker::stop() {
    backend_->stop();
    emit stopped();
}

void ServerWorker::read() {
    const server::ServerStatus status = backend_->status();
    emit was_read(status.in_progress, status.recent);
}

}  // namespace headroom::ui
