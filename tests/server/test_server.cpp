#include "tests/server/test_server.h"

#include <fstream>
#include <thread>

#include <QElapsedTimer>

namespace headroom::test {

TestServer::TestServer(const Change& change) : model_(kServed) {
    const std::filesystem::path folder = from_utf8(folder_.path().toStdString());
    SyntheticModel other = kServed;
    other.seed = 2;
    must(synthetic_writer(other).write(folder / "other.gguf"));
    std::ofstream(folder / "broken.gguf") << "GGUF, but nothing else";
    server::ServerOptions options;
    options.port = 0;
    options.version = "test";
    options.models.model_folder = folder;
    options.models.first_name = "synthetic";
    options.models.first_path = model_.path();
    options.models.first_model = model_.get();
    options.models.load.device = "cpu";
    options.models.load.threads = 2;
    if (change) change(options);
    server_ = must(server::Server::start(std::move(options)));
}

bool TestServer::settle() const {
    QElapsedTimer timer;
    timer.start();
    const auto busy = [this] {
        const server::ServerStatus status = server_->status();
        return !status.in_progress.empty() || status.models.figures.running > 0 || status.models.figures.queued > 0;
    };
    while (busy()) {
        if (timer.elapsed() > 20'000) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
}

Json chat_request(const std::string& text, int max_tokens) {
    return {{"model", "synthetic"},
            {"messages", Json::array({{{"role", "user"}, {"content", text}}})},
            {"temperature", 0},
            {"max_tokens", max_tokens}};
}

}  // namespace headroom::test
