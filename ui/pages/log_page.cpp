#include "ui/pages/log_page.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>

#include "ui/pages/page_title.h"
#include "ui/theme/copy_button.h"

namespace headroom::ui {

LogPage::LogPage(const Theme& theme, LogBuffer& log, QWidget* parent) : QWidget(parent), text_(new QPlainTextEdit(this)) {
    text_->setObjectName(QStringLiteral("log_text"));
    text_->setAccessibleName(tr("Log"));
    text_->setReadOnly(true);
    text_->setTabChangesFocus(true);
    text_->setLineWrapMode(QPlainTextEdit::NoWrap);
    text_->setMaximumBlockCount(5'000);
    text_->setPlainText(log.lines().join(u'\n'));
    const auto set_font = [this, &theme] { text_->setFont(theme.code_font()); };
    set_font();
    connect(&theme, &Theme::changed, this, set_font);
    connect(&log, &LogBuffer::line_added, text_, &QPlainTextEdit::appendPlainText);  // follows its end unless scrolled away
    auto* copy = new CopyButton(theme, tr("Copy the log"), this);
    copy->setObjectName(QStringLiteral("copy_log"));
    copy->set_source([this] { return text_->toPlainText(); });
    auto* head = new QHBoxLayout;
    head->addWidget(new PageTitle(theme, tr("Log"), this), 1);
    head->addWidget(copy);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(theme.px(24), theme.px(16), theme.px(24), theme.px(24));
    column->setSpacing(theme.px(16));
    column->addLayout(head);
    column->addWidget(text_, 1);
    setFocusProxy(text_);
}

}  // namespace headroom::ui
