#include "ui/devices/device_card.h"

#include <QDateTime>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLocale>
#include <QStyle>
#include <QVBoxLayout>

#include "core/base/bytes.h"

namespace headroom::ui {
namespace {

QString text_of(const std::string& text) { return QString::fromStdString(text); }

QString outcome_text(engine::DeviceTestStep::Outcome outcome) {
    using Outcome = engine::DeviceTestStep::Outcome;
    switch (outcome) {
        case Outcome::passed: return DeviceCard::tr("passed");
        case Outcome::noted: return DeviceCard::tr("noted");
        case Outcome::failed: return DeviceCard::tr("failed");
        case Outcome::skipped: return DeviceCard::tr("skipped");
    }
    return {};
}

}  // namespace

DeviceCard::DeviceCard(const Theme& theme, VramController& vram, const DeviceStatus& status, QWidget* parent)
    : QFrame(parent), theme_(theme), badge_(add_label("device_badge")), memory_(new MemoryBar(theme, this)), memory_text_(add_label("device_memory_text")),
      meaning_(add_label("device_meaning")), reason_box_(new QFrame(this)), reason_(add_label("device_reason", reason_box_)),
      progress_box_(new QWidget(this)), progress_text_(add_label("device_progress_text", progress_box_)), progress_(new QProgressBar(progress_box_)),
      tested_(add_label("device_tested")), test_(new QPushButton(this)),
      toggle_(new IconButton(theme, QStringLiteral("chevron-right"), tr("What the test saw"), this)), steps_(new QWidget(this)) {
    const engine::Device& device = status.device;
    setObjectName(QStringLiteral("device_card"));
    setAccessibleName(text_of(device.name));
    auto* name = add_label("device_name");
    name->setText(device.integrated ? tr("%1 (integrated)").arg(text_of(device.name)) : text_of(device.name));
    name->setProperty("heading", true);
    badge_->setWordWrap(false);
    memory_->setObjectName(QStringLiteral("device_memory_bar"));
    memory_text_->setTextFormat(Qt::RichText);
    memory_text_->setProperty("muted", true);
    reason_box_->setObjectName(QStringLiteral("device_reason_box"));
    auto* reason_column = new QVBoxLayout(reason_box_);
    reason_column->setContentsMargins(theme.px(12), theme.px(8), theme.px(12), theme.px(8));
    reason_column->setSpacing(theme.px(4));
    auto* reason_title = new QLabel(tr("Reason"), reason_box_);
    reason_title->setProperty("heading", true);
    reason_column->addWidget(reason_title);
    reason_column->addWidget(reason_);
    progress_->setObjectName(QStringLiteral("device_progress"));
    progress_->setTextVisible(false);
    progress_->setAccessibleName(tr("Progress of the test"));
    auto* progress_column = new QVBoxLayout(progress_box_);
    progress_column->setContentsMargins(0, 0, 0, 0);
    progress_column->setSpacing(theme.px(8));
    progress_column->addWidget(progress_text_);
    progress_column->addWidget(progress_);
    test_->setObjectName(QStringLiteral("device_test"));
    test_->setToolTip(tr("Tests this device's memory anew; needs 256 MiB of free VRAM for some seconds"));
    connect(test_, &QPushButton::clicked, this, &DeviceCard::test_clicked);
    toggle_->setObjectName(QStringLiteral("device_steps_toggle"));
    toggle_->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    toggle_->setCheckable(true);
    connect(toggle_, &QToolButton::toggled, this, &DeviceCard::set_unfolded);
    steps_->setObjectName(QStringLiteral("device_steps"));
    steps_->hide();

    auto* head = new QHBoxLayout;
    head->setSpacing(theme.px(16));
    head->addWidget(name, 1);
    head->addWidget(badge_, 0, Qt::AlignTop);
    auto* facts = new QFormLayout;
    facts->setContentsMargins(0, 0, 0, 0);
    facts->setHorizontalSpacing(theme.px(16));
    facts->setVerticalSpacing(theme.px(4));
    facts->setLabelAlignment(Qt::AlignLeading | Qt::AlignTop);
    facts->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    facts->setRowWrapPolicy(QFormLayout::WrapLongRows);
    add_fact(*facts, tr("Driver"), text_of(device.driver.empty() ? device.runtime : device.runtime + ", driver " + device.driver), "device_driver");
    add_fact(*facts, tr("Card"), text_of(device.id + ", " + (device.architecture.empty() ? "" : device.architecture + ", ") + device.bus), "device_bus");
    add_fact(*facts, tr("UUID"), text_of(device.uuid), "device_uuid");
    auto* foot = new QHBoxLayout;
    foot->setSpacing(theme.px(16));
    foot->addWidget(test_);
    foot->addWidget(tested_, 1);
    tested_->setProperty("muted", true);
    QSizePolicy room = tested_->sizePolicy();
    room.setRetainSizeWhenHidden(true);  // the button keeps its width
    tested_->setSizePolicy(room);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(theme.px(16), theme.px(16), theme.px(16), theme.px(16));
    column->setSpacing(theme.px(8));
    column->addLayout(head);
    column->addWidget(memory_);
    column->addWidget(memory_text_);
    column->addSpacing(theme.px(4));
    column->addWidget(meaning_);
    column->addWidget(reason_box_);
    column->addWidget(progress_box_);
    column->addSpacing(theme.px(4));
    column->addWidget(new VramPanel(theme, vram, device, this));
    column->addSpacing(theme.px(4));
    column->addLayout(facts);
    column->addSpacing(theme.px(4));
    column->addLayout(foot);
    column->addWidget(toggle_, 0, Qt::AlignLeading);
    column->addWidget(steps_);
    connect(&theme, &Theme::changed, this, [this] {
        if (!memory_->isHidden()) memory_text_->setText(memory_->legend());  // its squares have colours
    });
    set_status(status);
    set_memory(status);
}

QLabel* DeviceCard::add_label(const char* name, QWidget* parent) {
    auto* label = new QLabel(parent ? parent : this);
    label->setObjectName(QLatin1String(name));
    label->setTextFormat(Qt::PlainText);
    label->setWordWrap(true);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    return label;
}

void DeviceCard::add_fact(QFormLayout& facts, const QString& label, const QString& text, const char* name) {
    auto* words = new QLabel(label, this);
    words->setProperty("muted", true);
    auto* value = add_label(name);
    value->setText(text);
    facts.addRow(words, value);
}

void DeviceCard::set_badge(const QString& text, const char* verdict, const QString& tip) {
    badge_->setText(text);
    badge_->setToolTip(tip);
    reason_box_->setProperty("verdict", verdict);
    badge_->setProperty("verdict", verdict);
    for (QWidget* widget : {static_cast<QWidget*>(badge_), static_cast<QWidget*>(reason_box_)}) {
        widget->style()->unpolish(widget);  // the style sheet looks at the property
        widget->style()->polish(widget);
    }
}

void DeviceCard::set_status(const DeviceStatus& status) {
    const auto& verdict = status.device.verdict;
    progress_box_->setVisible(status.testing);
    test_->setEnabled(!status.testing);
    test_->setText(status.testing ? tr("Testing…") : tr("Test again"));
    if (status.testing) {
        const engine::DeviceTestProgress& progress = status.progress;
        progress_text_->setText(progress.number == 0 ? tr("The test of this device's memory is starting.")
                                                     : tr("Testing step %1 of %2: %3").arg(progress.number).arg(progress.count).arg(text_of(progress.step)));
        progress_->setRange(0, std::max(1, progress.count));
        progress_->setValue(std::max(0, progress.number - 1));
        set_badge(tr("testing"), "testing", tr("Finds out whether this device's memory can be given back"));
    }
    meaning_->setVisible(verdict && !status.testing);
    reason_box_->setVisible(verdict && !status.testing && !verdict->reason.empty());
    tested_->setVisible(verdict && !status.testing);
    toggle_->setVisible(verdict && !status.testing);
    steps_->setVisible(verdict && !status.testing && toggle_->isChecked());
    if (verdict && !status.testing) {
        set_verdict(*verdict);
    } else if (!status.testing) {
        set_badge(tr("not tested"), "testing", tr("It is not known whether this device's memory can be given back"));
        test_->setText(tr("Test"));
    }
}

void DeviceCard::set_verdict(const engine::DeviceVerdict& verdict) {
    using Kind = engine::DeviceVerdict::Kind;
    const QString meaning = text_of(verdict.meaning);
    switch (verdict.kind) {
        case Kind::on: set_badge(tr("● on"), "on", meaning); break;
        case Kind::fixed: set_badge(tr("◐ fixed"), "fixed", meaning); break;
        case Kind::off: set_badge(tr("○ off"), "off", meaning); break;
    }
    meaning_->setText(verdict.segment_bytes == 0 ? meaning : tr("%1 Segments of %2 MiB.").arg(meaning).arg(verdict.segment_bytes / MiB));
    reason_->setText(text_of(verdict.reason));
    const QDateTime time = QDateTime::fromString(text_of(verdict.tested_at), Qt::ISODate).toLocalTime();
    const QLocale locale;
    const QString seconds = tr("%1 s").arg(locale.toString(verdict.seconds, 'f', 1)).replace(u' ', QChar::Nbsp);
    tested_->setText(tr("Tested on %1, in %2").arg(locale.toString(time, tr("d MMM yyyy 'at' HH:mm")), seconds));
    set_steps(verdict.steps);
}

void DeviceCard::set_steps(const std::vector<engine::DeviceTestStep>& steps) {
    delete steps_->layout();
    qDeleteAll(steps_->findChildren<QLabel*>());
    auto* column = new QVBoxLayout(steps_);
    column->setContentsMargins(theme_.px(28), 0, 0, 0);
    column->setSpacing(0);
    const QLocale locale;
    for (const engine::DeviceTestStep& step : steps) {
        auto* title = add_label("device_step", steps_);
        title->setText(tr("%1 · %2, %3 s").arg(text_of(step.title), outcome_text(step.outcome), locale.toString(step.seconds, 'f', 2)));
        auto* seen = add_label("device_step_seen", steps_);
        seen->setText(text_of(step.seen));
        seen->setProperty("muted", true);
        seen->setContentsMargins(0, 0, 0, theme_.px(8));
        column->addWidget(title);
        column->addWidget(seen);
    }
}

void DeviceCard::set_unfolded(bool unfolded) {
    toggle_->set_icon(unfolded ? QStringLiteral("chevron-down") : isRightToLeft() ? QStringLiteral("chevron-left") : QStringLiteral("chevron-right"));
    steps_->setVisible(unfolded);
}

void DeviceCard::set_memory(const DeviceStatus& status) {
    memory_->setVisible(status.memory.has_value());
    if (status.memory) {
        memory_->set_memory(*status.memory);
        memory_text_->setText(memory_->legend());
    } else {
        memory_text_->setText(tr("%1 of VRAM").arg(text_of(format_bytes(status.device.total_bytes))));
    }
}

}  // namespace headroom::ui
