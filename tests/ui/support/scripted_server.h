#pragma once

// A server that does what a test says: it stands in for the sockets.

#include <memory>
#include <mutex>
#include <optional>

#include "ui/controller/server_backend.h"

namespace headroom::test {

// Shared by the test and the backend.
class ServerScript {
public:
    void set_error(std::optional<Error> error) {
        const std::scoped_lock lock(mutex_);
        error_ = std::move(error);
    }
    void set_requests(std::vector<server::RequestRecord> in_progress, std::vector<server::RequestRecord> recent) {
        const std::scoped_lock lock(mutex_);
        status_.in_progress = std::move(in_progress);
        status_.recent = std::move(recent);
    }
    [[nodiscard]] std::vector<ui::ServerSetup> starts() const {
        const std::scoped_lock lock(mutex_);
        return starts_;
    }
    [[nodiscard]] bool running() const {
        const std::scoped_lock lock(mutex_);
        return running_;
    }
    [[nodiscard]] std::vector<std::uint64_t> cancelled() const {
        const std::scoped_lock lock(mutex_);
        return cancelled_;
    }

private:
    friend class ScriptedServer;
    mutable std::mutex mutex_;
    std::optional<Error> error_;
    server::ServerStatus status_;
    std::vector<ui::ServerSetup> starts_;
    std::vector<std::uint64_t> cancelled_;
    bool running_ = false;
};

class ScriptedServer : public ui::ServerBackend {
public:
    explicit ScriptedServer(std::shared_ptr<ServerScript> script) : script_(std::move(script)) {}

    Result<std::string> start(const ui::ServerSetup& setup) override {
        const std::scoped_lock lock(script_->mutex_);
        script_->starts_.push_back(setup);
        if (script_->error_) return std::unexpected(*script_->error_);
        script_->running_ = true;
        return fmt::format("http://127.0.0.1:{}", setup.port);
    }
    void stop() override {
        const std::scoped_lock lock(script_->mutex_);
        script_->running_ = false;
    }
    server::ServerStatus status() override {
        const std::scoped_lock lock(script_->mutex_);
        return script_->status_;
    }
    void cancel(std::uint64_t request) override {
        const std::scoped_lock lock(script_->mutex_);
        script_->cancelled_.push_back(request);
        std::erase_if(script_->status_.in_progress, [&](const server::RequestRecord& record) { return record.number == request; });
    }

private:
    std::shared_ptr<ServerScript> script_;
};

}  // namespace headroom::test
