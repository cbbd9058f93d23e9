#include "ui/chat/chat_page.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLocale>
#include <QMenu>
#include <QVBoxLayout>

#include "ui/chat/composer.h"
#include "ui/chat/context_bar.h"
#include "ui/chat/empty_state.h"
#include "ui/chat/message_list.h"
#include "ui/chat/model_strip.h"
#include "ui/chat/reasoning.h"
#include "ui/chat/sampling_panel.h"
#include "ui/theme/centered_column.h"
#include "ui/theme/icon_button.h"

namespace headroom::ui {

ChatPage::ChatPage(const Theme& theme, EngineController& engine, ChatService& chats, QWidget* parent)
    : QWidget(parent), theme_(theme), engine_(engine), chats_(chats), middle_(new QStackedWidget(this)), empty_(new EmptyState(theme, this)),
      messages_(new MessageList(theme, chats, this)), strip_(new ModelStrip(theme, engine, this)), composer_(new Composer(theme, this)),
      context_(new ContextBar(theme, this)), sampling_(new SamplingPanel(theme, this)) {
    setObjectName(QStringLiteral("chat_page"));
    middle_->addWidget(empty_);
    middle_->addWidget(messages_);
    sampling_->hide();

    auto* bottom = new CenteredColumn(theme, this);
    bottom->add(strip_);
    bottom->add(composer_);
    bottom->add(context_);

    auto* main = new QVBoxLayout;
    main->setContentsMargins(0, 0, 0, theme.px(8));
    main->setSpacing(0);
    main->addWidget(make_header());
    main->addWidget(middle_, 1);
    main->addWidget(bottom);
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    row->addLayout(main, 1);
    row->addWidget(sampling_);

    connect(empty_, &EmptyState::example_chosen, &chats_, &ChatService::send);
    connect(empty_, &EmptyState::open_model, this, &ChatPage::open_model);
    connect(strip_, &ModelStrip::open_model, this, &ChatPage::open_model);
    connect(strip_, &ModelStrip::open_builtin, this, [this] { emit open_named(QStringLiteral("builtin")); });
    connect(composer_, &Composer::send, &chats_, &ChatService::send);
    connect(composer_, &Composer::stop, &chats_, &ChatService::stop);
    connect(composer_, &Composer::edit_last, this, &ChatPage::edit_last);
    connect(sampling_, &SamplingPanel::changed, &chats_, &ChatService::set_settings);
    connect(sampling_, &SamplingPanel::close_requested, this, &ChatPage::toggle_sampling);
    connect(&chats_, &ChatService::settings_changed, this, [this] { sampling_->set_settings(chats_.settings()); });
    connect(&chats_, &ChatService::opened, this, &ChatPage::update_messages);
    connect(&chats_, &ChatService::path_changed, this, &ChatPage::update_messages);
    connect(&chats_, &ChatService::busy_changed, this, &ChatPage::update_messages);
    connect(&chats_, &ChatService::message_changed, this, [this] { context_->set_use(chats_.context_used(), engine_.model().info.context); });
    connect(&engine_, &EngineController::model_changed, this, &ChatPage::update_header);
    update_header();
    update_messages();
    setFocusProxy(composer_);
}

QWidget* ChatPage::make_header() {
    auto* header = new QFrame(this);
    header->setObjectName(QStringLiteral("header"));
    sidebar_button_ = new IconButton(theme_, QStringLiteral("sidebar"), tr("Show or hide the conversations"), header, tr("Ctrl+B"));
    sidebar_button_->setObjectName(QStringLiteral("toggle_sidebar"));
    model_button_ = new IconButton(theme_, QStringLiteral("model"), tr("Model"), header);
    model_button_->setObjectName(QStringLiteral("model_button"));
    model_button_->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    model_button_->setPopupMode(QToolButton::InstantPopup);
    auto* models = new QMenu(model_button_);
    models->setObjectName(QStringLiteral("model_menu"));
    model_button_->setMenu(models);
    connect(models, &QMenu::aboutToShow, this, [this, models] {
        models->clear();
        emit fill_model_menu(models);
    });
    sampling_button_ = new IconButton(theme_, QStringLiteral("sampling"), tr("System prompt and sampling"), header, tr("Ctrl+Shift+P"));
    sampling_button_->setObjectName(QStringLiteral("sampling_button"));
    sampling_button_->setCheckable(true);
    connect(sampling_button_, &QToolButton::clicked, this, &ChatPage::toggle_sampling);
    more_button_ = new IconButton(theme_, QStringLiteral("more"), tr("More"), header);
    more_button_->setObjectName(QStringLiteral("more_button"));
    more_button_->setPopupMode(QToolButton::InstantPopup);
    auto* more = new QMenu(more_button_);
    more->addAction(tr("Rename…"), this, &ChatPage::rename_requested);
    more->addAction(tr("Copy the conversation"), this, &ChatPage::copy_conversation);
    more->addSeparator();
    more->addAction(theme_.icon(QStringLiteral("trash")), tr("Delete"), this, &ChatPage::remove_requested);
    more_button_->setMenu(more);

    auto* row = new QHBoxLayout(header);
    row->setContentsMargins(theme_.px(8), theme_.px(8), theme_.px(8), theme_.px(8));
    row->setSpacing(theme_.px(4));
    row->addWidget(sidebar_button_);
    row->addWidget(model_button_);
    row->addStretch(1);
    row->addWidget(sampling_button_);
    row->addWidget(more_button_);
    return header;
}

// "Runs on NVIDIA GeForce RTX 4070: 24 of 32 layers", for the tool tip of the model's name.
QString ChatPage::where_it_runs(const engine::ModelInfo& info) {
    if (info.devices.empty()) return tr("Runs on the processor");
    QStringList lines;
    for (const engine::DeviceUse& use : info.devices) {
        QString line = tr("Runs on %1: %2 of %3 layers").arg(QString::fromStdString(use.name)).arg(use.layers).arg(info.layers);
        if (info.experts_total > 0) line += tr(", %1 of %2 experts").arg(QLocale().toString(qlonglong(use.experts)), QLocale().toString(qlonglong(info.experts_total)));
        lines << line;
    }
    return lines.join(QLatin1Char('\n'));
}

void ChatPage::update_header() {
    const ModelStatus& model = engine_.model();
    QStringList parts;
    if (model.state == ModelStatus::State::ready || model.state == ModelStatus::State::loading) {
        parts << QString::fromStdString(model.info.name);
        if (!model.info.quantization.empty()) parts << QString::fromStdString(model.info.quantization);
        if (model.info.context > 0) {
            parts << (model.info.context % 1024 == 0 ? tr("%1K").arg(model.info.context / 1024) : QLocale().toString(model.info.context));
        }
    } else {
        parts << tr("No model");
    }
    const QString name = fontMetrics().elidedText(parts.join(QStringLiteral(" · ")), Qt::ElideMiddle, theme_.px(420));
    model_button_->set_text(name);
    const QString where = model.state == ModelStatus::State::ready ? where_it_runs(model.info) + QStringLiteral("\n") : QString();
    model_button_->setToolTip(where + tr("Choose another model"));
    model_button_->setAccessibleName(tr("Model: %1").arg(name));
    empty_->set_model(model.request.name == "builtin");
    context_->set_use(chats_.context_used(), model.state == ModelStatus::State::ready ? model.info.context : 0);
}

void ChatPage::update_messages() {
    middle_->setCurrentWidget(chats_.tree().empty() ? static_cast<QWidget*>(empty_) : messages_);
    more_button_->setEnabled(chats_.current() != 0);
    composer_->set_answering(chats_.busy());
    context_->set_use(chats_.context_used(), engine_.model().state == ModelStatus::State::ready ? engine_.model().info.context : 0);
}

void ChatPage::focus_input() { composer_->focus_input(); }

void ChatPage::set_hint(const QString& text) { empty_->set_hint(text); }

void ChatPage::edit_last() { messages_->edit_last(); }

void ChatPage::stop() { chats_.stop(); }

void ChatPage::regenerate_last() {
    const auto path = chats_.tree().path();
    if (!path.empty()) chats_.regenerate(path.back());
}

void ChatPage::copy_last() {
    const auto path = chats_.tree().path();
    for (auto id = path.rbegin(); id != path.rend(); ++id) {
        const Message& message = *chats_.tree().find(*id);
        if (message.role != Role::assistant) continue;
        QGuiApplication::clipboard()->setText(split_reasoning(message.text).answer.toString());
        return;
    }
}

void ChatPage::copy_conversation() {
    QString text;
    for (const qint64 id : chats_.tree().path()) {
        const Message& message = *chats_.tree().find(id);
        const bool user = message.role == Role::user;
        text += QStringLiteral("**%1**\n\n").arg(user ? tr("You") : tr("Answer"));
        text += (user ? message.text : split_reasoning(message.text).answer.toString()) + QStringLiteral("\n\n");
    }
    QGuiApplication::clipboard()->setText(text.trimmed() + u'\n');
}

void ChatPage::toggle_sampling() {
    sampling_->setVisible(!sampling_->isVisible());
    sampling_button_->setChecked(sampling_->isVisible());
    if (sampling_->isVisible()) {
        sampling_->findChild<QWidget*>(QStringLiteral("system_prompt"))->setFocus();
    } else {
        focus_input();
    }
}

}  // namespace headroom::ui
