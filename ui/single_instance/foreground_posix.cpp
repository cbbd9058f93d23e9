#include "ui/single_instance/foreground.h"

namespace headroom::ui {

void let_take_foreground(const QLockFile&) {}  // the window manager decides

}  // namespace headroom::ui
