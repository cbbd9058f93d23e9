#include "ui/chat/branch_switch.h"

#include <QHBoxLayout>

#include <algorithm>

namespace headroom::ui {

BranchSwitch::BranchSwitch(const Theme& theme, QWidget* parent)
    : QWidget(parent),
      previous_(new IconButton(theme, QStringLiteral("chevron-left"), tr("Previous version"), this)),
      next_(new IconButton(theme, QStringLiteral("chevron-right"), tr("Next version"), this)),
      position_(new QLabel(this)) {
    previous_->setObjectName(QStringLiteral("branch_previous"));
    next_->setObjectName(QStringLiteral("branch_next"));
    position_->setObjectName(QStringLiteral("branch_position"));
    position_->setProperty("muted", true);
    if (isRightToLeft()) {
        previous_->set_icon(QStringLiteral("chevron-right"));
        next_->set_icon(QStringLiteral("chevron-left"));
    }
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    row->addWidget(previous_);
    row->addWidget(position_);
    row->addWidget(next_);
    connect(previous_, &QToolButton::clicked, this, [this] { emit selected(siblings_[shown_ - 1]); });
    connect(next_, &QToolButton::clicked, this, [this] { emit selected(siblings_[shown_ + 1]); });
}

void BranchSwitch::set_branches(const std::vector<qint64>& siblings, qint64 shown, bool enabled) {
    siblings_ = siblings;
    shown_ = static_cast<std::size_t>(std::ranges::find(siblings_, shown) - siblings_.begin());
    setVisible(siblings_.size() > 1);
    position_->setText(QStringLiteral("%1/%2").arg(shown_ + 1).arg(siblings_.size()));
    previous_->setEnabled(enabled && shown_ > 0);
    next_->setEnabled(enabled && shown_ + 1 < siblings_.size());
}

}  // namespace headroom::ui
