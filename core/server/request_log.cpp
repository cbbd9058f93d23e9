#include "core/server/request_log.h"

#include <algorithm>
#include <utility>

namespace headroom::server {
namespace {

std::string_view name_of(engine::Generation::Stage stage) {
    switch (stage) {
        case engine::Generation::Stage::queued: return "queued";
        case engine::Generation::Stage::reading: return "reading";
        case engine::Generation::Stage::answering: return "answering";
        case engine::Generation::Stage::ended: return "done";
    }
    return "done";
}

}  // namespace

LoggedRequest::~LoggedRequest() {
    RequestRecord last = record();
    last.stage = "done";
    log_.end(this, std::move(last));
}

void LoggedRequest::set_model(std::string name) {
    const std::scoped_lock lock(mutex_);
    record_.model = std::move(name);
}

void LoggedRequest::set_status(int status) {
    const std::scoped_lock lock(mutex_);
    record_.status = status;
}

void LoggedRequest::add(std::shared_ptr<engine::Generation> generation) {
    const std::scoped_lock lock(mutex_);
    if (cancelled_) generation->cancel();
    generations_.push_back(std::move(generation));
}

void LoggedRequest::cancel() {
    const std::scoped_lock lock(mutex_);
    cancelled_ = true;
    for (const auto& generation : generations_) generation->cancel();
}

bool LoggedRequest::is_cancelled() const {
    const std::scoped_lock lock(mutex_);
    return cancelled_;
}

RequestRecord LoggedRequest::record() const {
    const std::scoped_lock lock(mutex_);
    RequestRecord now = record_;
    now.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    now.stage = "waiting";
    for (const auto& generation : generations_) {
        const engine::GenerateStats stats = generation->stats();
        now.stage = name_of(generation->stage());
        now.prompt_tokens = stats.prompt_tokens;
        now.reused_tokens = stats.reused_tokens;
        now.completion_tokens += stats.completion_tokens;
        now.completion_tps += stats.completion_tps();
    }
    return now;
}

std::shared_ptr<LoggedRequest> RequestLog::begin(std::string remote, std::string action) {
    RequestRecord record{.time = std::chrono::system_clock::now(), .remote = std::move(remote), .action = std::move(action), .model = {}, .stage = {}};
    const std::scoped_lock lock(mutex_);
    record.number = next_++;
    auto request = std::make_shared<LoggedRequest>(*this, std::move(record));
    live_.emplace_back(request.get(), request);
    return request;
}

void RequestLog::end(const LoggedRequest* request, RequestRecord record) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(live_, [&](const auto& entry) { return entry.first == request; });
    ++totals_.requests;
    ++totals_.by_class[std::clamp(record.status / 100, 0, 5)];
    totals_.prompt_tokens += static_cast<std::uint64_t>(record.prompt_tokens);
    totals_.completion_tokens += static_cast<std::uint64_t>(record.completion_tokens);
    recent_.push_front(std::move(record));
    if (recent_.size() > kRecent) recent_.pop_back();
}

std::vector<RequestRecord> RequestLog::in_progress() const {
    std::vector<std::shared_ptr<LoggedRequest>> held;  // let go outside the lock: the last holder ends the request
    {
        const std::scoped_lock lock(mutex_);
        for (const auto& [raw, request] : live_) held.push_back(request.lock());
    }
    std::vector<RequestRecord> records;
    for (const auto& request : held) {
        if (request) records.push_back(request->record());
    }
    return records;
}

std::vector<RequestRecord> RequestLog::recent() const {
    const std::scoped_lock lock(mutex_);
    return {recent_.begin(), recent_.end()};
}

RequestTotals RequestLog::totals() const {
    const std::scoped_lock lock(mutex_);
    return totals_;
}

bool RequestLog::cancel(std::uint64_t number) {
    std::vector<std::shared_ptr<LoggedRequest>> held;
    {
        const std::scoped_lock lock(mutex_);
        for (const auto& [raw, request] : live_) held.push_back(request.lock());
    }
    for (const auto& request : held) {
        if (!request || request->record().number != number) continue;
        request->cancel();
        return true;
    }
    return false;
}

}  // namespace headroom::server
