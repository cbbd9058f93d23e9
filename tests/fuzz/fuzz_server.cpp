// Any bytes as requests to the server's APIs, without sockets: each is answered with a status of the list, an error with a sentence, JSON that is
// JSON and a stream whose events are; and nothing is stuck when the server is taken down behind it.
// Input: a byte that says after how many pieces of a stream the client leaves (from 128 on it stays), then one or several requests, a zero byte
// between them. A request is "POST /v1/completions", lines "Name: value", an empty line and the body; Host and Content-Type are added where they
// are missing.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <spdlog/spdlog.h>

#include "core/base/utf8.h"
#include "core/server/service.h"
#include "tests/fuzz/expect.h"
#include "tests/model/synthetic_model.h"

using namespace headroom;
using server::Json;

namespace {

// Conversations are short: a fuzzer wants many of them.
const test::SyntheticModel kModel{.family = "qwen3", .layers = 1, .feed_forward = 32, .context = 128, .qk_norm = true};
constexpr std::size_t kMostRequests = 4;

// A folder with two models, one of them loaded; made once.
struct Models {
    std::filesystem::path folder = std::filesystem::temp_directory_path() / "headroom-fuzz-server";
    std::shared_ptr<engine::Model> first;

    Models() {
        spdlog::set_level(spdlog::level::off);
        std::filesystem::create_directories(folder);
        for (const char* name : {"synthetic.gguf", "other.gguf"}) FUZZ_EXPECT(test::synthetic_writer(kModel).write(folder / name));
        auto loaded = engine::Model::load({.path = folder / "synthetic.gguf", .threads = 1, .device = "cpu"});
        FUZZ_EXPECT(loaded);
        first = std::move(*loaded);
    }
    [[nodiscard]] server::ServerOptions options() const {
        server::ServerOptions options;
        options.models.model_folder = folder;
        options.models.first_name = "synthetic";
        options.models.first_path = folder / "synthetic.gguf";
        options.models.first_model = first;
        options.models.load.threads = 1;
        options.models.load.device = "cpu";
        options.models.load.drivers = {.libraries = folder, .sysfs = folder};  // no devices: the answer must not depend on the machine
        options.models.scheduler.kept_bytes = 1 << 20;
        return options;
    }
};

const Models& models() {
    static const Models made;
    return made;
}

class FuzzClient final : public server::Client, public server::ByteSink {
public:
    explicit FuzzClient(std::size_t patience) : patience_(patience) {}
    bool gone() override { return pieces_ > patience_; }
    bool write(std::string_view bytes) override {
        if (++pieces_ > patience_) return false;
        text += bytes;
        return true;
    }
    std::string text;

private:
    std::size_t patience_;
    std::size_t pieces_ = 0;
};

server::HttpRequest read_request(std::string_view text) {
    server::HttpRequest request;
    request.remote = "127.0.0.1";
    const auto next_line = [&] {
        const auto end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        return line;
    };
    const std::string_view first = next_line();
    const auto blank = first.find(' ');
    request.method = first.substr(0, blank);
    if (blank != std::string_view::npos) request.path = first.substr(blank + 1);
    for (std::string_view line = next_line(); !line.empty(); line = next_line()) {
        const auto colon = line.find(": ");
        if (colon != std::string_view::npos) request.headers.emplace_back(line.substr(0, colon), line.substr(colon + 2));
    }
    if (request.count("Host") == 0) request.headers.emplace_back("Host", "localhost:8080");
    if (request.count("Content-Type") == 0) request.headers.emplace_back("Content-Type", "application/json");
    request.body = text;
    return request;
}

bool is_json(std::string_view text) { return !Json::parse(text, nullptr, false).is_discarded(); }

void check_stream(const server::HttpResponse& response, std::string_view text) {
    const bool events = response.content_type == "text/event-stream";
    FUZZ_EXPECT(events || response.content_type == "application/x-ndjson");
    const std::string_view end = events ? "\n\n" : "\n";
    while (!text.empty()) {
        const auto at = text.find(end);
        FUZZ_EXPECT(at != std::string_view::npos);
        std::string_view piece = text.substr(0, at);
        text.remove_prefix(at + end.size());
        if (events) {
            if (piece.starts_with(": ")) continue;
            FUZZ_EXPECT(piece.starts_with("data: "));
            piece.remove_prefix(6);
            if (piece == "[DONE]") {
                FUZZ_EXPECT(text.empty());
                continue;
            }
        }
        FUZZ_EXPECT(is_json(piece));
    }
}

void check_response(const server::HttpRequest& request, const server::HttpResponse& response) {
    constexpr std::array kStatuses{200, 204, 400, 401, 403, 404, 405, 409, 415, 429, 500, 503};
    FUZZ_EXPECT(std::ranges::find(kStatuses, response.status) != kStatuses.end());
    if (response.stream || response.status == 204) return;
    FUZZ_EXPECT(utf8_valid_prefix(response.body) == response.body.size());
    if (response.content_type != "application/json") return;
    const Json body = Json::parse(response.body, nullptr, false);
    FUZZ_EXPECT(body.is_object());
    if (response.status == 200) return;
    FUZZ_EXPECT(body.contains("error"));
    const Json error = body["error"];
    const bool ollama = request.path.starts_with("/api/");
    FUZZ_EXPECT(ollama ? error.is_string() && !error.get<std::string>().empty()
                       : error.is_object() && error["message"].is_string() && !error["message"].get<std::string>().empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::size_t patience = data[0] < 128 ? data[0] : SIZE_MAX;
    std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
    server::Service service(models().options(), [] { return 1; });
    for (std::size_t i = 0; i < kMostRequests && !rest.empty(); ++i) {
        const auto end = rest.find('\0');
        const server::HttpRequest request = read_request(rest.substr(0, end));
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
        server::HttpRequest head = request;
        head.body.clear();
        if (const auto refused = service.check(head)) {
            check_response(request, *refused);
            continue;
        }
        FuzzClient client(patience);
        const server::HttpResponse response = service.handle(request, client);
        check_response(request, response);
        if (!response.stream) continue;
        const bool whole = response.stream(client);
        check_stream(response, client.text);
        FUZZ_EXPECT(whole || patience != SIZE_MAX || client.text.find("\"error\"") != std::string::npos);
    }
    return 0;
}
