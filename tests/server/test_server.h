#pragma once

// A server with a small model of random weights, on a free port.

#include <functional>

#include <QTemporaryDir>

#include "core/server/server.h"
#include "tests/engine/loaded_model.h"
#include "tests/server/http_exchange.h"

namespace headroom::test {

inline const SyntheticModel kServed{.family = "qwen3", .feed_forward = 32, .context = 2000, .qk_norm = true};

class TestServer {
public:
    using Change = std::function<void(server::ServerOptions&)>;
    // The model is called "synthetic"; the model folder holds "other.gguf", a second one, and "broken.gguf".
    explicit TestServer(const Change& change = {});
    [[nodiscard]] int port() const { return server_->port(); }
    [[nodiscard]] server::Server& server() { return *server_; }
    [[nodiscard]] const engine::Model& model() const { return *model_.get(); }
    // Waits until no request is in progress and the scheduler knows of none; false: there still is one after 20 s.
    [[nodiscard]] bool settle() const;

private:
    LoadedModel model_;
    QTemporaryDir folder_;
    std::unique_ptr<server::Server> server_;
};

// {"model": "synthetic", "messages": [{"role": "user", "content": text}], "temperature": 0, "max_tokens": …}
[[nodiscard]] Json chat_request(const std::string& text, int max_tokens);

}  // namespace headroom::test
