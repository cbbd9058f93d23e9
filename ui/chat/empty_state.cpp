#include "ui/chat/empty_state.h"

#include <QLabel>
#include <QPixmap>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/pages/page_title.h"

namespace headroom::ui {

EmptyState::EmptyState(const Theme& theme, QWidget* parent)
    : QWidget(parent), theme_(theme), examples_(new QVBoxLayout), note_(new QLabel(this)), hint_(new QLabel(this)) {
    setObjectName(QStringLiteral("empty_state"));
    auto* logo = new QLabel(this);
    QPixmap drawing(QStringLiteral(":/icons/128/headroom.png"));
    drawing.setDevicePixelRatio(2);
    logo->setPixmap(drawing);
    logo->setAlignment(Qt::AlignCenter);
    auto* title = new PageTitle(theme, tr("What would you like to know?"), this);
    title->setObjectName(QStringLiteral("empty_title"));
    title->setAlignment(Qt::AlignCenter);
    note_->setObjectName(QStringLiteral("empty_note"));
    note_->setProperty("muted", true);
    note_->setWordWrap(true);
    note_->setAlignment(Qt::AlignCenter);
    hint_->setObjectName(QStringLiteral("empty_hint"));
    hint_->setWordWrap(true);
    hint_->setAlignment(Qt::AlignCenter);
    hint_->hide();
    auto* open = new QPushButton(tr("Open a model…"), this);
    open->setObjectName(QStringLiteral("empty_open_model"));
    open->setProperty("link", true);
    connect(open, &QPushButton::clicked, this, &EmptyState::open_model);
    examples_->setSpacing(theme.px(8));

    auto* column = new QVBoxLayout;
    column->setSpacing(theme.px(16));
    column->addStretch(2);
    column->addWidget(logo);
    column->addWidget(title);
    column->addWidget(note_);
    column->addSpacing(theme.px(8));
    column->addLayout(examples_);
    column->addWidget(open, 0, Qt::AlignHCenter);
    column->addStretch(3);
    column->addWidget(hint_);
    hint_->setContentsMargins(0, 0, 0, theme.px(8));
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(theme.px(24), 0, theme.px(24), 0);
    row->addStretch(1);
    row->addLayout(column, 6);
    row->addStretch(1);
    set_model(true);
}

void EmptyState::set_hint(const QString& text) {
    hint_->setText(text);
    hint_->setVisible(!text.isEmpty());
}

void EmptyState::set_model(bool builtin) {
    if (filled_ && builtin == builtin_) return;
    builtin_ = builtin;
    filled_ = true;
    while (QLayoutItem* item = examples_->takeAt(0)) {
        delete item->widget();
        delete item;
    }
    note_->setText(builtin ? tr("The small built-in model answers: it knows Headroom, the meaning of English words and small sums. "
                                "For everything else open a larger GGUF model, or drop one here.")
                           : tr("Everything stays on this computer."));
    const QStringList texts = builtin ? QStringList{tr("What is the reserve?"), tr("What does “serendipity” mean?"), tr("How much is 7 plus 12?")}
                                      : QStringList{tr("Explain how tides work, in five sentences."), tr("Write a haiku about memory."),
                                                    tr("Compare quicksort and mergesort in a table.")};
    for (const QString& text : texts) {
        auto* button = new QPushButton(text, this);
        button->setObjectName(QStringLiteral("example_%1").arg(examples_->count() + 1));
        button->setProperty("example", true);
        connect(button, &QPushButton::clicked, this, [this, text] { emit example_chosen(text); });
        examples_->addWidget(button);
    }
}

}  // namespace headroom::ui
