#pragma once

#include <QBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QWidget>

#include "ui/theme/icon_button.h"
#include "ui/vram/vram_controller.h"
#include "ui/vram/vram_track.h"

namespace headroom::ui {

// One GPU of the bar: its name, whether its memory can be given back, and the memory itself with the handle. The presets are in its menu.
class VramRow : public QWidget {
    Q_OBJECT

public:
    VramRow(const Theme& theme, VramController& vram, const std::string& device, QWidget* parent = nullptr);

    [[nodiscard]] const std::string& device() const { return device_; }
    void update_figures();
    // A button behind the name.
    void add_button(QWidget* button) { head_->layout()->addWidget(button); }
    // How wide the name wants to be, with what stands beside it; and how wide it is where it stands in front of the memory.
    [[nodiscard]] int head_width() const { return head_->sizeHint().width(); }
    void set_head_width(int width);

protected:
    void resizeEvent(QResizeEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;

private:
    void fill_menu();
    void arrange();

    const Theme& theme_;
    VramController& vram_;
    std::string device_;
    QWidget* head_;
    QLabel* name_;
    QLabel* badge_;
    VramTrack* track_;
    IconButton* menu_button_;
    QMenu* menu_;
    QBoxLayout* all_;
    int head_width_ = 0;
};

}  // namespace headroom::ui
