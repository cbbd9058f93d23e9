#pragma once

// Requests in progress, and the last hundred.

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/engine/generation.h"

namespace headroom::server {

// A copy of what is known about a request.
struct RequestRecord {
    std::uint64_t number = 0;              // counts up, from 1
    std::chrono::system_clock::time_point time;
    std::string remote;                    // the client's address
    std::string action;                    // "POST /v1/chat/completions"
    std::string model;                     // empty: none was needed, or it is not known yet
    std::string stage;                     // "waiting", "queued", "reading", "answering", "done"
    int status = 0;                        // 0 while it is in progress; 499: the client left
    int prompt_tokens = 0;
    int reused_tokens = 0;
    int completion_tokens = 0;
    double seconds = 0;                    // so far, or in all
    double completion_tps = 0;
};

class RequestLog;

// A request in progress; when the last holder lets go, it has ended.
class LoggedRequest {
public:
    LoggedRequest(RequestLog& log, RequestRecord record) : log_(log), record_(std::move(record)) {}
    ~LoggedRequest();
    LoggedRequest(const LoggedRequest&) = delete;
    LoggedRequest& operator=(const LoggedRequest&) = delete;

    void set_model(std::string name);
    void set_status(int status);
    void add(std::shared_ptr<engine::Generation> generation);
    void cancel();
    [[nodiscard]] bool is_cancelled() const;
    [[nodiscard]] RequestRecord record() const;

private:
    RequestLog& log_;
    mutable std::mutex mutex_;
    RequestRecord record_;
    bool cancelled_ = false;
    std::vector<std::shared_ptr<engine::Generation>> generations_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

struct RequestTotals {
    std::uint64_t requests = 0;       // ended
    std::uint64_t by_class[6] = {};   // of them with status 2xx at [2], …
    std::uint64_t prompt_tokens = 0;
    std::uint64_t completion_tokens = 0;
};

// Any thread may call anything. Must outlive its requests.
class RequestLog {
public:
    static constexpr std::size_t kRecent = 100;

    [[nodiscard]] std::shared_ptr<LoggedRequest> begin(std::string remote, std::string action);
    [[nodiscard]] std::vector<RequestRecord> in_progress() const;  // in order of their numbers
    [[nodiscard]] std::vector<RequestRecord> recent() const;       // newest first
    [[nodiscard]] RequestTotals totals() const;
    // False: there is no such request in progress.
    bool cancel(std::uint64_t number);

private:
    friend class LoggedRequest;
    void end(const LoggedRequest* request, RequestRecord record);

    mutable std::mutex mutex_;
    std::uint64_t next_ = 1;
    std::vector<std::pair<const LoggedRequest*, std::weak_ptr<LoggedRequest>>> live_;
    std::deque<RequestRecord> recent_;
    RequestTotals totals_;
};

}  // namespace headroom::server
