#pragma once

#include <QString>

#include <functional>

#include "ui/theme/theme.h"

namespace headroom::ui {

// The application's style sheet. color: "#rrggbb" of a role; px: a scaled length.
[[nodiscard]] QString make_style_sheet(const std::function<QString(ColorRole)>& color, const std::function<int(int)>& px);

}  // namespace headroom::ui
