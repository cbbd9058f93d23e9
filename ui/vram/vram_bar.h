#pragma once

#include <QFrame>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>

#include <vector>

#include "ui/theme/theme.h"
#include "ui/vram/vram_controller.h"

class QVBoxLayout;

namespace headroom::ui {

class IconButton;
class VramRow;

// Along the bottom of the window: the memory of each GPU in use, and below it what was done last or why nothing can be done, in words.
class VramBar : public QFrame {
    Q_OBJECT

public:
    VramBar(const Theme& theme, VramController& vram, QWidget* parent = nullptr);

    [[nodiscard]] QString words() const;  // of the line

signals:
    void details_clicked();  // why a card's memory stays as it is

protected:
    void resizeEvent(QResizeEvent* event) override;
    void showEvent(QShowEvent* event) override;
    void hideEvent(QHideEvent* event) override;

private:
    void rebuild();
    void update_figures();
    void update_line();
    void set_unfolded(bool unfolded);
    [[nodiscard]] QString words_of_card() const;
    [[nodiscard]] const engine::VramDevice* speaker() const;  // whom the line is about

    const Theme& theme_;
    VramController& vram_;
    QVBoxLayout* rows_column_;
    std::vector<VramRow*> rows_;  // the one with most of the model comes first
    IconButton* toggle_ = nullptr;
    QProgressBar* growing_;
    QLabel* line_;
    QPushButton* why_;
    bool unfolded_ = false;
};

}  // namespace headroom::ui
