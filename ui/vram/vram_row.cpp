#include "ui/vram/vram_row.h"

#include <QContextMenuEvent>
#include <QHBoxLayout>

#include "ui/vram/vram_words.h"

namespace headroom::ui {
namespace {

// Below this width the name stands above the memory.
constexpr int kNarrow = 640;
constexpr int kName = 176;  // of a name, at most

}  // namespace

VramRow::VramRow(const Theme& theme, VramController& vram, const std::string& device, QWidget* parent)
    : QWidget(parent), theme_(theme), vram_(vram), device_(device), head_(new QWidget(this)), name_(new QLabel(head_)),
      badge_(new QLabel(head_)), track_(new VramTrack(theme, this)),
      menu_button_(new IconButton(theme, QStringLiteral("more"), tr("Ways to share this card"), this)), menu_(new QMenu(menu_button_)),
      all_(new QBoxLayout(QBoxLayout::LeftToRight, this)) {
    name_->setObjectName(QStringLiteral("vram_name"));
    name_->setTextFormat(Qt::PlainText);
    badge_->setObjectName(QStringLiteral("vram_badge"));
    badge_->setTextFormat(Qt::PlainText);
    track_->setObjectName(QStringLiteral("vram_track"));
    menu_button_->setObjectName(QStringLiteral("vram_menu_button"));
    menu_button_->setPopupMode(QToolButton::InstantPopup);
    menu_->setObjectName(QStringLiteral("vram_menu"));
    menu_button_->setMenu(menu_);
    connect(menu_, &QMenu::aboutToShow, this, &VramRow::fill_menu);
    connect(track_, &VramTrack::reserve_chosen, this, [this](std::uint64_t bytes) { vram_.set_reserve(device_, bytes); });

    auto* head = new QHBoxLayout(head_);
    head->setContentsMargins(0, 0, 0, 0);
    head->setSpacing(theme.px(8));
    head->addWidget(name_);
    head->addWidget(badge_);
    head->addStretch(1);
    auto* line = new QHBoxLayout;
    line->setSpacing(theme.px(4));
    line->addWidget(track_, 1);
    line->addWidget(menu_button_);
    all_->setContentsMargins(0, 0, 0, 0);
    all_->setSpacing(theme.px(8));
    all_->addWidget(head_);
    all_->addLayout(line, 1);
    update_figures();
}

void VramRow::update_figures() {
    const engine::VramDevice* device = vram_.find(device_);
    if (!device) return;
    const QString name = QString::fromStdString(device->name);
    name_->setText(fontMetrics().elidedText(brief_name(*device), Qt::ElideRight, theme_.px(kName)));
    name_->setToolTip(tr("%1, %2").arg(name, QString::fromStdString(device->id)));
    const QString reason = QString::fromStdString(device->reason);
    if (device->verdict == "on") {
        badge_->setText(tr("● on"));
        badge_->setToolTip(tr("This card's memory is given back while the model stays loaded."));
    } else if (device->verdict == "fixed") {
        badge_->setText(tr("◐ fixed"));
        badge_->setToolTip(reason);
    } else {
        badge_->setText(device->verdict == "off" ? tr("○ off") : QString());
        badge_->setToolTip(reason);
    }
    badge_->setVisible(!badge_->text().isEmpty());
    track_->setVisible(device->total_bytes > 0);
    track_->set_device(*device);
    if (track_->isEnabled()) {
        track_->setToolTip({});
    } else if (!reason.isEmpty()) {
        track_->setAccessibleDescription(track_->accessibleDescription() + u' ' + tr("It cannot be changed: %1").arg(reason));
    }
    menu_button_->setVisible(vram_.state() == VramController::State::card);
}

void VramRow::fill_menu() {
    menu_->clear();
    const engine::VramDevice* device = vram_.find(device_);
    if (!device) return;
    const auto current = preset_of(*device);
    for (const VramPreset preset : kVramPresets) {
        const QString name = name_of(preset);
        QAction* action = menu_->addAction(tr("%1: %2").arg(name, explanation_of(preset)), this, [this, preset] { vram_.apply(device_, preset); });
        action->setObjectName(QStringLiteral("vram_preset_%1").arg(static_cast<int>(preset)));
        action->setCheckable(true);
        action->setChecked(current == preset);
        action->setEnabled(device->elastic);
    }
    if (device->elastic) return;
    menu_->addSeparator();
    menu_->addAction(tr("It cannot be changed while a model is loaded"))->setEnabled(false);
}

void VramRow::contextMenuEvent(QContextMenuEvent* event) {
    if (menu_button_->isHidden()) return;
    const QPoint handle = track_->mapToGlobal(track_->handle().toPoint());
    menu_->popup(event->reason() == QContextMenuEvent::Mouse ? event->globalPos() : handle);
}

void VramRow::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    arrange();
}

void VramRow::set_head_width(int width) {
    if (head_width_ == width) return;
    head_width_ = width;
    arrange();
}

void VramRow::arrange() {
    const bool narrow = width() < theme_.px(kNarrow);
    head_->setMinimumWidth(narrow ? 0 : head_width_);
    all_->setDirection(narrow ? QBoxLayout::TopToBottom : QBoxLayout::LeftToRight);
    all_->setSpacing(theme_.px(narrow ? 0 : 8));
}

}  // namespace headroom::ui
