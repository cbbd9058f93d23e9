#include "ui/pages/log_buffer.h"

#include <algorithm>

#include <spdlog/sinks/base_sink.h>

namespace headroom::ui {
namespace {

constexpr std::size_t kLines = 5'000;

}  // namespace

class LogBuffer::Sink : public spdlog::sinks::base_sink<std::mutex> {
public:
    explicit Sink(LogBuffer& buffer) : buffer_(buffer) {}

protected:
    void sink_it_(const spdlog::details::log_msg& message) override {
        spdlog::memory_buf_t text;
        formatter_->format(message, text);
        std::string line(text.data(), text.size());
        while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
        buffer_.add(std::move(line));
    }
    void flush_() override {}

private:
    LogBuffer& buffer_;
};

LogBuffer::LogBuffer(QObject* parent) : QObject(parent), sink_(std::make_shared<Sink>(*this)) {
    sink_->set_pattern("%H:%M:%S.%e %l: %v");
}

LogBuffer::~LogBuffer() { std::erase(spdlog::default_logger()->sinks(), sink_); }

void LogBuffer::attach() { spdlog::default_logger()->sinks().push_back(sink_); }

QStringList LogBuffer::lines() const {
    const std::scoped_lock lock(mutex_);
    QStringList result;
    for (const std::string& line : lines_) result << QString::fromStdString(line);
    return result;
}

void LogBuffer::add(std::string line) {
    const QString shown = QString::fromStdString(line);
    {
        const std::scoped_lock lock(mutex_);
        lines_.push_back(std::move(line));
        if (lines_.size() > kLines) lines_.pop_front();
    }
    emit line_added(shown);  // queued to the window where another thread logs
}

}  // namespace headroom::ui
