#include "ui/main_window/main_window.h"

#include <QCloseEvent>
#include <QDir>
#include <QDropEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QMenu>
#include <QMimeData>
#include <QShortcut>
#include <QStackedWidget>
#include <QVBoxLayout>

#include "core/base/paths.h"
#include "ui/chat/chat_page.h"
#include "ui/conversations/sidebar.h"
#include "ui/main_window/notice_bar.h"
#include "ui/theme/icon_button.h"

namespace headroom::ui {
namespace {

// Below this width the sidebar makes room for the page.
constexpr int kNarrow = 720;

QString dropped_model(const QMimeData* data) {
    for (const QUrl& url : data->urls()) {
        if (url.isLocalFile() && url.toLocalFile().endsWith(QLatin1String(".gguf"), Qt::CaseInsensitive)) return url.toLocalFile();
    }
    return {};
}

}  // namespace

MainWindow::MainWindow(const WindowParts& parts)
    : ask_for_file([](QWidget* parent, const QString& folder) {
          return QFileDialog::getOpenFileName(parent, tr("Open a model"), folder, tr("GGUF models (*.gguf)"));
      }),
      parts_(parts), sidebar_(new Sidebar(parts.theme, parts.store, parts.chats, this)), notices_(new NoticeBar(parts.theme, this)),
      pages_(new QStackedWidget(this)), column_(new QVBoxLayout), chat_(new ChatPage(parts.theme, parts.engine, parts.chats, this)) {
    setObjectName(QStringLiteral("main_window"));
    setWindowTitle(tr("Headroom"));
    setAcceptDrops(true);
    setMinimumSize(400, 360);
    resize(1120, 760);
    restoreGeometry(parts_.settings.get(Settings::Key::window_geometry).toByteArray());
    setPalette(parts_.theme.palette());
    connect(&parts_.theme, &Theme::changed, this, [this] { setPalette(parts_.theme.palette()); });

    pages_->setObjectName(QStringLiteral("pages"));
    pages_->addWidget(chat_);
    auto* center = new QWidget(this);
    auto* row = new QHBoxLayout(center);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    column_->setContentsMargins(0, 0, 0, 0);
    column_->setSpacing(0);
    column_->addWidget(notices_);
    column_->addWidget(pages_, 1);
    row->addWidget(sidebar_);
    row->addLayout(column_, 1);
    setCentralWidget(center);
    sidebar_wanted_ = parts_.settings.get(Settings::Key::sidebar_shown).toBool();
    sidebar_->setVisible(sidebar_wanted_ && width() >= parts_.theme.px(kNarrow));

    connect(sidebar_, &Sidebar::new_chat, this, &MainWindow::new_chat);
    connect(sidebar_, &Sidebar::conversation_chosen, this, [this](qint64 conversation) {
        if (parts_.chats.current() != conversation) parts_.chats.open(conversation);
        show_page(QStringLiteral("chat"));
    });
    connect(sidebar_, &Sidebar::remove_requested, this, &MainWindow::remove_conversation);
    connect(chat_, &ChatPage::open_model, this, &MainWindow::open_model_dialog);
    connect(chat_, &ChatPage::open_named, this, [this](const QString& name) { open_model(name); });
    connect(chat_, &ChatPage::fill_model_menu, this, &MainWindow::fill_model_menu);
    connect(chat_, &ChatPage::rename_requested, this, [this] {
        set_sidebar_shown(true);
        sidebar_->rename(parts_.chats.current());
    });
    connect(chat_, &ChatPage::remove_requested, this, [this] { remove_conversation(parts_.chats.current()); });
    connect(chat_->sidebar_button(), &QToolButton::clicked, this, [this] { set_sidebar_shown(!sidebar_->isVisible()); });
    connect(&parts_.store, &ChatStore::failed, this, [this](const QString& notice) { show_notice(notice, QStringLiteral("store")); });
    connect(&parts_.engine, &EngineController::model_changed, this, [this] {
        const ModelStatus& model = parts_.engine.model();
        if (model.state != ModelStatus::State::ready) return;
        parts_.settings.set(Settings::Key::last_model, QString::fromStdString(model.request.name));
        for (const std::string& warning : model.info.warnings) show_notice(QString::fromStdString(warning), QStringLiteral("model"));
    });
    add_shortcuts();
    chat_->focus_input();
}

void MainWindow::add_page(const QString& id, const QString& icon, const QString& title, QWidget* page, const QKeySequence& shortcut) {
    page->setObjectName(id + QStringLiteral("_page"));
    pages_->addWidget(page);
    IconButton* button = sidebar_->add_page_button(icon, title, shortcut.toString(QKeySequence::NativeText));
    button->setObjectName(id + QStringLiteral("_button"));
    connect(button, &QToolButton::clicked, this, [this, id] { show_page(id); });
    added_.push_back({id, page, button});
    if (!shortcut.isEmpty()) add_shortcut(shortcut, [this, id] { show_page(id); });
}

void MainWindow::show_page(const QString& id) {
    QWidget* shown = chat_;
    for (const Page& page : added_) {
        page.button->setChecked(page.id == id);
        if (page.id == id) shown = page.widget;
    }
    pages_->setCurrentWidget(shown);
    if (shown == chat_) {
        chat_->focus_input();
    } else {
        shown->setFocus();
    }
}

void MainWindow::set_footer(QWidget* footer) { column_->addWidget(footer); }

void MainWindow::set_hint(const QString& text) { chat_->set_hint(text); }

void MainWindow::show_notice(const QString& text, const QString& key) { notices_->show_notice(text, key); }

void MainWindow::add_shortcut(const QKeySequence& keys, std::function<void()> act) {
    connect(new QShortcut(keys, this), &QShortcut::activated, this, std::move(act));
}

void MainWindow::add_shortcuts() {
    add_shortcut(QKeySequence::New, [this] { new_chat(); });
    add_shortcut(QKeySequence::Open, [this] { open_model_dialog(); });
    add_shortcut(QKeySequence::Find, [this] {
        set_sidebar_shown(true);
        sidebar_->focus_search();
    });
    add_shortcut(QKeySequence(tr("Ctrl+B")), [this] { set_sidebar_shown(!sidebar_->isVisible()); });
    add_shortcut(QKeySequence(tr("Ctrl+R")), [this] { chat_->regenerate_last(); });
    add_shortcut(QKeySequence(tr("Ctrl+E")), [this] { chat_->edit_last(); });
    add_shortcut(QKeySequence(tr("Ctrl+Shift+C")), [this] { chat_->copy_last(); });
    add_shortcut(QKeySequence(tr("Ctrl+Shift+P")), [this] {
        show_page(QStringLiteral("chat"));
        chat_->toggle_sampling();
    });
    add_shortcut(QKeySequence(Qt::Key_Escape), [this] { escape(); });
    add_shortcut(QKeySequence::ZoomIn, [this] { scale_text(parts_.theme.text_percent() + 10); });
    add_shortcut(QKeySequence(Qt::CTRL | Qt::Key_Equal), [this] { scale_text(parts_.theme.text_percent() + 10); });
    add_shortcut(QKeySequence::ZoomOut, [this] { scale_text(parts_.theme.text_percent() - 10); });
    add_shortcut(QKeySequence(Qt::CTRL | Qt::Key_0), [this] { scale_text(100); });
    add_shortcut(QKeySequence(Qt::CTRL | Qt::Key_Q), [this] { close(); });
}

// Escape ends what is going on: an answer first, else it leads back to the message field.
void MainWindow::escape() {
    if (pages_->currentWidget() == chat_ && parts_.chats.busy()) {
        chat_->stop();
    } else {
        show_page(QStringLiteral("chat"));
    }
}

void MainWindow::scale_text(int percent) {
    parts_.theme.set_text_percent(percent);
    parts_.settings.set(Settings::Key::text_percent, parts_.theme.text_percent());
}

void MainWindow::new_chat() {
    parts_.chats.open(0);
    show_page(QStringLiteral("chat"));
}

void MainWindow::remove_conversation(qint64 conversation) {
    if (conversation == 0) return;
    QString title;
    for (const ConversationInfo& info : parts_.store.conversations()) {
        if (info.id == conversation) title = info.title;
    }
    parts_.chats.remove(conversation);
    notices_->show_notice(tr("“%1” was deleted.").arg(title), QStringLiteral("deleted"), tr("Undo"),
                          [this, conversation] { parts_.chats.restore(conversation); });
}

void MainWindow::set_sidebar_shown(bool shown) {
    sidebar_->setVisible(shown);
    sidebar_wanted_ = shown;
    parts_.settings.set(Settings::Key::sidebar_shown, shown);
}

void MainWindow::open_model(const QString& name, int context, int threads) {
    OpenRequest request;
    request.name = name.toStdString();
    request.model_folder = from_utf8(parts_.settings.text(Settings::Key::model_folder).toStdString());
    request.context = context > 0 ? context : parts_.settings.number(Settings::Key::context);
    request.threads = threads > 0 ? threads : parts_.settings.number(Settings::Key::threads);
    request.kv_type = cpu::kv_type_from(parts_.settings.text(Settings::Key::kv_type).toStdString()).value_or(engine::KvType::f16);
    show_page(QStringLiteral("chat"));
    parts_.engine.open(request);
}

void MainWindow::open_model_dialog() {
    const QString file = ask_for_file(this, parts_.settings.text(Settings::Key::model_folder));
    if (!file.isEmpty()) open_model(file);
}

void MainWindow::fill_model_menu(QMenu* menu) {
    const QString current = QString::fromStdString(parts_.engine.model().request.name);
    const auto add = [&](const QString& text, const QString& name) {
        QAction* action = menu->addAction(text, this, [this, name] { open_model(name); });
        action->setCheckable(true);
        action->setChecked(name == current);
    };
    add(tr("Built-in model"), QStringLiteral("builtin"));
    const QDir folder(parts_.settings.text(Settings::Key::model_folder));
    bool current_listed = current == QLatin1String("builtin");
    for (const QFileInfo& file : folder.entryInfoList({QStringLiteral("*.gguf")}, QDir::Files, QDir::Name | QDir::IgnoreCase)) {
        current_listed = current_listed || file.absoluteFilePath() == current;
        add(file.completeBaseName(), file.absoluteFilePath());
    }
    if (!current_listed && !current.isEmpty()) add(QFileInfo(current).completeBaseName(), current);
    menu->addSeparator();
    menu->addAction(parts_.theme.icon(QStringLiteral("open")), tr("Open a model…"), this, &MainWindow::open_model_dialog);
}

void MainWindow::bring_to_front() {
    setWindowState(windowState() & ~Qt::WindowMinimized);
    show();
    raise();
    activateWindow();
}

void MainWindow::changeEvent(QEvent* event) {
    QMainWindow::changeEvent(event);
    if (event->type() == QEvent::ActivationChange || event->type() == QEvent::ThemeChange) parts_.theme.system_changed();
}

void MainWindow::closeEvent(QCloseEvent* event) {
    parts_.settings.set(Settings::Key::window_geometry, saveGeometry());
    parts_.settings.save();
    QMainWindow::closeEvent(event);
}

void MainWindow::resizeEvent(QResizeEvent* event) {
    QMainWindow::resizeEvent(event);
    const int narrow = parts_.theme.px(kNarrow);
    const bool was_narrow = event->oldSize().isValid() && event->oldSize().width() < narrow;
    if ((event->size().width() < narrow) != was_narrow) sidebar_->setVisible(event->size().width() >= narrow && sidebar_wanted_);
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
    if (!dropped_model(event->mimeData()).isEmpty()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
    const QString file = dropped_model(event->mimeData());
    if (file.isEmpty()) return;
    event->acceptProposedAction();
    open_model(file);
}

}  // namespace headroom::ui
