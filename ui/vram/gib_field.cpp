#include "ui/vram/gib_field.h"

#include <QLineEdit>
#include <QSignalBlocker>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>

#include "core/base/bytes.h"

namespace headroom::ui {
namespace {

constexpr double kNothing = -0.1;  // below zero by one step of what is shown

}  // namespace

GibField::GibField(const QString& nothing, QWidget* parent) : QDoubleSpinBox(parent) {
    setDecimals(1);
    setSingleStep(0.5);
    setRange(kNothing, 1024);
    setSpecialValueText(nothing);
    setSuffix(tr(" GiB"));
    setKeyboardTracking(false);
    setFocusPolicy(Qt::StrongFocus);
    setValue(kNothing);
    connect(this, &QDoubleSpinBox::valueChanged, this, [this](double value) {
        exact_.reset();
        if (value >= 0) exact_ = std::min(static_cast<std::uint64_t>(std::lround(value * 10)) * GiB / 10, most_ > 0 ? most_ : UINT64_MAX);
        if (value >= maximum()) exact_ = most_;
        emit chosen(exact_);
    });
}

std::optional<std::uint64_t> GibField::bytes() const { return exact_; }

void GibField::set_bytes(std::optional<std::uint64_t> bytes) {
    if (exact_ == bytes || lineEdit()->isModified()) return;
    const QSignalBlocker no_hand(this);
    exact_ = bytes;
    setValue(bytes ? static_cast<double>(*bytes) / static_cast<double>(GiB) : kNothing);
}

void GibField::set_most(std::uint64_t bytes) {
    if (most_ == bytes) return;
    most_ = bytes;
    const QSignalBlocker no_hand(this);
    setMaximum(std::ceil(static_cast<double>(bytes) / static_cast<double>(GiB) * 10) / 10);
}

void GibField::stepBy(int steps) {
    if (value() < 0 && steps > 0) return setValue((steps - 1) * singleStep());
    if (value() > 0 && value() + steps * singleStep() < 0) return setValue(0);  // zero lies on the way
    QDoubleSpinBox::stepBy(steps);
}

bool GibField::is_nothing(const QString& text) const {
    const QString typed = text.trimmed();
    return typed.isEmpty() || typed == suffix().trimmed() || typed == specialValueText();
}

double GibField::valueFromText(const QString& text) const {
    return is_nothing(text) ? kNothing : QDoubleSpinBox::valueFromText(text);
}

QValidator::State GibField::validate(QString& text, int& at) const {
    return is_nothing(text) ? QValidator::Acceptable : QDoubleSpinBox::validate(text, at);
}

// A wheel that was meant for the page moves no gigabytes.
void GibField::wheelEvent(QWheelEvent* event) { event->ignore(); }

}  // namespace headroom::ui
