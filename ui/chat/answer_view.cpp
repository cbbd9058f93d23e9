#include "ui/chat/answer_view.h"

#include <QHBoxLayout>
#include <QLocale>
#include <QVBoxLayout>

#include "ui/chat/branch_switch.h"
#include "ui/chat/reasoning.h"
#include "ui/chat/reasoning_view.h"
#include "ui/markdown/markdown_view.h"
#include "ui/theme/copy_button.h"

namespace headroom::ui {

AnswerView::AnswerView(const Theme& theme, QWidget* parent)
    : MessageView(parent), column_(new QVBoxLayout(this)), text_(new MarkdownView(theme, this)), status_(new QLabel(this)),
      error_(new QFrame(this)), error_text_(new QLabel(error_)), retry_(new QPushButton(tr("Try again"), error_)),
      actions_(new QWidget(this)), branches_(new BranchSwitch(theme, actions_)), copy_(new CopyButton(theme, tr("Copy answer"), actions_)),
      regenerate_(new IconButton(theme, QStringLiteral("regenerate"), tr("Answer again"), actions_, tr("Ctrl+R"))),
      figures_(new QLabel(actions_)), theme_(theme) {
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Minimum);
    text_->setObjectName(QStringLiteral("answer"));
    status_->setObjectName(QStringLiteral("answer_status"));
    status_->setProperty("muted", true);
    error_->setObjectName(QStringLiteral("error_box"));
    error_text_->setObjectName(QStringLiteral("error_text"));
    error_text_->setTextFormat(Qt::PlainText);
    error_text_->setWordWrap(true);
    error_text_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    retry_->setObjectName(QStringLiteral("retry"));
    auto* error_row = new QHBoxLayout(error_);
    error_row->setContentsMargins(theme.px(16), theme.px(12), theme.px(12), theme.px(12));
    error_row->setSpacing(theme.px(12));
    auto* sign = new QLabel(error_);
    sign->setPixmap(theme.icon(QStringLiteral("warning"), ColorRole::danger).pixmap(theme.px(20)));
    error_row->addWidget(sign, 0, Qt::AlignTop);
    error_row->addWidget(error_text_, 1);
    error_row->addWidget(retry_, 0, Qt::AlignTop);

    copy_->setObjectName(QStringLiteral("copy_answer"));
    copy_->set_source([this] { return answer_; });
    regenerate_->setObjectName(QStringLiteral("regenerate"));
    figures_->setObjectName(QStringLiteral("answer_figures"));
    figures_->setProperty("muted", true);
    auto* row = new QHBoxLayout(actions_);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    row->addWidget(branches_);
    row->addWidget(copy_);
    row->addWidget(regenerate_);
    row->addSpacing(theme.px(8));
    row->addWidget(figures_, 1);

    column_->setContentsMargins(0, theme.px(8), 0, theme.px(8));
    column_->setSpacing(theme.px(8));
    column_->addWidget(text_);
    column_->addWidget(status_);
    column_->addWidget(error_);
    column_->addWidget(actions_);

    connect(branches_, &BranchSwitch::selected, this, &MessageView::branch_selected);
    connect(regenerate_, &QToolButton::clicked, this, [this] { emit regenerate(id_); });
    connect(retry_, &QPushButton::clicked, this, [this] { emit regenerate(id_); });
}

void AnswerView::show_message(const Message& message, const ChatService::Progress& progress, const std::vector<qint64>& siblings,
                              bool busy) {
    const AnswerParts parts = split_reasoning(message.text);
    const bool streaming = message.state == MessageState::streaming;
    if (!parts.reasoning.isEmpty() || (parts.thinking && streaming)) {
        if (!reasoning_) {
            reasoning_ = new ReasoningView(theme_, this);
            reasoning_->setObjectName(QStringLiteral("reasoning"));
            column_->insertWidget(0, reasoning_);
        }
        reasoning_->set_reasoning(parts.reasoning.toString(), parts.thinking && streaming, message.thinking_ms);
    }
    if (reasoning_) reasoning_->setVisible(!parts.reasoning.isEmpty() || (parts.thinking && streaming));
    answer_ = parts.answer.toString();
    text_->set_text(answer_);
    text_->setVisible(!answer_.isEmpty());

    const QString status = status_text(message, progress);
    status_->setText(status);
    status_->setVisible(!status.isEmpty());
    error_->setVisible(message.state == MessageState::failed);
    error_text_->setText(message.error);
    retry_->setEnabled(!busy);
    actions_->setVisible(!streaming);
    copy_->setVisible(!answer_.isEmpty());
    regenerate_->setVisible(message.state != MessageState::failed);
    regenerate_->setEnabled(!busy);
    branches_->set_branches(siblings, id_, !busy);
    figures_->setText(figures_text(message));
    figures_->setToolTip(message.model);
}

QString AnswerView::status_text(const Message& message, const ChatService::Progress& progress) const {
    if (message.state == MessageState::stopped && message.text.isEmpty()) return tr("Stopped before the answer began.");
    if (message.state == MessageState::complete && answer_.isEmpty()) return tr("The model ended its answer without a word.");
    if (message.state != MessageState::streaming) return {};
    using Phase = ChatService::Progress::Phase;
    switch (progress.phase) {
        case Phase::waiting_for_model: return tr("Will be answered when the model is ready.");
        case Phase::waiting_for_turn: return tr("Will be answered after the one that is being made.");
        case Phase::reading:
            if (progress.prompt_total <= 0 || progress.prompt_done >= progress.prompt_total) return tr("Reading…");
            return tr("Reading… %1 %").arg(100 * progress.prompt_done / progress.prompt_total);
        case Phase::none:
        case Phase::thinking:
        case Phase::writing: return {};
    }
    return {};
}

QString AnswerView::figures_text(const Message& message) const {
    QStringList parts;
    const QLocale locale;
    if (message.tokens_per_second > 0) {
        const int digits = message.tokens_per_second < 10 ? 1 : 0;
        parts << tr("%1 tok/s").arg(locale.toString(message.tokens_per_second, 'f', digits));
    }
    if (message.completion_tokens == 1) parts << tr("1 token");
    if (message.completion_tokens > 1) parts << tr("%1 tokens").arg(locale.toString(message.completion_tokens));
    if (message.state == MessageState::stopped && !message.text.isEmpty()) parts << tr("stopped");
    if (message.state == MessageState::length) parts << tr("cut off: no room left in the context");
    return parts.join(QStringLiteral(" · "));
}

void AnswerView::rebuild() { text_->rebuild(); }

}  // namespace headroom::ui
