#include "ui/vram/vram_panel.h"

#include <QFormLayout>
#include <QVBoxLayout>

#include "ui/theme/size_text.h"
#include "ui/vram/vram_paint.h"

namespace headroom::ui {

VramPanel::VramPanel(const Theme& theme, VramController& vram, const engine::Device& device, QWidget* parent)
    : QWidget(parent), vram_(vram), device_(device.id), note_(new QLabel(this)), history_title_(new QLabel(tr("The last ten minutes"), this)),
      history_(new HistoryGraph(theme, this)), legend_(new QLabel(this)), theme_(theme) {
    auto* form = new QFormLayout;
    form->setContentsMargins(0, 0, 0, 0);
    form->setHorizontalSpacing(theme.px(16));
    form->setVerticalSpacing(theme.px(8));
    form->setLabelAlignment(Qt::AlignLeading | Qt::AlignVCenter);
    form->setFieldGrowthPolicy(QFormLayout::FieldsStayAtSizeHint);
    form->setRowWrapPolicy(QFormLayout::WrapLongRows);
    reserve_ = add_field(*form, tr("Keep free for other programs"), tr("default"), "device_reserve",
                         tr("How much of this card the model leaves to other programs, whatever they do; also after a restart"));
    cap_ = add_field(*form, tr("Use at most"), tr("no limit"), "device_cap", tr("The most that the model may take of this card; also after a restart"));
    for (GibField* field : {reserve_, cap_}) field->set_most(device.total_bytes);
    connect(reserve_, &GibField::chosen, this, [this](std::optional<std::uint64_t> bytes) { vram_.set_reserve(device_, bytes); });
    connect(cap_, &GibField::chosen, this, [this](std::optional<std::uint64_t> bytes) { vram_.set_cap(device_, bytes); });
    note_->setObjectName(QStringLiteral("device_share_note"));
    note_->setProperty("muted", true);
    note_->setWordWrap(true);
    history_title_->setProperty("muted", true);
    history_->setObjectName(QStringLiteral("device_history"));
    legend_->setObjectName(QStringLiteral("device_history_legend"));
    legend_->setTextFormat(Qt::RichText);
    legend_->setProperty("muted", true);
    legend_->setWordWrap(true);

    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(theme.px(8));
    column->addLayout(form);
    column->addWidget(note_);
    column->addWidget(history_title_);
    column->addWidget(history_);
    column->addWidget(legend_);
    connect(&vram_, &VramController::figures_changed, this, &VramPanel::update_figures);
    connect(&vram_, &VramController::history_changed, this, &VramPanel::update_history);
    connect(&theme, &Theme::changed, this, &VramPanel::update_figures);
    update_figures();
    update_history();
}

GibField* VramPanel::add_field(QFormLayout& form, const QString& label, const QString& nothing, const char* name, const QString& help) {
    auto* field = new GibField(nothing, this);
    field->setObjectName(QLatin1String(name));
    field->setToolTip(help);
    field->setAccessibleName(label);
    field->setAccessibleDescription(help);
    auto* words = new QLabel(label, this);
    words->setProperty("muted", true);
    words->setBuddy(field);
    field->ensurePolished();
    words->setMinimumHeight(field->sizeHint().height());
    words->setAlignment(Qt::AlignLeading | Qt::AlignVCenter);
    form.addRow(words, field);
    return field;
}

void VramPanel::update_figures() {
    const engine::VramWish wish = vram_.wish(device_);
    reserve_->set_bytes(wish.reserve_bytes);
    cap_->set_bytes(wish.cap_bytes);
    const engine::VramDevice* device = vram_.state() == VramController::State::card ? vram_.find(device_) : nullptr;
    if (!device) {
        note_->setText(tr("Takes effect when a model is loaded on this card."));
    } else if (!device->elastic) {
        note_->setText(tr("Takes effect when the model is loaded again."));
    } else {
        note_->setText(tr("Takes effect at once. The default keeps %1 free.").arg(size_text(device->default_reserve_bytes)));
    }
    for (QWidget* widget : {static_cast<QWidget*>(history_title_), static_cast<QWidget*>(history_), static_cast<QWidget*>(legend_)}) {
        widget->setVisible(device != nullptr);
    }
    if (device) legend_->setText(legend_of(theme_, *device));
}

void VramPanel::update_history() {
    const VramHistory* history = vram_.history(device_);
    if (history) history_->set_history(*history);
}

}  // namespace headroom::ui
