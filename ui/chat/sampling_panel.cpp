#include "ui/chat/sampling_panel.h"

#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QRegularExpressionValidator>
#include <QScrollArea>
#include <QSpinBox>
#include <QVBoxLayout>

#include "ui/theme/icon_button.h"

namespace headroom::ui {

SamplingPanel::SamplingPanel(const Theme& theme, QWidget* parent) : QFrame(parent), system_prompt_(new QPlainTextEdit(this)) {
    setObjectName(QStringLiteral("sampling_panel"));
    setFixedWidth(theme.px(304));
    connect(&theme, &Theme::changed, this, [this, &theme] { setFixedWidth(theme.px(304)); });
    auto* title = new QLabel(tr("This chat"), this);
    title->setProperty("heading", true);
    auto* close = new IconButton(theme, QStringLiteral("close"), tr("Close"), this);
    close->setObjectName(QStringLiteral("close_sampling"));
    connect(close, &QToolButton::clicked, this, &SamplingPanel::close_requested);
    auto* head = new QHBoxLayout;
    head->addWidget(title, 1);
    head->addWidget(close);

    auto* prompt_label = new QLabel(tr("System prompt"), this);
    prompt_label->setBuddy(system_prompt_);
    system_prompt_->setObjectName(QStringLiteral("system_prompt"));
    system_prompt_->setAccessibleName(tr("System prompt"));
    system_prompt_->setPlaceholderText(tr("How the model is to answer: role, tone, language…"));
    system_prompt_->setTabChangesFocus(true);
    system_prompt_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    system_prompt_->setFixedHeight(theme.px(112));
    connect(system_prompt_, &QPlainTextEdit::textChanged, this, &SamplingPanel::edited);

    auto* form_widget = new QWidget(this);
    auto* form = new QFormLayout(form_widget);
    form->setContentsMargins(0, 0, theme.px(4), 0);
    form->setHorizontalSpacing(theme.px(16));
    form->setVerticalSpacing(theme.px(8));
    form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    form->setLabelAlignment(Qt::AlignLeading | Qt::AlignVCenter);
    temperature_ = add_number(*form, "temperature", tr("Temperature"), tr("How freely words are chosen. 0: always the likeliest."), 0, 5, 0.1);
    top_k_ = add_count(*form, "top_k", tr("Top k"), tr("Only the k likeliest words are drawn from."), 0, 100'000, tr("off"));
    top_p_ = add_number(*form, "top_p", tr("Top p"), tr("Only the likeliest words that together reach this probability. 1: off."), 0, 1, 0.05);
    min_p_ = add_number(*form, "min_p", tr("Min p"), tr("Words less likely than this share of the likeliest are left out. 0: off."), 0, 1, 0.01);
    repeat_ = add_number(*form, "repeat_penalty", tr("Repetition"), tr("Makes words seen lately less likely. 1: off."), 0.1, 10, 0.05);
    presence_ = add_number(*form, "presence_penalty", tr("Presence"), tr("Taken off once for a word seen lately. 0: off."), -2, 2, 0.1);
    frequency_ = add_number(*form, "frequency_penalty", tr("Frequency"), tr("Taken off for each time a word was seen lately. 0: off."), -2, 2, 0.1);
    max_tokens_ = add_count(*form, "max_tokens", tr("Longest answer"), tr("In tokens."), 0, 10'000'000, tr("no limit"));
    seed_ = new QLineEdit(this);
    seed_->setPlaceholderText(tr("random"));
    // 64 bits have at most 19 digits without a doubt.
    seed_->setValidator(new QRegularExpressionValidator(QRegularExpression(QStringLiteral("[0-9]{0,19}")), seed_));
    add_row(*form, seed_, "seed", tr("Seed"), tr("The same seed and text give the same answer."));
    connect(seed_, &QLineEdit::textEdited, this, &SamplingPanel::edited);

    auto* reset = new QPushButton(tr("Back to defaults"), this);
    reset->setObjectName(QStringLiteral("reset_sampling"));
    connect(reset, &QPushButton::clicked, this, [this] {
        ConversationSettings defaults;
        defaults.system_prompt = system_prompt_->toPlainText();
        set_settings(defaults);
        edited();
    });

    auto* inside = new QWidget(this);
    auto* column = new QVBoxLayout(inside);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(theme.px(8));
    column->addWidget(prompt_label);
    column->addWidget(system_prompt_);
    column->addSpacing(theme.px(8));
    column->addWidget(form_widget);
    column->addSpacing(theme.px(8));
    column->addWidget(reset, 0, Qt::AlignLeading);
    column->addStretch(1);
    auto* scroll = new QScrollArea(this);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setFocusPolicy(Qt::NoFocus);
    scroll->setWidget(inside);
    inside->setAutoFillBackground(false);
    auto* outside = new QVBoxLayout(this);
    outside->setContentsMargins(theme.px(16), theme.px(8), theme.px(8), theme.px(8));
    outside->setSpacing(theme.px(8));
    outside->addLayout(head);
    outside->addWidget(scroll, 1);
    set_settings({});
}

void SamplingPanel::add_row(QFormLayout& form, QWidget* field, const char* name, const QString& label, const QString& help) {
    field->setObjectName(QLatin1String(name));
    field->setAccessibleName(label);
    field->setAccessibleDescription(help);
    field->setToolTip(help);
    auto* text = new QLabel(label, this);
    text->setMinimumHeight(field->sizeHint().height());
    text->setBuddy(field);
    text->setToolTip(help);
    form.addRow(text, field);
}

QDoubleSpinBox* SamplingPanel::add_number(QFormLayout& form, const char* name, const QString& label, const QString& help, double minimum,
                                          double maximum, double step) {
    auto* field = new QDoubleSpinBox(this);
    field->setRange(minimum, maximum);
    field->setSingleStep(step);
    field->setDecimals(2);
    add_row(form, field, name, label, help);
    connect(field, &QDoubleSpinBox::valueChanged, this, &SamplingPanel::edited);
    return field;
}

QSpinBox* SamplingPanel::add_count(QFormLayout& form, const char* name, const QString& label, const QString& help, int minimum, int maximum,
                                   const QString& special) {
    auto* field = new QSpinBox(this);
    field->setRange(minimum, maximum);
    field->setSpecialValueText(special);
    add_row(form, field, name, label, help);
    connect(field, &QSpinBox::valueChanged, this, &SamplingPanel::edited);
    return field;
}

void SamplingPanel::set_settings(const ConversationSettings& settings) {
    setting_ = true;
    if (system_prompt_->toPlainText() != settings.system_prompt) system_prompt_->setPlainText(settings.system_prompt);
    const engine::SamplingOptions& s = settings.sampling;
    temperature_->setValue(static_cast<double>(s.temperature));
    top_k_->setValue(s.top_k);
    top_p_->setValue(static_cast<double>(s.top_p));
    min_p_->setValue(static_cast<double>(s.min_p));
    repeat_->setValue(static_cast<double>(s.repeat_penalty));
    presence_->setValue(static_cast<double>(s.presence_penalty));
    frequency_->setValue(static_cast<double>(s.frequency_penalty));
    max_tokens_->setValue(settings.max_tokens < 0 ? 0 : settings.max_tokens);
    const QString seed = s.seed ? QString::number(*s.seed) : QString();
    if (seed_->text() != seed) seed_->setText(seed);
    setting_ = false;
}

ConversationSettings SamplingPanel::settings() const {
    ConversationSettings settings;
    settings.system_prompt = system_prompt_->toPlainText();
    engine::SamplingOptions& s = settings.sampling;
    s.temperature = static_cast<float>(temperature_->value());
    s.top_k = top_k_->value();
    s.top_p = static_cast<float>(top_p_->value());
    s.min_p = static_cast<float>(min_p_->value());
    s.repeat_penalty = static_cast<float>(repeat_->value());
    s.presence_penalty = static_cast<float>(presence_->value());
    s.frequency_penalty = static_cast<float>(frequency_->value());
    settings.max_tokens = max_tokens_->value() == 0 ? -1 : max_tokens_->value();
    if (!seed_->text().isEmpty()) s.seed = seed_->text().toULongLong();
    return settings;
}

void SamplingPanel::edited() {
    if (!setting_) emit changed(settings());
}

}  // namespace headroom::ui
