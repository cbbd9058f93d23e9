#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "core/server/server.h"

namespace headroom::ui {

struct ServerSetup {
    int port = 8080;
    std::string key;                        // empty: none is asked for
    std::vector<std::string> origins;       // of web pages that may use the server
    std::string model_name;                 // what clients call the model
    std::filesystem::path model_path;
    std::shared_ptr<engine::Model> model;   // the window's
};

// What the window needs of the local server. Called from the server's worker thread only. The seam for tests.
class ServerBackend {
public:
    virtual ~ServerBackend() = default;

    // As server::Server: returns the address. One at a time.
    virtual Result<std::string> start(const ServerSetup& setup) = 0;
    // Ends what is in progress and lets the model go.
    virtual void stop() = 0;
    virtual server::ServerStatus status() = 0;
    virtual void cancel(std::uint64_t request) = 0;
};

// The real one: for this computer alone, with the window's model alone.
class EngineServerBackend : public ServerBackend {
public:
    // data_folder: where verdicts on devices are kept; empty: nowhere.
    explicit EngineServerBackend(std::string version, std::filesystem::path data_folder = {}) : version_(std::move(version)), data_folder_(std::move(data_folder)) {}

    Result<std::string> start(const ServerSetup& setup) override;
    void stop() override { server_.reset(); }
    server::ServerStatus status() override { return server_ ? server_->status() : server::ServerStatus(); }
    void cancel(std::uint64_t request) override;

private:
    std::string version_;
    std::filesystem::path data_folder_;
    std::unique_ptr<server::Server> server_;
};

}  // namespace headroom::ui
