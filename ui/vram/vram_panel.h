#pragma once

#include <QLabel>
#include <QWidget>

#include "ui/vram/gib_field.h"
#include "ui/vram/history_graph.h"
#include "ui/vram/vram_controller.h"

class QFormLayout;

namespace headroom::ui {

// A GPU's share for the model, on its card of the Devices page: what is kept free and what is used at most, also for the next start, and the
// history of ten minutes.
class VramPanel : public QWidget {
    Q_OBJECT

public:
    VramPanel(const Theme& theme, VramController& vram, const engine::Device& device, QWidget* parent = nullptr);

private:
    void update_figures();
    void update_history();
    GibField* add_field(QFormLayout& form, const QString& label, const QString& nothing, const char* name, const QString& help);

    VramController& vram_;
    std::string device_;
    GibField* reserve_;
    GibField* cap_;
    QLabel* note_;
    QLabel* history_title_;
    HistoryGraph* history_;
    QLabel* legend_;
    const Theme& theme_;
};

}  // namespace headroom::ui
