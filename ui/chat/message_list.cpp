#include "ui/chat/message_list.h"

#include <QCoreApplication>
#include <QElapsedTimer>
#include <QScrollBar>

#include <algorithm>

#include "ui/chat/answer_view.h"
#include "ui/chat/user_message_view.h"
#include "ui/theme/centered_column.h"
#include "ui/theme/icon_button.h"

namespace headroom::ui {
namespace {

constexpr std::size_t kFirstShown = 30;    // messages that are made at once
constexpr int kUpdateMs = 33;              // at most 30 updates a second
constexpr int kNearEnd = 32;               // pixels from the end that still count as the end

}  // namespace

MessageList::MessageList(const Theme& theme, ChatService& chats, QWidget* parent)
    : QScrollArea(parent), theme_(theme), chats_(chats), column_(new QWidget(this)), layout_(new QVBoxLayout(column_)),
      to_end_(new IconButton(theme, QStringLiteral("arrow-down"), tr("To the newest message"), this, tr("Ctrl+End"))) {
    setObjectName(QStringLiteral("message_list"));
    setAccessibleName(tr("Messages"));
    setFrameShape(QFrame::NoFrame);
    setWidgetResizable(true);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    column_->setObjectName(QStringLiteral("message_column"));
    layout_->setSpacing(0);
    layout_->addStretch(1);
    setWidget(column_);
    to_end_->setObjectName(QStringLiteral("to_end"));
    to_end_->hide();
    connect(to_end_, &QToolButton::clicked, this, &MessageList::scroll_to_end);
    update_timer_.setSingleShot(true);
    connect(&update_timer_, &QTimer::timeout, this, &MessageList::update_pending);
    connect(verticalScrollBar(), &QScrollBar::valueChanged, this, &MessageList::on_scrolled);
    connect(verticalScrollBar(), &QScrollBar::rangeChanged, this, &MessageList::on_range_changed);
    connect(&chats_, &ChatService::opened, this, [this] {
        follows_ = true;
        show_path(false);
    });
    connect(&chats_, &ChatService::path_changed, this, [this] { show_path(true); });
    connect(&chats_, &ChatService::message_changed, this, &MessageList::message_changed);
    connect(&chats_, &ChatService::busy_changed, this, [this] {
        for (MessageView* view : views_) update_message(*view);
    });
    connect(&theme_, &Theme::changed, this, &MessageList::rebuild);
    connect(&theme_, &Theme::changed, to_end_, [this] { resizeEvent(nullptr); });
}

MessageView* MessageList::make_view(qint64 id) {
    MessageView* view = nullptr;
    if (chats_.tree().find(id)->role == Role::user) {
        view = new UserMessageView(theme_, column_);
        view->setObjectName(QStringLiteral("user_message"));
    } else {
        view = new AnswerView(theme_, column_);
        view->setObjectName(QStringLiteral("answer_message"));
    }
    connect(view, &MessageView::branch_selected, &chats_, &ChatService::select_branch);
    connect(view, &MessageView::edited, &chats_, &ChatService::edit);
    connect(view, &MessageView::regenerate, &chats_, &ChatService::regenerate);
    view->set_id(id);
    update_message(*view);
    return view;
}

void MessageList::show_path(bool keep_position) {
    const std::vector<qint64> path = chats_.tree().path();
    // Views of messages that stay are kept: only the changed end of the path is made anew.
    const std::size_t shown_from = path_.size() - views_.size();
    std::size_t same = 0;
    while (keep_position && same < path.size() && same < path_.size() && path[same] == path_[same]) ++same;
    if (!keep_position || same < shown_from) same = 0;
    const std::size_t keep = same > shown_from ? same - shown_from : 0;
    while (views_.size() > keep) {
        views_.back()->hide();
        layout_->removeWidget(views_.back());
        views_.back()->deleteLater();
        views_.pop_back();
    }
    const bool grew = path.size() > path_.size();
    path_ = path;
    std::size_t from = keep > 0 ? same : 0;
    if (keep == 0 && path_.size() > kFirstShown) from = path_.size() - kFirstShown;
    for (std::size_t i = from; i < path_.size(); ++i) {
        views_.push_back(make_view(path_[i]));
        layout_->insertWidget(layout_->count() - 1, views_.back());
        views_.back()->show();
    }
    if (!keep_position || grew) {
        settle();
        scroll_to_end();
    }
}

void MessageList::show_earlier() {
    if (views_.size() >= path_.size() || from_end_ >= 0) return;
    const std::size_t shown_from = path_.size() - views_.size();
    const std::size_t from = shown_from > kFirstShown ? shown_from - kFirstShown : 0;
    from_end_ = verticalScrollBar()->maximum() - verticalScrollBar()->value();
    for (std::size_t i = shown_from; i-- > from;) {
        MessageView* view = make_view(path_[i]);
        views_.insert(views_.begin(), view);
        layout_->insertWidget(0, view);
        view->show();
    }
    settle();
    from_end_ = -1;
}

// Lays new messages out now: widths flow down, heights come back up, so that the scroll bar's range is right at once.
void MessageList::settle() {
    for (int pass = 0; pass < 4; ++pass) QCoreApplication::sendPostedEvents(nullptr, QEvent::LayoutRequest);
}

void MessageList::update_message(MessageView& view) {
    if (const Message* message = chats_.tree().find(view.id())) {
        view.show_message(*message, chats_.progress(message->id), chats_.tree().siblings(message->id), chats_.busy());
    }
}

void MessageList::message_changed(qint64 message) {
    pending_.insert(message);
    if (!update_timer_.isActive()) update_timer_.start(kUpdateMs);
}

void MessageList::update_pending() {
    QElapsedTimer spent;
    spent.start();
    for (MessageView* view : views_) {
        if (!pending_.contains(view->id())) continue;
        update_message(*view);
        ++updates_;
    }
    pending_.clear();
    // A message that is slow to draw is drawn less often, so that the window stays quick.
    update_timer_.setInterval(std::max<int>(kUpdateMs, static_cast<int>(spent.elapsed()) * 4));
}

void MessageList::rebuild() {
    for (MessageView* view : views_) {
        layout_->removeWidget(view);
        view->deleteLater();
    }
    views_.clear();
    path_.clear();
    show_path(false);
}

void MessageList::scroll_to_end() {
    follows_ = true;
    adjusting_ = true;
    verticalScrollBar()->setValue(verticalScrollBar()->maximum());
    adjusting_ = false;
    to_end_->hide();
}

void MessageList::on_scrolled(int value) {
    if (!adjusting_) follows_ = value >= verticalScrollBar()->maximum() - kNearEnd;
    to_end_->setVisible(!follows_ && verticalScrollBar()->maximum() > 0);
    if (!adjusting_ && value < viewport()->height() / 2) show_earlier();
}

void MessageList::on_range_changed(int, int maximum) {
    adjusting_ = true;
    if (from_end_ >= 0) {
        verticalScrollBar()->setValue(maximum - from_end_);
    } else if (follows_) {
        verticalScrollBar()->setValue(maximum);
    }
    adjusting_ = false;
    to_end_->setVisible(!follows_ && maximum > 0);
}

void MessageList::resizeEvent(QResizeEvent* event) {
    if (event) QScrollArea::resizeEvent(event);
    // In line with the field below, which has no scroll bar beside it.
    const int side = CenteredColumn::side(theme_, width());
    const int beside_bar = side - (width() - viewport()->width());
    layout_->setContentsMargins(isRightToLeft() ? beside_bar : side, theme_.px(16), isRightToLeft() ? side : beside_bar, theme_.px(16));
    const QSize button = to_end_->sizeHint();
    to_end_->setGeometry((width() - button.width()) / 2, height() - button.height() - theme_.px(8), button.width(), button.height());
    to_end_->raise();
}

void MessageList::edit_last() {
    for (auto view = views_.rbegin(); view != views_.rend(); ++view) {
        if (auto* user = qobject_cast<UserMessageView*>(*view)) {
            if (!chats_.busy()) user->begin_edit();
            ensureWidgetVisible(user);
            return;
        }
    }
}

}  // namespace headroom::ui
