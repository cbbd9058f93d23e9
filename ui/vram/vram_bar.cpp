#include "ui/vram/vram_bar.h"

#include <QHBoxLayout>
#include <QVBoxLayout>

#include <algorithm>

#include "ui/theme/icon_button.h"
#include "ui/theme/size_text.h"
#include "ui/vram/vram_row.h"
#include "ui/vram/vram_words.h"

namespace headroom::ui {

VramBar::VramBar(const Theme& theme, VramController& vram, QWidget* parent)
    : QFrame(parent), theme_(theme), vram_(vram), rows_column_(new QVBoxLayout), growing_(new QProgressBar(this)), line_(new QLabel(this)),
      why_(new QPushButton(tr("Why?"), this)) {
    setObjectName(QStringLiteral("footer"));
    setAccessibleName(tr("VRAM"));
    auto* edge = new QFrame(this);
    edge->setObjectName(QStringLiteral("line"));
    growing_->setObjectName(QStringLiteral("vram_growing"));
    growing_->setTextVisible(false);
    growing_->setRange(0, 1000);
    growing_->setAccessibleName(tr("Taking memory back"));
    QSizePolicy room = growing_->sizePolicy();
    room.setRetainSizeWhenHidden(true);  // the page above stands still
    growing_->setSizePolicy(room);
    line_->setObjectName(QStringLiteral("vram_line"));
    line_->setProperty("muted", true);
    line_->setTextFormat(Qt::PlainText);
    line_->setWordWrap(true);
    line_->setAlignment(Qt::AlignLeading | Qt::AlignTop);
    line_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    why_->setObjectName(QStringLiteral("vram_why"));
    why_->setProperty("link", true);
    why_->setToolTip(tr("Shows what the test of this card saw"));
    connect(why_, &QPushButton::clicked, this, &VramBar::details_clicked);

    rows_column_->setSpacing(theme.px(4));
    auto* foot = new QHBoxLayout;
    foot->setSpacing(theme.px(8));
    foot->addWidget(line_, 1);
    foot->addWidget(why_, 0, Qt::AlignTop);
    auto* inside = new QVBoxLayout;
    inside->setContentsMargins(theme.px(16), theme.px(8), theme.px(16), theme.px(8));
    inside->setSpacing(theme.px(3));
    inside->addLayout(rows_column_);
    inside->addWidget(growing_);
    inside->addLayout(foot);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(edge);
    column->addLayout(inside);

    connect(&vram_, &VramController::devices_changed, this, &VramBar::rebuild);
    connect(&vram_, &VramController::figures_changed, this, &VramBar::update_figures);
    connect(&vram_, &VramController::reported, this, &VramBar::update_line);
    rebuild();
}

void VramBar::rebuild() {
    for (VramRow* row : rows_) {
        row->hide();
        row->deleteLater();  // its menu may be what led here
    }
    rows_.clear();
    toggle_ = nullptr;
    std::vector<const engine::VramDevice*> devices;
    for (const engine::VramDevice& device : vram_.devices()) devices.push_back(&device);
    std::ranges::stable_sort(devices, std::ranges::greater(), &engine::VramDevice::own_bytes);
    for (const engine::VramDevice* device : devices) {
        rows_.push_back(new VramRow(theme_, vram_, device->id, this));
        rows_column_->addWidget(rows_.back());
    }
    if (rows_.size() > 1) {
        toggle_ = new IconButton(theme_, QStringLiteral("chevron-right"), tr("Show every GPU in use"), rows_.front());
        toggle_->setObjectName(QStringLiteral("vram_toggle"));
        toggle_->setCheckable(true);
        toggle_->setChecked(unfolded_);
        rows_.front()->add_button(toggle_);
        connect(toggle_, &QToolButton::toggled, this, &VramBar::set_unfolded);
    }
    set_unfolded(unfolded_);
    update_figures();
}

void VramBar::set_unfolded(bool unfolded) {
    unfolded_ = unfolded;
    for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i]->setVisible(i == 0 || unfolded);
    if (!toggle_) return;
    toggle_->set_text(unfolded ? tr("Show one GPU only") : tr("Show every GPU in use"));
    toggle_->set_icon(unfolded ? QStringLiteral("chevron-down") : isRightToLeft() ? QStringLiteral("chevron-left") : QStringLiteral("chevron-right"));
}

void VramBar::update_figures() {
    int head = 0;
    for (VramRow* row : rows_) {
        row->update_figures();
        head = std::max(head, row->head_width());
    }
    for (VramRow* row : rows_) row->set_head_width(head);  // their memory begins at the same place
    update_line();
}

const engine::VramDevice* VramBar::speaker() const {
    const auto& devices = vram_.devices();
    const auto growing = std::ranges::find(devices, true, &engine::VramDevice::growing);
    if (growing != devices.end()) return &*growing;
    if (const auto& report = vram_.report()) {
        if (const auto* device = vram_.find(report->device)) return device;
    }
    return rows_.empty() ? nullptr : vram_.find(rows_.front()->device());
}

QString VramBar::words_of_card() const {
    const engine::VramDevice* device = speaker();
    if (!device) return {};
    if (!vram_.problem().isEmpty()) return vram_.problem();
    if (!device->elastic) {
        const QString reason = QString::fromStdString(device->reason);
        if (device->verdict == "fixed") return tr("This card gives memory back only when the model is closed: %1").arg(reason);
        if (device->verdict == "off") return tr("This card's memory stays as it is while a model is loaded: %1").arg(reason);
        return reason.isEmpty() ? tr("This card's memory stays as it is while the model is loaded") : reason;
    }
    if (device->growing) {
        return tr("Taking memory back: %1 of %2").arg(size_text(device->own_bytes()), size_text(own_at(*device, device->reserve_bytes)));
    }
    const auto& report = vram_.report();
    QString text = report ? words_of(*report) : QString();
    if (device->parked) {
        const QString next = tr("the next message brings back what it needs");
        return text.isEmpty() ? tr("Parked: %1").arg(next) : tr("%1; %2").arg(text, next);
    }
    if (text.isEmpty()) text = tr("Drag ◆ inwards, and other programs have more of this card at once");
    return text;
}

QString VramBar::words() const {
    using State = VramController::State;
    switch (vram_.state()) {
        case State::none: return vram_.no_gpu() ? tr("No model is loaded, and no NVIDIA or AMD GPU was found") : tr("No model is loaded");
        case State::loading: return tr("The model is being loaded");
        case State::processor:
            if (vram_.no_gpu()) return tr("Running on the processor: no NVIDIA or AMD GPU was found");
            return rows_.empty() ? tr("Running on the processor") : tr("Running on the processor: the model holds nothing of this card");
        case State::card: break;
    }
    const engine::VramDevice* device = speaker();
    const QString text = words_of_card();
    return device && rows_.size() > 1 ? tr("%1: %2").arg(brief_name(*device), text) : text;
}

void VramBar::update_line() {
    const QString text = words();
    if (text != line_->text()) line_->setText(text);
    const engine::VramDevice* device = speaker();
    const bool card = vram_.state() == VramController::State::card && device;
    why_->setVisible(card ? !device->elastic : vram_.no_gpu());
    growing_->setVisible(card && device->growing);
    if (growing_->isHidden()) return;
    const double goal = static_cast<double>(own_at(*device, device->reserve_bytes));
    growing_->setValue(goal > 0 ? static_cast<int>(1000 * static_cast<double>(device->own_bytes()) / goal) : 0);
}

void VramBar::resizeEvent(QResizeEvent* event) {
    QFrame::resizeEvent(event);
    // Reports come and go: the page above stands still.
    const bool narrow = event->size().width() < theme_.px(640);
    line_->setMinimumHeight((narrow ? 2 : 1) * line_->fontMetrics().lineSpacing());
}

void VramBar::showEvent(QShowEvent* event) {
    QFrame::showEvent(event);
    vram_.set_watched(true);
}

void VramBar::hideEvent(QHideEvent* event) {
    QFrame::hideEvent(event);
    vram_.set_watched(false);
}

}  // namespace headroom::ui
