#pragma once

// The local server: OpenAI's and Ollama's APIs, VRAM and status, over HTTP.

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/engine/model_host.h"
#include "core/server/http_listener.h"
#include "core/server/request_log.h"

namespace headroom::server {

struct ServerOptions {
    std::string host = "127.0.0.1";
    int port = 8080;                       // 0: any free one
    std::string api_key{};                 // empty: none is asked for
    bool no_key = false;                   // other computers may do without one
    std::vector<std::string> origins{};    // of web pages that may use the server; "*": all
    std::vector<std::string> names{};      // further names of this computer that clients may use
    std::string version{};                 // of the program
    engine::ModelHostOptions models{};
    HttpLimits limits{};
    std::chrono::milliseconds ping{10'000};  // a stream without news for so long gets a sign of life
};

// A copy.
struct ServerStatus {
    std::string address;                   // "http://127.0.0.1:8080"
    int connections = 0;
    engine::ModelHostStatus models;
    std::vector<RequestRecord> in_progress;
    std::vector<RequestRecord> recent;     // the last hundred, newest first
    RequestTotals totals;
};

// Any thread may call anything.
class Server {
public:
    // Listens and answers until it is destroyed. Errors: invalid_argument (another address than loopback without a key), io (the address).
    [[nodiscard]] static Result<std::unique_ptr<Server>> start(ServerOptions options);
    // stop().
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    // Ends what is in progress, closes all connections. Returns when all threads have ended.
    void stop();

    [[nodiscard]] int port() const noexcept;
    [[nodiscard]] const std::string& address() const noexcept;
    [[nodiscard]] ServerStatus status() const;
    // Ends a request in progress. False: it has ended.
    bool cancel(std::uint64_t number);
    [[nodiscard]] engine::ModelHost& models() noexcept;

private:
    struct State;
    explicit Server(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace headroom::server
