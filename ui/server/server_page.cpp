#include "ui/server/server_page.h"

#include <QFormLayout>
#include <QHBoxLayout>
#include <QRegularExpression>
#include <QVBoxLayout>

#include "ui/markdown/markdown_view.h"
#include "ui/pages/page_title.h"
#include "ui/server/request_list.h"
#include "ui/theme/copy_button.h"
#include "ui/theme/scrolled_page.h"
#include "ui/theme/switch.h"

namespace headroom::ui {
namespace {

using State = ServerController::State;

QString examples_of(const QString& address, const QString& model, bool has_key) {
    const QString key = has_key ? QStringLiteral("YOUR-KEY") : QStringLiteral("none");
    const QString header = has_key ? QStringLiteral(" \\\n  -H 'Authorization: Bearer YOUR-KEY'") : QString();
    return ServerPage::tr("In a terminal:") +
           QStringLiteral("\n\n```bash\ncurl %1/v1/chat/completions \\\n  -H 'Content-Type: application/json'%2 \\\n"
                          "  -d '{\"model\": \"%3\", \"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}'\n```\n\n").arg(address, header, model) +
           ServerPage::tr("In Python, with the package openai:") +
           QStringLiteral("\n\n```python\nfrom openai import OpenAI\n\nclient = OpenAI(base_url=\"%1/v1\", api_key=\"%2\")\nanswer = client.chat.completions.create(\n"
                          "    model=\"%3\", messages=[{\"role\": \"user\", \"content\": \"Hello\"}])\nprint(answer.choices[0].message.content)\n```\n\n").arg(address, key, model) +
           ServerPage::tr("In editors and chat programs, choose a server of the kind “OpenAI compatible” with these, or one of the kind “Ollama” with the address "
                          "without /v1:") +
           QStringLiteral("\n\n```text\nBase URL  %1/v1\nAPI key   %2\nModel     %3\n```\n").arg(address, key, model);
}

}  // namespace

ServerPage::ServerPage(const Theme& theme, ServerController& server, QWidget* parent)
    : QWidget(parent), theme_(theme), server_(server), switch_(new Switch(theme, tr("Let other programs use the model"), this)), state_(new QLabel(this)),
      address_(new QLabel(this)), copy_address_(nullptr), port_(new QSpinBox(this)), key_state_(new QLabel(this)), key_(new QLineEdit(this)), copy_key_(nullptr),
      new_key_(new QPushButton(tr("New key"), this)), remove_key_(new QPushButton(tr("Without a key"), this)), origins_(new QLineEdit(this)),
      in_progress_(new RequestList(theme, QStringLiteral("server_request"), tr("None."), this)),
      recent_(new RequestList(theme, QStringLiteral("server_recent"), tr("None yet."), this)), examples_(new MarkdownView(theme, this)) {
    auto* centered = new CenteredColumn(theme, this);
    centered->add(new PageTitle(theme, tr("Server"), this));
    centered->add(make_head());
    centered->add(make_form());
    centered->add(add_heading(tr("In progress")));
    centered->add(in_progress_);
    centered->add(add_heading(tr("How to reach it")));
    centered->add(examples_);
    centered->add(add_heading(tr("The last hundred requests")));
    centered->add(recent_);
    fill_scrolled(this, theme, centered, QStringLiteral("server"));
    setFocusProxy(switch_);

    connect(&server_, &ServerController::changed, this, &ServerPage::update);
    connect(&server_, &ServerController::requests_changed, this, [this] {
        in_progress_->set_requests(server_.in_progress());
        recent_->set_requests(server_.recent());
    });
    connect(in_progress_, &RequestList::cancelled, &server_, &ServerController::cancel);
    connect(&theme, &Theme::changed, examples_, &MarkdownView::rebuild);
    update();
    in_progress_->set_requests({});
    recent_->set_requests({});
}

QWidget* ServerPage::make_head() {
    auto* head = new QWidget(this);
    switch_->setObjectName(QStringLiteral("server_switch"));
    connect(switch_, &QAbstractButton::clicked, &server_, &ServerController::set_wanted);
    auto* words = new QLabel(tr("Let other programs use the model"), head);
    words->setProperty("heading", true);
    words->setWordWrap(true);
    state_->setObjectName(QStringLiteral("server_state"));
    state_->setTextFormat(Qt::PlainText);
    state_->setWordWrap(true);
    state_->setProperty("muted", true);
    address_->setObjectName(QStringLiteral("server_address"));
    address_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    auto* copy = new CopyButton(theme_, tr("Copy the address"), head);
    copy->setObjectName(QStringLiteral("copy_server_address"));
    copy->set_source([this] { return server_.address(); });
    copy_address_ = copy;
    auto* first = new QHBoxLayout;
    first->setSpacing(theme_.px(16));
    first->addWidget(switch_);
    first->addWidget(words, 1);
    auto* second = new QHBoxLayout;
    second->addWidget(address_);
    second->addWidget(copy);
    second->addStretch(1);
    auto* column = new QVBoxLayout(head);
    column->setContentsMargins(0, theme_.px(16), 0, 0);
    column->setSpacing(theme_.px(8));
    column->addLayout(first);
    column->addWidget(state_);
    column->addLayout(second);
    return head;
}

QWidget* ServerPage::make_form() {
    auto* body = new QWidget(this);
    auto* form = new QFormLayout(body);
    form->setContentsMargins(0, theme_.px(16), 0, 0);
    form->setHorizontalSpacing(theme_.px(24));
    form->setVerticalSpacing(theme_.px(16));
    form->setLabelAlignment(Qt::AlignLeading | Qt::AlignTop);
    form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    port_->setObjectName(QStringLiteral("server_port"));
    port_->setRange(1024, 65'535);
    port_->setGroupSeparatorShown(false);
    port_->setKeyboardTracking(false);
    port_->setValue(server_.port());
    connect(port_, &QSpinBox::valueChanged, &server_, &ServerController::set_port);
    add_row(*form, tr("Port"), port_, {});

    auto* key_box = new QWidget(body);
    key_state_->setObjectName(QStringLiteral("server_key_state"));
    key_state_->setWordWrap(true);
    key_->setObjectName(QStringLiteral("server_key"));
    key_->setReadOnly(true);
    key_->setAccessibleName(tr("The new key"));
    auto* copy = new CopyButton(theme_, tr("Copy the key"), key_box);
    copy->setObjectName(QStringLiteral("copy_server_key"));
    copy->set_source([this] { return key_->text(); });
    copy_key_ = copy;
    new_key_->setObjectName(QStringLiteral("new_server_key"));
    remove_key_->setObjectName(QStringLiteral("remove_server_key"));
    connect(new_key_, &QPushButton::clicked, this, [this] {
        key_->setText(server_.make_key());
        update();
    });
    connect(remove_key_, &QPushButton::clicked, this, [this] {
        key_->clear();
        server_.remove_key();
        update();
    });
    auto* shown = new QHBoxLayout;
    shown->addWidget(key_, 1);
    shown->addWidget(copy);
    auto* buttons = new QHBoxLayout;
    buttons->addWidget(new_key_);
    buttons->addWidget(remove_key_);
    buttons->addStretch(1);
    auto* key_column = new QVBoxLayout(key_box);
    key_column->setContentsMargins(0, theme_.px(4), 0, 0);
    key_column->setSpacing(theme_.px(8));
    key_column->addWidget(key_state_);
    key_column->addLayout(shown);
    key_column->addLayout(buttons);
    key_box->setFocusProxy(new_key_);
    add_row(*form, tr("Key"), key_box, {});

    origins_->setObjectName(QStringLiteral("server_origins"));
    origins_->setText(server_.origins().join(QStringLiteral(", ")));
    origins_->setPlaceholderText(tr("none"));
    connect(origins_, &QLineEdit::editingFinished, this, [this] {
        static const QRegularExpression between(QStringLiteral("[,\\s]+"));
        server_.set_origins(origins_->text().split(between, Qt::SkipEmptyParts));
    });
    add_row(*form, tr("Web pages"), origins_, tr("Addresses of web pages that may use the server from a browser on this computer, as “https://chat.example”, with commas between them."));
    return body;
}

void ServerPage::add_row(QFormLayout& form, const QString& label, QWidget* field, const QString& help) {
    auto* name = new QLabel(label, this);
    name->setBuddy(field);
    field->setAccessibleName(label);
    auto* column = new QVBoxLayout;
    column->setSpacing(theme_.px(4));
    column->addWidget(field);
    if (!help.isEmpty()) {
        field->setAccessibleDescription(help);
        auto* words = new QLabel(help, this);
        words->setProperty("muted", true);
        words->setWordWrap(true);
        column->addWidget(words);
    }
    form.addRow(name, column);
}

QLabel* ServerPage::add_heading(const QString& text) {
    auto* heading = new QLabel(text, this);
    heading->setProperty("heading", true);
    heading->setContentsMargins(0, theme_.px(16), 0, theme_.px(4));
    return heading;
}

void ServerPage::update() {
    const State state = server_.state();
    switch_->setChecked(server_.is_wanted());
    switch (state) {
        case State::off: state_->setText(tr("Off. When it is on, editors, chat programs and scripts on this computer can talk to the model.")); break;
        case State::waiting: state_->setText(tr("On as soon as a model is loaded.")); break;
        case State::starting: state_->setText(tr("Starting…")); break;
        case State::on: state_->setText(tr("On, for programs on this computer. The model is called “%1”.").arg(server_.model_name())); break;
        case State::failed: state_->setText(server_.problem()); break;
    }
    address_->setVisible(state == State::on);
    copy_address_->setVisible(state == State::on);
    address_->setText(server_.address());
    key_state_->setText(!server_.has_key()             ? tr("No key is asked for.")
                        : key_->text().isEmpty() ? tr("A key is asked for.")
                                                 : tr("This key is asked for from now on. It is shown only now: copy it."));
    key_->setVisible(!key_->text().isEmpty());
    copy_key_->setVisible(!key_->text().isEmpty());
    remove_key_->setVisible(server_.has_key());
    const QString address = state == State::on ? server_.address() : QStringLiteral("http://127.0.0.1:%1").arg(server_.port());
    examples_->set_text(examples_of(address, server_.model_name().isEmpty() ? QStringLiteral("builtin") : server_.model_name(), server_.has_key()));
}

void ServerPage::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    server_.set_watching(true);
}

void ServerPage::hideEvent(QHideEvent* event) {
    QWidget::hideEvent(event);
    server_.set_watching(false);
    key_->clear();  // shown once
    update();
}

}  // namespace headroom::ui
