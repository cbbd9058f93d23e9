#include "core/server/http_client.h"

#include <exception>

#include <httplib.h>

#include "core/base/quote.h"

namespace headroom::server {
namespace {

constexpr int kConnectSeconds = 5;
constexpr int kAnswerSeconds = 120;  // a change of the reserve may move gigabytes

}  // namespace

Result<ClientResponse> ask(const std::string& url, const std::string& path, const std::string& api_key, const std::string& body) try {
    std::string base = url;
    while (base.ends_with('/')) base.pop_back();
    if (!base.starts_with("http://") || base.find('/', 7) != std::string::npos) {
        return fail(ErrorKind::invalid_argument, "The URL {} is none of a server: expected is one such as http://127.0.0.1:8080", quote(url, 300));
    }
    httplib::Client client(base);
    client.set_connection_timeout(kConnectSeconds);
    client.set_read_timeout(kAnswerSeconds);
    httplib::Headers headers;
    if (!api_key.empty()) headers.emplace("Authorization", "Bearer " + api_key);
    const auto answer = body.empty() ? client.Get(path, headers) : client.Post(path, headers, body, "application/json");
    if (!answer) {
        return fail(ErrorKind::io, "No server answers at {} ({}): start one with headroom-cli serve, or name its address with --url", base,
                    httplib::to_string(answer.error()));
    }
    return ClientResponse{.status = answer->status, .body = answer->body};
} catch (const std::exception& error) {
    return fail(ErrorKind::io, "The server at {} could not be asked: {}", quote(url, 300), error.what());
}

}  // namespace headroom::server
