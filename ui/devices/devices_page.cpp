#include "ui/devices/devices_page.h"

#include <QScrollArea>
#include <QVBoxLayout>

#include "ui/devices/device_card.h"
#include "ui/pages/page_title.h"
#include "ui/theme/scrolled_page.h"

namespace headroom::ui {

DevicesPage::DevicesPage(const Theme& theme, DevicesController& devices, VramController& vram, QWidget* parent)
    : QWidget(parent), theme_(theme), devices_(devices), vram_(vram), cards_column_(new QVBoxLayout), searching_(new QLabel(tr("Looking for GPUs…"), this)),
      none_(new QFrame(this)), explanation_(new QLabel(none_)) {
    searching_->setObjectName(QStringLiteral("devices_searching"));
    searching_->setProperty("muted", true);
    none_->setObjectName(QStringLiteral("devices_none"));
    explanation_->setObjectName(QStringLiteral("devices_explanation"));
    explanation_->setTextFormat(Qt::PlainText);
    explanation_->setWordWrap(true);
    explanation_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    auto* again = new QPushButton(tr("Look again"), none_);
    again->setObjectName(QStringLiteral("devices_find"));
    connect(again, &QPushButton::clicked, &devices_, &DevicesController::find);
    auto* none_column = new QVBoxLayout(none_);
    none_column->setContentsMargins(theme.px(16), theme.px(16), theme.px(16), theme.px(16));
    none_column->setSpacing(theme.px(16));
    none_column->addWidget(explanation_);
    none_column->addWidget(again, 0, Qt::AlignLeading);

    auto* cards = new QWidget(this);
    cards->setLayout(cards_column_);
    cards_column_->setContentsMargins(0, theme.px(8), 0, 0);
    cards_column_->setSpacing(theme.px(16));
    cards_column_->addWidget(searching_);
    cards_column_->addWidget(none_);
    auto* centered = new CenteredColumn(theme, this);
    centered->add(new PageTitle(theme, tr("Devices"), this));
    centered->add(cards);
    setFocusProxy(fill_scrolled(this, theme, centered, QStringLiteral("devices")));

    connect(&devices_, &DevicesController::found, this, &DevicesPage::rebuild);
    connect(&devices_, &DevicesController::device_changed, this, [this](int index) {
        cards_[static_cast<std::size_t>(index)]->set_status(devices_.devices()[static_cast<std::size_t>(index)]);
    });
    connect(&devices_, &DevicesController::memory_changed, this, [this](int index) {
        cards_[static_cast<std::size_t>(index)]->set_memory(devices_.devices()[static_cast<std::size_t>(index)]);
    });
    rebuild();
}

void DevicesPage::rebuild() {
    using State = DevicesController::State;
    const bool found = devices_.state() == State::found;
    searching_->setVisible(!found);
    none_->setVisible(found && devices_.devices().empty());
    explanation_->setText(QString(devices_.explanation()).replace(QStringLiteral("\n  "), QStringLiteral("\n\n")));  // paragraphs
    qDeleteAll(cards_);
    cards_.clear();
    if (!found) return;
    for (const DeviceStatus& status : devices_.devices()) {
        auto* card = new DeviceCard(theme_, vram_, status, this);
        connect(card, &DeviceCard::test_clicked, &devices_, [this, id = status.device.id] { devices_.test(id); });
        cards_column_->addWidget(card);
        cards_.push_back(card);
    }
}

void DevicesPage::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    devices_.set_watching(true);
    if (devices_.state() == DevicesController::State::idle) devices_.find();
}

void DevicesPage::hideEvent(QHideEvent* event) {
    QWidget::hideEvent(event);
    devices_.set_watching(false);
}

}  // namespace headroom::ui
