#pragma once

#include <QObject>
#include <QStringList>

#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include <spdlog/spdlog.h>

namespace headroom::ui {

// Keeps the newest lines of the program's log for the Log page. Lines may come from any thread; the rest is for the window's thread.
class LogBuffer : public QObject {
    Q_OBJECT

public:
    explicit LogBuffer(QObject* parent = nullptr);
    // Takes its sink out of the logger again.
    ~LogBuffer() override;

    // Adds itself to the default logger.
    void attach();
    [[nodiscard]] QStringList lines() const;

signals:
    void line_added(const QString& line);

private:
    class Sink;
    void add(std::string line);

    std::shared_ptr<Sink> sink_;
    mutable std::mutex mutex_;
    std::deque<std::string> lines_;
};

}  // namespace headroom::ui
