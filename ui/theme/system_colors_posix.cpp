#include <QGuiApplication>
#include <QPalette>

#include "ui/theme/system_colors.h"

namespace headroom::ui {

bool system_is_dark() {
    // The platform's theme plugin hands the desktop's colours over as the application's palette.
    const QPalette palette = QGuiApplication::palette();
    return palette.color(QPalette::Window).lightness() < palette.color(QPalette::WindowText).lightness();
}

}  // namespace headroom::ui
