#pragma once

#include <QColor>
#include <QFont>
#include <QIcon>
#include <QObject>
#include <QPalette>

#include <array>

namespace headroom::ui {

enum class ColorRole {
    page,         // behind the chat
    sidebar,
    surface,      // bubbles, inputs
    hover,        // under the pointer
    border,
    text,
    muted,        // text and icons of second rank; 4.5:1 on page, sidebar and surface
    accent,       // the one colour
    on_accent,    // text on it
    accent_soft,  // selection, active items
    danger,
    danger_soft,
    success_soft,
    warning_soft,
    code,         // behind code
    vram_others,   // VRAM by owner: other programs, keys and values, weights, and what else the model holds. Told apart by colour-blind people
    vram_kv,       // too (grey, orange, two lightnesses of blue); text or page stands readably on each
    vram_weights,
    vram_scratch,
    count_,
};

// Colours, sizes and icons of the window, in light and dark. One for the program; widgets keep a reference and listen to changed().
class Theme : public QObject {
    Q_OBJECT

public:
    enum class Mode { system, light, dark };

    // Takes the application's style, font and style sheet over.
    Theme(Mode mode, int text_percent, QObject* parent = nullptr);

    [[nodiscard]] Mode mode() const { return mode_; }
    void set_mode(Mode mode);
    [[nodiscard]] int text_percent() const { return text_percent_; }
    void set_text_percent(int percent);  // clipped to 75 … 200
    // The system may have changed between light and dark.
    void system_changed();

    [[nodiscard]] bool dark() const { return dark_; }
    [[nodiscard]] QColor color(ColorRole role) const;
    // `text` or `page`, whichever is easier to read on a surface of this colour.
    [[nodiscard]] ColorRole text_on(ColorRole role) const;
    // For top-level windows; QApplication's own palette stays the system's, so that its changes are seen.
    [[nodiscard]] QPalette palette() const;
    // A length of the 8-pixel grid, scaled with the text.
    [[nodiscard]] int px(int length) const { return length * text_percent_ / 100; }
    // A drawing of resources/icons in the colour of `role` (muted in its disabled state).
    [[nodiscard]] QIcon icon(const QString& name, ColorRole role = ColorRole::muted) const;
    [[nodiscard]] QFont code_font() const;

signals:
    void changed();

private:
    void apply();
    [[nodiscard]] QString style_sheet() const;

    Mode mode_;
    int text_percent_;
    bool dark_ = false;
    QFont system_font_;
};

[[nodiscard]] QString to_string(Theme::Mode mode);          // "system", "light", "dark"
[[nodiscard]] Theme::Mode mode_from(const QString& text);   // system for anything else

}  // namespace headroom::ui
