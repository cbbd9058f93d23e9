#pragma once

#include <QLabel>
#include <QPushButton>
#include <QWidget>

#include <vector>

#include "ui/controller/devices_controller.h"
#include "ui/theme/theme.h"

class QVBoxLayout;

namespace headroom::ui {

class DeviceCard;
class VramController;

// The machine's GPUs, a card for each. Looks for them when it is shown for the first time and nobody did before, and reads their memory while it is visible.
class DevicesPage : public QWidget {
    Q_OBJECT

public:
    DevicesPage(const Theme& theme, DevicesController& devices, VramController& vram, QWidget* parent = nullptr);

protected:
    void showEvent(QShowEvent* event) override;
    void hideEvent(QHideEvent* event) override;

private:
    void rebuild();

    const Theme& theme_;
    DevicesController& devices_;
    VramController& vram_;
    QVBoxLayout* cards_column_;
    QLabel* searching_;
    QFrame* none_;
    QLabel* explanation_;
    std::vector<DeviceCard*> cards_;
};

}  // namespace headroom::ui
