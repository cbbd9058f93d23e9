#pragma once

// HTTP by hand: what is sent and received is exactly what a test says.

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <QFloat16>  // Qt Test asks of every type whether it becomes one

#include <QTest>

#include <nlohmann/json.hpp>

// What a comparison shows. Without it Qt Test asks of every type that it could print whether JSON becomes one, among them a structure that
// Windows' own headers leave unfinished.
namespace QTest {
template <>
inline char* toString(const nlohmann::ordered_json& json) {
    return qstrdup(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}
}  // namespace QTest

namespace headroom::test {

using Json = nlohmann::ordered_json;
using Headers = std::vector<std::pair<std::string, std::string>>;

struct Reply {
    int status = -1;                             // -1: there was none
    std::map<std::string, std::string> headers;  // names in small letters
    std::string body;                            // put together where it came in chunks
    bool whole = false;                          // it came to its end
    [[nodiscard]] Json json() const { return Json::parse(body, nullptr, false); }
    // The error's fields of an answer in OpenAI's form; empty where it is none.
    [[nodiscard]] std::string error(const char* field) const;
    // The data of server-sent events, in order, without the pings.
    [[nodiscard]] std::vector<std::string> events() const;
    // The same as JSON, without the last "[DONE]", which must be there.
    [[nodiscard]] std::vector<Json> chunks() const;
    // Lines of JSON.
    [[nodiscard]] std::vector<Json> lines() const;
};

class Connection {
public:
    explicit Connection(int port);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    [[nodiscard]] bool open() const;
    void send(const std::string& bytes);
    // A whole request. Host and Content-Length are added unless `headers` has them.
    void request(const std::string& method, const std::string& path, const std::string& body = {}, const Headers& headers = {});
    // The next response; waits at most `ms`.
    [[nodiscard]] Reply reply(int ms = 60'000, bool head = false);
    // At least so many bytes of a response, or what came in time. They stay unread.
    [[nodiscard]] bool await(int bytes, int ms = 60'000);
    // Whether the server closes the connection in time.
    [[nodiscard]] bool await_close(int ms);
    // Takes no more than so many bytes from the system until they have been read here.
    void read_slowly(int bytes);
    void close();

private:
    struct Socket;
    bool more(int ms);
    std::unique_ptr<Socket> socket_;
    int port_;
};

// A port that another program listens on.
class TakenPort {
public:
    TakenPort();
    ~TakenPort();
    [[nodiscard]] int port() const;

private:
    struct Socket;
    std::unique_ptr<Socket> socket_;
};

// One request on a connection of its own.
[[nodiscard]] Reply ask(int port, const std::string& method, const std::string& path, const std::string& body = {}, const Headers& headers = {});
[[nodiscard]] Reply get(int port, const std::string& path, const Headers& headers = {});
[[nodiscard]] Reply post(int port, const std::string& path, const Json& body, const Headers& headers = {});

}  // namespace headroom::test
