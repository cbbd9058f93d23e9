#pragma once

#include <QFrame>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>

#include "ui/controller/engine_controller.h"
#include "ui/theme/theme.h"

namespace headroom::ui {

// The line above the message field while there is no model that answers: what is being loaded and how far, the question whether to
// load one that needs more memory than there is, or why it failed and what to do. Hidden when the model is ready.
class ModelStrip : public QFrame {
    Q_OBJECT

public:
    ModelStrip(const Theme& theme, EngineController& engine, QWidget* parent = nullptr);

signals:
    void open_model();
    void open_builtin();

private:
    void update_state();
    void update_progress();

    EngineController& engine_;
    QLabel* title_;
    QLabel* detail_;
    QProgressBar* bar_;
    QPushButton* cancel_;
    QPushButton* anyway_;
    QPushButton* again_;
    QPushButton* open_;
    QPushButton* builtin_;
};

}  // namespace headroom::ui
