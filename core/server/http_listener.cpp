#include "core/server/http_listener.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <exception>
#include <thread>
#include <utility>

#include <httplib.h>

#include "core/base/log.h"
#include "core/base/quote.h"
#include "core/base/system.h"
#include "core/server/connection_threads.h"
#include "core/server/socket.h"

namespace headroom::server {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kGlance = 100ms;              // how often a waiting thread looks whether the server is stopping
constexpr int kBacklog = 1024;
constexpr std::uint64_t kOpenFiles = 8192;
constexpr std::size_t kBuffer = 16 * 1024;
constexpr std::size_t kDrained = 1 << 20;    // of a body that was not wanted, before the connection is closed
constexpr auto kDrainTime = 500ms;

// One connection, on its thread.
class Connection final : public httplib::Stream, public Client {
public:
    Connection(SocketHandle socket, const HttpLimits& limits, const std::atomic<bool>& stopping)
        : socket_(socket), limits_(limits), stopping_(stopping), remote_(remote_address(socket)) {}
    ~Connection() override {
        if (must_close && !broken_) drain();
        close_socket(socket_);
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    // False: no request has come in time.
    bool await_request() {
        if (begin_ < end_) return true;
        return wait(Clock::now() + limits_.idle_time);
    }
    void begin_request() {
        deadline_ = Clock::now() + limits_.header_time;
        header_budget_ = limits_.header_bytes;
        in_headers_ = true;
    }
    void begin_body() {
        deadline_ = Clock::now() + limits_.body_time;
        in_headers_ = false;
    }

    bool gone() override { return stopping_ || broken_ || is_closed(socket_); }

    [[nodiscard]] bool is_readable() const override { return true; }
    [[nodiscard]] bool is_writable() const override { return !broken_; }
    ssize_t read(char* data, size_t size) override {
        if (in_headers_) {
            size = std::min(size, header_budget_);
            if (size == 0) return -1;
        }
        if (begin_ == end_) {
            if (!wait(deadline_)) return -1;
            const std::ptrdiff_t count = receive(socket_, buffer_.data(), buffer_.size());
            if (count <= 0) {
                broken_ = count < 0;
                return count;
            }
            begin_ = 0;
            end_ = static_cast<std::size_t>(count);
        }
        size = std::min(size, end_ - begin_);
        std::copy_n(buffer_.data() + begin_, size, data);
        begin_ += size;
        if (in_headers_) header_budget_ -= size;
        return static_cast<ssize_t>(size);
    }
    ssize_t write(const char* data, size_t size) override {
        std::size_t sent = 0;
        auto patience = Clock::now() + limits_.write_time;
        while (sent < size && !broken_) {
            const SocketWait state = wait_writable(socket_, kGlance);
            if (state == SocketWait::ready) {
                const std::ptrdiff_t count = send(socket_, data + sent, size - sent);
                if (count < 0) broken_ = true;
                if (count > 0) {
                    sent += static_cast<std::size_t>(count);
                    patience = Clock::now() + limits_.write_time;
                    continue;
                }
            }
            if (state == SocketWait::failed || stopping_ || Clock::now() > patience) broken_ = true;
        }
        return broken_ ? -1 : static_cast<ssize_t>(sent);
    }
    void get_remote_ip_and_port(std::string& ip, int& port) const override {
        ip = remote_.ip;
        port = remote_.port;
    }
    void get_local_ip_and_port(std::string& ip, int& port) const override {
        const SocketAddress local = local_address(socket_);
        ip = local.ip;
        port = local.port;
    }
    // The library refuses connections whose number select() cannot take; here nothing selects.
    [[nodiscard]] socket_t socket() const override { return 0; }

    HttpRequest request;      // the one that is being answered
    bool has_body = false;    // it says that it has one
    bool must_close = false;  // after this response: what follows is no request

private:
    bool wait(Clock::time_point until) {
        for (;;) {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
            if (left <= 0ms || stopping_) return false;
            switch (wait_readable(socket_, std::min<std::chrono::milliseconds>(left, kGlance))) {
                case SocketWait::ready: return true;
                case SocketWait::timeout: break;
                case SocketWait::failed: broken_ = true; return false;
            }
        }
    }
    // A client that is still sending would lose the response if the connection were closed at once.
    void drain() {
        end_sending(socket_);
        const auto until = Clock::now() + kDrainTime;
        for (std::size_t taken = 0; taken < kDrained;) {
            if (!wait(until)) return;
            const std::ptrdiff_t count = receive(socket_, buffer_.data(), buffer_.size());
            if (count <= 0) return;
            taken += static_cast<std::size_t>(count);
        }
    }

    SocketHandle socket_;
    const HttpLimits& limits_;
    const std::atomic<bool>& stopping_;
    SocketAddress remote_;
    std::array<char, kBuffer> buffer_;
    std::size_t begin_ = 0, end_ = 0;  // of what was received and not yet read
    bool broken_ = false;
    bool in_headers_ = true;
    std::size_t header_budget_ = 0;
    Clock::time_point deadline_{};
};

// The connection that this thread serves: the library hands handlers no more than the request.
thread_local Connection* t_connection = nullptr;
// The listening thread has no thread for the connection that it is about to hand out.
thread_local bool t_overloaded = false;

class Threads final : public httplib::TaskQueue {
public:
    explicit Threads(ConnectionThreads& threads) : threads_(threads) {}
    void enqueue(std::function<void()> task) override {
        if (threads_.run(task)) return;
        t_overloaded = true;
        task();
        t_overloaded = false;
    }
    void shutdown() override { threads_.finish(); }

private:
    ConnectionThreads& threads_;
};

class Sink final : public ByteSink {
public:
    explicit Sink(httplib::DataSink& sink) : sink_(sink) {}
    bool write(std::string_view bytes) override {
        if (!failed && !bytes.empty()) failed = !sink_.write(bytes.data(), bytes.size());
        return !failed;
    }
    bool failed = false;

private:
    httplib::DataSink& sink_;
};

// A number of decimal digits and nothing else.
std::optional<std::uint64_t> parse_length(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
    return value;
}

}  // namespace

class HttpListener::Impl final : public httplib::Server {
public:
    Impl(HttpHandlers handlers, const HttpLimits& limits) : handlers_(std::move(handlers)), limits_(limits), threads_(limits.connections) {
        new_task_queue = [this] { return new Threads(threads_); };
        set_keep_alive_timeout(std::chrono::duration_cast<std::chrono::seconds>(limits.idle_time).count());
        set_keep_alive_max_count(1'000'000);
        set_payload_max_length(limits.body_bytes);
        // One server for each address: without this the library would let a second program share it.
        set_socket_options([](socket_t socket) {
#ifdef _WIN32
            const int on = 1;
            (void)setsockopt(socket, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, reinterpret_cast<const char*>(&on), sizeof on);
#else
            const int on = 1;
            (void)setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
#endif
        });
        set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) { return before_body(request, response); });
        Post(".*", [this](const httplib::Request& request, httplib::Response& response, const httplib::ContentReader& reader) {
            with_body(request, response, reader);
        });
        set_expect_100_continue_handler([this](const httplib::Request& request, httplib::Response& response) {
            const auto length = parse_length(request.get_header_value("Content-Length"));
            if (!length || *length <= limits_.body_bytes) return 100;
            return response.status = 413;
        });
        set_error_handler([this](const httplib::Request& request, httplib::Response& response) {
            if (!response.body.empty()) return;
            if (t_connection != nullptr) t_connection->must_close = true;
            apply(handlers_.refuse(response.status), request, response);
        });
        set_exception_handler([this](const httplib::Request& request, httplib::Response& response, const std::exception_ptr& error) {
            try {
                std::rethrow_exception(error);
            } catch (const std::exception& what) {
                spdlog::error("A request to {} failed: {}", quote(request.path), printable(what.what(), 300));
            } catch (...) {
                spdlog::error("A request to {} failed", quote(request.path));
            }
            apply(handlers_.refuse(500), request, response);
        });
    }
    ~Impl() override { finish(); }

    Result<> begin(const std::string& host, int port) {
        (void)raise_open_file_limit(kOpenFiles);
        port_ = port;
        bool bound = false;
        if (port == 0) {
            port_ = bind_to_any_port(host);
            bound = port_ > 0;
        } else {
            bound = bind_to_port(host, port);
        }
        if (!bound) {
            return fail(ErrorKind::io, "{}:{} cannot be listened on: another program uses it, or it is not an address of this computer; choose "
                        "another port (--port) or address (--host)", host, port);
        }
        set_backlog(static_cast<SocketHandle>(svr_sock_.load()), kBacklog);
        thread_ = std::thread([this] { (void)listen_after_bind(); });
        while (!is_running()) std::this_thread::yield();
        return {};
    }
    void finish() {
        if (!thread_.joinable()) return;
        stopping_ = true;
        httplib::Server::stop();
        thread_.join();
    }
    [[nodiscard]] int port() const noexcept { return port_; }
    [[nodiscard]] int connections() const noexcept { return threads_.busy(); }

private:
    bool process_and_close_socket(socket_t socket) override {
        const auto handle = static_cast<SocketHandle>(socket);
        if (t_overloaded) {
            constexpr std::string_view busy = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
            (void)send(handle, busy.data(), busy.size());
            close_socket(handle);
            return false;
        }
        send_at_once(handle);
        const auto connection = std::make_unique<Connection>(handle, limits_, stopping_);
        t_connection = connection.get();
        try {
            serve(*connection);
        } catch (const std::exception& error) {  // while a response was being written
            spdlog::error("A connection failed: {}", printable(error.what(), 300));
        }
        t_connection = nullptr;
        return true;
    }

    void serve(Connection& connection) {
        const auto setup = [&](httplib::Request& request) {
            request.ranges.clear();                    // answers have no parts
            request.headers.erase("Accept-Encoding");  // and are not compressed: a stream would stick in the compressor
            connection.begin_body();
        };
        while (connection.await_request()) {
            connection.begin_request();
            bool closed = false;
            if (!process_request(connection, false, closed, setup) || closed || connection.must_close) return;
        }
    }

    HandlerResponse before_body(const httplib::Request& from, httplib::Response& to) {
        Connection& connection = *t_connection;
        HttpRequest& request = connection.request;
        request = {.method = from.method, .path = from.path, .headers = {}, .body = {}, .remote = from.remote_addr};
        for (const auto& [name, value] : from.headers) request.headers.emplace_back(name, value);

        const std::size_t lengths = request.count("Content-Length");
        const bool chunked = request.count("Transfer-Encoding") > 0;
        const auto length = lengths == 0 ? std::optional<std::uint64_t>(0) : parse_length(request.header("Content-Length"));
        connection.has_body = chunked || length.value_or(1) > 0;
        std::optional<HttpResponse> response;
        if (request.headers.size() > limits_.headers) {
            response = handlers_.refuse(431);
        } else if (lengths > 1 || !length || (chunked && (lengths > 0 || !equal_names(request.header("Transfer-Encoding"), "chunked")))) {
            response = handlers_.refuse(400);
        } else if (*length > limits_.body_bytes) {
            response = handlers_.refuse(413);
        } else {
            response = handlers_.check(request);
        }
        if (!response) {
            if (from.method == "POST") return HandlerResponse::Unhandled;  // with_body() is next
            response = handlers_.handle(request, connection);
        }
        if (connection.has_body) connection.must_close = true;
        apply(std::move(*response), from, to);
        return HandlerResponse::Handled;
    }

    void with_body(const httplib::Request& from, httplib::Response& to, const httplib::ContentReader& reader) {
        Connection& connection = *t_connection;
        bool too_large = false;
        bool whole = true;
        std::string& body = connection.request.body;
        if (connection.has_body) {
            whole = reader([&](const char* data, std::size_t size) {
                too_large = body.size() + size > limits_.body_bytes;
                if (!too_large) body.append(data, size);
                return !too_large;
            });
        }
        if (!whole) {
            connection.must_close = true;
            apply(handlers_.refuse(too_large ? 413 : 400), from, to);
            return;
        }
        apply(handlers_.handle(connection.request, connection), from, to);
    }

    void apply(HttpResponse response, const httplib::Request& request, httplib::Response& to) {
        to.status = response.status;
        for (const auto& [name, value] : response.headers) to.set_header(name, value);
        if (t_connection != nullptr && t_connection->must_close) to.set_header("Connection", "close");
        if (!response.stream) {
            if (response.body.empty()) return;
            to.body = std::move(response.body);
            to.set_header("Content-Type", response.content_type);
            return;
        }
        const auto provide = [stream = std::move(response.stream)](std::size_t, httplib::DataSink& sink) {
            Sink bytes(sink);
            if (!stream(bytes) || bytes.failed) return false;
            sink.done();
            return true;
        };
        if (request.version == "HTTP/1.0") {
            to.set_content_provider(response.content_type, provide);
            if (t_connection != nullptr) t_connection->must_close = true;
        } else {
            to.set_chunked_content_provider(response.content_type, provide);
        }
    }

    const HttpHandlers handlers_;
    const HttpLimits limits_;
    ConnectionThreads threads_;
    std::atomic<bool> stopping_{false};
    std::thread thread_;
    int port_ = 0;
};

HttpListener::HttpListener(HttpHandlers handlers, const HttpLimits& limits) : impl_(std::make_unique<Impl>(std::move(handlers), limits)) {}
HttpListener::~HttpListener() = default;
Result<> HttpListener::start(const std::string& host, int port) { return impl_->begin(host, port); }
int HttpListener::port() const noexcept { return impl_->port(); }
int HttpListener::connections() const noexcept { return impl_->connections(); }
void HttpListener::stop() { impl_->finish(); }

}  // namespace headroom::server
