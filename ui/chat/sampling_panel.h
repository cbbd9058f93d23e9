#pragma once

#include <QFrame>

#include <vector>

#include "ui/store/records.h"
#include "ui/theme/theme.h"

class QDoubleSpinBox;
class QFormLayout;
class QLineEdit;
class QPlainTextEdit;
class QSpinBox;

namespace headroom::ui {

// The system prompt and the sampling options of a conversation, at the side of the chat.
class SamplingPanel : public QFrame {
    Q_OBJECT

public:
    explicit SamplingPanel(const Theme& theme, QWidget* parent = nullptr);

    void set_settings(const ConversationSettings& settings);
    [[nodiscard]] ConversationSettings settings() const;

signals:
    void changed(const ConversationSettings& settings);  // by the user
    void close_requested();

private:
    QDoubleSpinBox* add_number(QFormLayout& form, const char* name, const QString& label, const QString& help, double minimum,
                               double maximum, double step);
    QSpinBox* add_count(QFormLayout& form, const char* name, const QString& label, const QString& help, int minimum, int maximum,
                        const QString& special);
    void add_row(QFormLayout& form, QWidget* field, const char* name, const QString& label, const QString& help);
    void edited();

    bool setting_ = false;
    QPlainTextEdit* system_prompt_;
    QDoubleSpinBox* temperature_;
    QSpinBox* top_k_;
    QDoubleSpinBox* top_p_;
    QDoubleSpinBox* min_p_;
    QDoubleSpinBox* repeat_;
    QDoubleSpinBox* presence_;
    QDoubleSpinBox* frequency_;
    QSpinBox* max_tokens_;
    QLineEdit* seed_;
};

}  // namespace headroom::ui
