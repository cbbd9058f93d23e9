#include "ui/server/request_list.h"

#include <QDateTime>
#include <QLabel>
#include <QLocale>

#include "ui/theme/icon_button.h"

namespace headroom::ui {
namespace {

QString state_of(const server::RequestRecord& request) {
    if (request.status == 499) return RequestList::tr("client left");
    if (request.status != 0) return QString::number(request.status);
    if (request.stage == "waiting") return RequestList::tr("waits for the model");
    if (request.stage == "queued") return RequestList::tr("in the queue");
    if (request.stage == "reading") return RequestList::tr("reads %L1 tokens").arg(request.prompt_tokens);
    return RequestList::tr("answers, %L1 tokens").arg(request.completion_tokens);
}

QString speed_of(const server::RequestRecord& request) {
    const QLocale locale;
    QString text = RequestList::tr("%1 s").arg(locale.toString(request.seconds, 'f', 1));
    if (request.completion_tps > 0) text = RequestList::tr("%1 tok/s, %2").arg(locale.toString(request.completion_tps, 'f', 1), text);
    return text;
}

}  // namespace

RequestList::RequestList(const Theme& theme, const QString& name, const QString& empty, QWidget* parent)
    : QWidget(parent), theme_(theme), name_(name), grid_(new QGridLayout(this)), empty_(new QLabel(empty, this)) {
    empty_->setObjectName(name + QStringLiteral("_none"));
    empty_->setProperty("muted", true);
    grid_->setContentsMargins(0, 0, 0, 0);
    grid_->setHorizontalSpacing(theme.px(16));
    grid_->setVerticalSpacing(theme.px(4));
    grid_->setColumnStretch(0, 1);
    grid_->addWidget(empty_, 0, 0, 1, 4);
}

RequestList::Row& RequestList::row(std::size_t i) {
    while (rows_.size() <= i) {
        const int line = static_cast<int>(rows_.size()) + 1;
        const auto label = [&](const char* part, int column) {
            auto* made = new QLabel(this);
            made->setObjectName(name_ + QLatin1String(part));
            made->setTextFormat(Qt::PlainText);
            grid_->addWidget(made, line, column);
            return made;
        };
        auto* cancel = new IconButton(theme_, QStringLiteral("close"), tr("End this request"), this);
        cancel->setObjectName(name_ + QStringLiteral("_cancel"));
        const std::size_t index = rows_.size();
        connect(cancel, &QToolButton::clicked, this, [this, index] { emit cancelled(rows_[index].number); });
        grid_->addWidget(cancel, line, 3);
        rows_.push_back({label("_what", 0), label("_state", 1), label("_speed", 2), cancel});
        rows_.back().what->setWordWrap(true);
        rows_.back().speed->setAlignment(Qt::AlignTrailing | Qt::AlignVCenter);
        rows_.back().speed->setProperty("muted", true);
    }
    return rows_[i];
}

void RequestList::set_requests(const std::vector<server::RequestRecord>& requests) {
    empty_->setVisible(requests.empty());
    for (std::size_t i = 0; i < std::max(requests.size(), rows_.size()); ++i) {
        const bool shown = i < requests.size();
        Row& one = row(i);
        for (QWidget* widget : {static_cast<QWidget*>(one.what), static_cast<QWidget*>(one.state), static_cast<QWidget*>(one.speed)}) widget->setVisible(shown);
        one.cancel->setVisible(shown && requests[i].status == 0);
        if (!shown) continue;
        const server::RequestRecord& request = requests[i];
        one.number = request.number;
        const auto time = QDateTime::fromMSecsSinceEpoch(std::chrono::duration_cast<std::chrono::milliseconds>(request.time.time_since_epoch()).count());
        one.what->setText(QStringLiteral("%1  %2").arg(QLocale().toString(time.time(), QStringLiteral("HH:mm:ss")), QString::fromStdString(request.action)));
        one.state->setText(state_of(request));
        one.speed->setText(speed_of(request));
    }
}

}  // namespace headroom::ui
