#pragma once

class QLockFile;

namespace headroom::ui {

// Lets the program that holds `lock` come to the front: on Windows only the program that the user has just started may allow that.
void let_take_foreground(const QLockFile& lock);

}  // namespace headroom::ui
