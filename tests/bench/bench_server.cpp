// The server under load: one client, then many at once, then clients that connect and vanish.
//
//   bench_server [-m MODEL] [--clients 64] [--seconds 60] [--vanish 500] [--device cpu] [--tokens 32] [--temperature 0.8] [--ctx 0]
//
// Prints tokens/s of one client and of all together, how many answers went on in a step, how fairly they were served, and what is left behind.
// With --temperature 0 the device chooses the words, else the host draws them. Ends with status 1 at an error or a request that does not end.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "core/base/paths.h"
#include "core/base/system.h"
#include "core/server/server.h"
#include "tests/server/http_exchange.h"

using namespace headroom;
using namespace headroom::test;
using Clock = std::chrono::steady_clock;

namespace {

struct Options {
    std::string model = "builtin";
    std::string device = "cpu";
    int clients = 64;
    int seconds = 60;
    int vanish = 500;
    int tokens = 32;
    double temperature = 0.8;
    int context = 0;  // 0: the model's own
};

struct ClientResult {
    std::vector<double> latencies;
    std::uint64_t tokens = 0;
    int errors = 0;
};

Json question(int client, int round, const Options& options) {
    return {{"messages", Json::array({{{"role", "user"}, {"content", fmt::format("Question {} of client {}: what is the reserve?", round, client)}}})},
            {"temperature", options.temperature}, {"seed", client * 1000 + round}, {"max_tokens", options.tokens}};
}

// All clients ask one question after another for so long.
std::vector<ClientResult> load(int port, int clients, const Options& options) {
    std::vector<ClientResult> results(static_cast<std::size_t>(clients));
    const auto until = Clock::now() + std::chrono::seconds(options.seconds);
    std::vector<std::jthread> threads;
    for (int client = 0; client < clients; ++client) {
        threads.emplace_back([&, client] {
            ClientResult& result = results[static_cast<std::size_t>(client)];
            Connection connection(port);
            for (int round = 0; Clock::now() < until; ++round) {
                const auto start = Clock::now();
                connection.request("POST", "/v1/chat/completions", question(client, round, options).dump(), {{"Content-Type", "application/json"}});
                const Reply reply = connection.reply(300'000);
                if (reply.status != 200) {
                    ++result.errors;
                    return;
                }
                result.latencies.push_back(std::chrono::duration<double>(Clock::now() - start).count());
                result.tokens += reply.json()["usage"]["completion_tokens"].get<std::uint64_t>();
            }
        });
    }
    return threads.clear(), results;
}

using Figures = engine::SchedulerFigures;

double report(const std::vector<ClientResult>& results, double seconds, const Figures& before, const Figures& after, int& errors) {
    std::uint64_t tokens = 0;
    std::size_t requests = 0;
    double fastest = 1e9, slowest = 0;
    for (const ClientResult& result : results) {
        tokens += result.tokens;
        requests += result.latencies.size();
        errors += result.errors;
        double sum = 0;
        for (const double latency : result.latencies) sum += latency;
        const double mean = result.latencies.empty() ? 0 : sum / static_cast<double>(result.latencies.size());
        fastest = std::min(fastest, mean);
        slowest = std::max(slowest, mean);
    }
    const double rate = static_cast<double>(tokens) / seconds;
    fmt::print("{:3} clients: {:8.1f} tok/s, {} requests, mean latency of the fastest client {:.3f} s, of the slowest {:.3f} s (ratio {:.2f}), {} errors\n",
               results.size(), rate, requests, fastest, slowest, fastest > 0 ? slowest / fastest : 0, errors);
    fmt::print("             {} steps, {:.1f} tokens each; {} tokens of prompts read, {} found\n", after.steps - before.steps,
               static_cast<double>(tokens) / static_cast<double>(std::max<std::uint64_t>(after.steps - before.steps, 1)),
               after.prompt_tokens - before.prompt_tokens, after.reused_tokens - before.reused_tokens);
    std::fflush(stdout);
    return rate;
}

// The same, told.
double measure(server::Server& server, int clients, const Options& options, int& errors) {
    const Figures before = server.status().models.figures;
    const auto start = Clock::now();
    const auto results = load(server.port(), clients, options);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return report(results, seconds, before, server.status().models.figures, errors);
}

void vanish(int port, int count, Options options) {
    options.tokens = 400;
    Json request = question(0, 0, options);
    request["stream"] = true;
    const std::string body = request.dump();
    std::atomic<int> next = 0;
    std::vector<std::jthread> threads;
    for (int t = 0; t < 50; ++t) {
        threads.emplace_back([&] {
            for (int i = next++; i < count; i = next++) {
                Connection connection(port);
                if (i % 4 == 1) connection.send("POST /v1/chat/completions HTTP/1.1\r\nHost: lo");
                if (i % 4 == 2) connection.request("POST", "/v1/chat/completions", body, {{"Content-Type", "application/json"}});
                if (i % 4 == 3) {
                    connection.request("POST", "/v1/chat/completions", body, {{"Content-Type", "application/json"}});
                    (void)connection.await(300, 2000);
                }
                connection.close();
            }
        });
    }
}

bool settle(server::Server& server) {
    for (int i = 0; i < 4000; ++i) {
        const server::ServerStatus status = server.status();
        if (status.in_progress.empty() && status.models.figures.running == 0 && status.models.figures.queued == 0) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string name = argv[i];
        const char* value = argv[i + 1];
        if (name == "-m") options.model = value;
        if (name == "--device") options.device = value;
        if (name == "--clients") options.clients = std::atoi(value);
        if (name == "--seconds") options.seconds = std::atoi(value);
        if (name == "--vanish") options.vanish = std::atoi(value);
        if (name == "--tokens") options.tokens = std::atoi(value);
        if (name == "--temperature") options.temperature = std::atof(value);
        if (name == "--ctx") options.context = std::atoi(value);
    }
    const auto path = engine::find_model(options.model, default_model_folder());
    if (!path) {
        fmt::print(stderr, "{}\n", path.error().message);
        return 1;
    }
    server::ServerOptions serve;
    serve.port = 0;
    serve.models.first_name = "measured";
    serve.models.first_path = *path;
    serve.models.load.device = options.device;
    serve.models.load.context = options.context;
    const auto started = server::Server::start(serve);
    if (!started) {
        fmt::print(stderr, "{}\n", started.error().message);
        return 1;
    }
    server::Server& server = **started;
    int errors = 0;
    (void)post(server.port(), "/v1/chat/completions", question(0, 0, options));  // loads the model
    const double one = measure(server, 1, options, errors);
    const double all = measure(server, options.clients, options, errors);
    fmt::print("all together: {:.2f} times one\n", all / one);
    bool left = !settle(server);
    const auto files = open_file_count().value_or(0);
    const auto figures = server.status().models.figures;
    vanish(server.port(), options.vanish, options);
    left = !settle(server) || left;
    const auto after = server.status().models.figures;
    fmt::print("{} clients vanished: {} running, {} queued, {} kept conversations ({} before), {} open files ({} before), peak memory {} MiB\n", options.vanish,
               after.running, after.queued, after.kept, figures.kept, open_file_count().value_or(0), files, peak_resident_bytes() >> 20);
    return errors > 0 || left || after.running > 0 || after.queued > 0 ? 1 : 0;
}
