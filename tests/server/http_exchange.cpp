#include "tests/server/http_exchange.h"

#include <algorithm>
#include <cctype>

#include <QElapsedTimer>
#include <QTcpServer>
#include <QTcpSocket>

namespace headroom::test {
namespace {

std::string lower(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

}  // namespace

std::string Reply::error(const char* field) const {
    const Json value = json();
    if (!value.is_object() || !value.contains("error") || !value["error"].is_object()) return {};
    const Json error = value["error"].value(field, Json());
    return error.is_string() ? error.get<std::string>() : std::string();
}

std::vector<std::string> Reply::events() const {
    std::vector<std::string> events;
    for (std::size_t begin = 0; begin < body.size();) {
        const auto end = body.find("\n\n", begin);
        if (end == std::string::npos) return {"an event without an end"};
        const std::string event = body.substr(begin, end - begin);
        if (event.starts_with("data: ")) {
            events.push_back(event.substr(6));
        } else if (!event.starts_with(":")) {
            return {"not an event: " + event};
        }
        begin = end + 2;
    }
    return events;
}

std::vector<Json> Reply::chunks() const {
    std::vector<std::string> all = events();
    if (all.empty() || all.back() != "[DONE]") return {};
    all.pop_back();
    std::vector<Json> chunks;
    for (const std::string& text : all) chunks.push_back(Json::parse(text, nullptr, false));
    return chunks;
}

std::vector<Json> Reply::lines() const {
    std::vector<Json> lines;
    for (std::size_t begin = 0; begin < body.size();) {
        const auto end = body.find('\n', begin);
        if (end == std::string::npos) return {};
        lines.push_back(Json::parse(body.substr(begin, end - begin), nullptr, false));
        begin = end + 1;
    }
    return lines;
}

struct Connection::Socket {
    QTcpSocket socket;
    QByteArray buffer;
};

Connection::Connection(int port) : socket_(std::make_unique<Socket>()), port_(port) {
    socket_->socket.connectToHost("127.0.0.1", static_cast<quint16>(port));
    socket_->socket.waitForConnected(10'000);
}
Connection::~Connection() = default;

bool Connection::open() const { return socket_->socket.state() == QAbstractSocket::ConnectedState; }
bool Connection::await_close(int ms) { return !open() || socket_->socket.waitForDisconnected(ms); }
void Connection::read_slowly(int bytes) { socket_->socket.setReadBufferSize(bytes); }

void Connection::send(const std::string& bytes) {
    QTcpSocket& socket = socket_->socket;
    socket.write(bytes.data(), static_cast<qint64>(bytes.size()));
    while (socket.bytesToWrite() > 0 && socket.waitForBytesWritten(5'000)) {}
}

void Connection::request(const std::string& method, const std::string& path, const std::string& body, const Headers& headers) {
    const auto has = [&](const char* name) { return std::ranges::any_of(headers, [&](const auto& header) { return lower(header.first) == name; }); };
    std::string text = method + " " + path + " HTTP/1.1\r\n";
    if (!has("host")) text += "Host: 127.0.0.1:" + std::to_string(port_) + "\r\n";
    for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
    if (!body.empty() && !has("content-length") && !has("transfer-encoding")) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    send(text + "\r\n" + body);
}

bool Connection::more(int ms) {
    QTcpSocket& socket = socket_->socket;
    if (socket.bytesAvailable() == 0 && !socket.waitForReadyRead(std::max(1, ms))) return false;
    socket_->buffer += socket.readAll();
    return true;
}

bool Connection::await(int bytes, int ms) {
    QElapsedTimer timer;
    timer.start();
    const QByteArray& buffer = socket_->buffer;
    while (buffer.size() < bytes && more(ms - static_cast<int>(timer.elapsed()))) {}
    return buffer.size() >= bytes;
}

Reply Connection::reply(int ms, bool head) {
    QElapsedTimer timer;
    timer.start();
    const auto left = [&] { return ms - static_cast<int>(timer.elapsed()); };
    QByteArray& buffer = socket_->buffer;
    Reply reply;
    while (!buffer.contains("\r\n\r\n")) {
        if (!more(left())) return reply;
    }
    const auto end = buffer.indexOf("\r\n\r\n");
    const QList<QByteArray> lines = buffer.left(end).split('\n');
    buffer.remove(0, end + 4);
    reply.status = lines[0].split(' ').value(1).toInt();
    for (qsizetype i = 1; i < lines.size(); ++i) {
        const auto colon = lines[i].indexOf(':');
        reply.headers[lower(lines[i].left(colon).toStdString())] = lines[i].mid(colon + 1).trimmed().toStdString();
    }
    if (head || reply.status == 204) {
        reply.whole = true;
        return reply;
    }
    if (reply.headers["transfer-encoding"] == "chunked") {
        for (;;) {
            while (!buffer.contains("\r\n")) {
                if (!more(left())) return reply;
            }
            const auto line = buffer.indexOf("\r\n");
            const qsizetype size = buffer.left(line).toLongLong(nullptr, 16);
            while (buffer.size() < line + 2 + size + 2) {
                if (!more(left())) return reply;
            }
            reply.body += buffer.mid(line + 2, size).toStdString();
            buffer.remove(0, line + 2 + size + 2);
            if (size == 0) break;
        }
        reply.whole = true;
    } else if (reply.headers.contains("content-length")) {
        const qsizetype size = std::stoll(reply.headers["content-length"]);
        while (buffer.size() < size) {
            if (!more(left())) return reply;
        }
        reply.body = buffer.left(size).toStdString();
        buffer.remove(0, size);
        reply.whole = true;
    } else {
        while (more(left())) {}
        reply.body = buffer.toStdString();
        buffer.clear();
        reply.whole = !open();
    }
    return reply;
}

void Connection::close() { socket_->socket.abort(); }

struct TakenPort::Socket {
    QTcpServer server;
};
TakenPort::TakenPort() : socket_(std::make_unique<Socket>()) { socket_->server.listen(QHostAddress::LocalHost); }
TakenPort::~TakenPort() = default;
int TakenPort::port() const { return socket_->server.serverPort(); }

Reply ask(int port, const std::string& method, const std::string& path, const std::string& body, const Headers& headers) {
    Connection connection(port);
    connection.request(method, path, body, headers);
    return connection.reply(60'000, method == "HEAD");
}

Reply get(int port, const std::string& path, const Headers& headers) { return ask(port, "GET", path, {}, headers); }

Reply post(int port, const std::string& path, const Json& body, const Headers& headers) {
    Headers all = headers;
    all.emplace_back("Content-Type", "application/json");
    return ask(port, "POST", path, body.dump(), all);
}

}  // namespace headroom::test
