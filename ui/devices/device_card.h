#pragma once

#include <QFrame>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>

#include "ui/controller/devices_controller.h"
#include "ui/devices/memory_bar.h"
#include "ui/theme/icon_button.h"
#include "ui/vram/vram_panel.h"

class QFormLayout;

namespace headroom::ui {

// One GPU: what it is, how full it is, whether its memory can be given back and why not, and what its test saw.
class DeviceCard : public QFrame {
    Q_OBJECT

public:
    DeviceCard(const Theme& theme, VramController& vram, const DeviceStatus& status, QWidget* parent = nullptr);

    void set_status(const DeviceStatus& status);  // verdict and progress
    void set_memory(const DeviceStatus& status);

signals:
    void test_clicked();

private:
    QLabel* add_label(const char* name, QWidget* parent = nullptr);
    void add_fact(QFormLayout& facts, const QString& label, const QString& text, const char* name);
    void set_verdict(const engine::DeviceVerdict& verdict);
    void set_steps(const std::vector<engine::DeviceTestStep>& steps);
    void set_badge(const QString& text, const char* verdict, const QString& tip);
    void set_unfolded(bool unfolded);

    const Theme& theme_;
    QLabel* badge_;
    MemoryBar* memory_;
    QLabel* memory_text_;
    QLabel* meaning_;
    QFrame* reason_box_;
    QLabel* reason_;
    QWidget* progress_box_;
    QLabel* progress_text_;
    QProgressBar* progress_;
    QLabel* tested_;
    QPushButton* test_;
    IconButton* toggle_;
    QWidget* steps_;
};

}  // namespace headroom::ui
