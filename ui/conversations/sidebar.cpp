#include "ui/conversations/sidebar.h"

#include <QAction>
#include <QKeyEvent>
#include <QLineEdit>
#include <QListView>
#include <QMenu>
#include <QVBoxLayout>

#include <chrono>

#include "ui/conversations/conversation_delegate.h"
#include "ui/theme/icon_button.h"

namespace headroom::ui {

using namespace std::chrono_literals;

Sidebar::Sidebar(const Theme& theme, ChatStore& store, ChatService& chats, QWidget* parent)
    : QFrame(parent), theme_(theme), store_(store), chats_(chats), search_(new QLineEdit(this)), list_(new QListView(this)),
      pages_(new QVBoxLayout) {
    setObjectName(QStringLiteral("sidebar"));
    setFixedWidth(theme.px(264));
    connect(&theme, &Theme::changed, this, [this] {
        setFixedWidth(theme_.px(264));
        list_->doItemsLayout();
    });

    auto* new_chat_button = new IconButton(theme, QStringLiteral("new-chat"), tr("New chat"), this, tr("Ctrl+N"));
    new_chat_button->setObjectName(QStringLiteral("new_chat"));
    new_chat_button->make_row();
    connect(new_chat_button, &QToolButton::clicked, this, &Sidebar::new_chat);

    search_->setObjectName(QStringLiteral("search"));
    search_->setPlaceholderText(tr("Search"));
    search_->setAccessibleName(tr("Search conversations"));
    search_->setClearButtonEnabled(true);
    auto* glass = search_->addAction(theme.icon(QStringLiteral("search")), QLineEdit::LeadingPosition);
    connect(&theme, &Theme::changed, glass, [this, glass] { glass->setIcon(theme_.icon(QStringLiteral("search"))); });
    search_->installEventFilter(this);
    search_timer_.setSingleShot(true);
    search_timer_.setInterval(120ms);
    connect(search_, &QLineEdit::textChanged, this, [this] { search_timer_.start(); });
    connect(&search_timer_, &QTimer::timeout, this, &Sidebar::refresh);

    list_->setObjectName(QStringLiteral("conversations"));
    list_->setAccessibleName(tr("Conversations"));
    list_->setModel(&model_);
    list_->setItemDelegate(new ConversationDelegate(theme, list_));
    list_->setUniformItemSizes(true);
    list_->setMouseTracking(true);
    list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    list_->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
    list_->setEditTriggers(QAbstractItemView::EditKeyPressed);
    list_->setContextMenuPolicy(Qt::CustomContextMenu);
    list_->installEventFilter(this);
    connect(list_, &QListView::clicked, this, [this](const QModelIndex& index) {
        if (const qint64 id = model_.id_at(index)) emit conversation_chosen(id);
    });
    connect(list_, &QListView::activated, this, [this](const QModelIndex& index) {
        if (const qint64 id = model_.id_at(index)) emit conversation_chosen(id);
    });
    connect(list_, &QListView::customContextMenuRequested, this, &Sidebar::show_menu);
    connect(&model_, &ConversationModel::renamed, &chats_, &ChatService::rename);

    auto* line = new QFrame(this);
    line->setObjectName(QStringLiteral("line"));
    pages_->setSpacing(theme.px(4));
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(theme.px(8), theme.px(8), theme.px(8), theme.px(8));
    column->setSpacing(theme.px(8));
    column->addWidget(new_chat_button);
    column->addWidget(search_);
    column->addWidget(list_, 1);
    column->addWidget(line);
    column->addLayout(pages_);

    connect(&chats_, &ChatService::list_changed, this, &Sidebar::refresh);
    connect(&chats_, &ChatService::opened, this, &Sidebar::select_current);
    refresh();
}

IconButton* Sidebar::add_page_button(const QString& icon, const QString& title, const QString& shortcut) {
    auto* button = new IconButton(theme_, icon, title, this, shortcut);
    button->make_row();
    button->setCheckable(true);
    pages_->addWidget(button);
    return button;
}

void Sidebar::focus_search() {
    search_->setFocus(Qt::ShortcutFocusReason);
    search_->selectAll();
}

void Sidebar::refresh() {
    model_.set_conversations(search_->text().trimmed().isEmpty() ? store_.conversations() : store_.search(search_->text()));
    select_current();
}

void Sidebar::select_current() {
    const QModelIndex index = model_.index_of(chats_.current());
    if (index.isValid()) {
        if (list_->currentIndex() != index) list_->setCurrentIndex(index);
    } else {
        list_->clearSelection();
        list_->setCurrentIndex({});
    }
}

void Sidebar::rename(qint64 conversation) {
    const QModelIndex index = model_.index_of(conversation);
    if (!index.isValid()) return;
    list_->setCurrentIndex(index);
    list_->setFocus();
    list_->edit(index);
}

void Sidebar::show_menu(const QPoint& position) {
    const QModelIndex index = list_->indexAt(position);
    const qint64 id = model_.id_at(index);
    if (id == 0) return;
    QMenu menu(this);
    menu.addAction(tr("Rename…"), this, [this, id] { rename(id); });
    menu.addAction(tr("Delete"), this, [this, id] { emit remove_requested(id); });
    menu.exec(list_->viewport()->mapToGlobal(position));
}

bool Sidebar::eventFilter(QObject* object, QEvent* event) {
    const bool searching = object == search_ && !search_->text().isEmpty();
    if (searching && event->type() == QEvent::ShortcutOverride && static_cast<QKeyEvent*>(event)->key() == Qt::Key_Escape) {
        event->accept();  // clears the search first
        return true;
    }
    if (event->type() == QEvent::KeyPress) {
        const int key = static_cast<QKeyEvent*>(event)->key();
        if (object == list_ && key == Qt::Key_Delete) {
            if (const qint64 id = model_.id_at(list_->currentIndex())) emit remove_requested(id);
            return true;
        }
        if (object == search_ && key == Qt::Key_Down) {
            list_->setFocus();
            for (int row = 0; row < model_.rowCount(); ++row) {
                if (model_.id_at(model_.index(row)) == 0) continue;
                list_->setCurrentIndex(model_.index(row));
                break;
            }
            return true;
        }
        if (searching && key == Qt::Key_Escape) {
            search_->clear();
            return true;
        }
    }
    return QFrame::eventFilter(object, event);
}

}  // namespace headroom::ui
