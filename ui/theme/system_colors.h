#pragma once

namespace headroom::ui {

// Whether the system's programs are dark now. Needs a QGuiApplication.
[[nodiscard]] bool system_is_dark();

}  // namespace headroom::ui
