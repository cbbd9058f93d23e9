#pragma once

namespace headroom::ui {

// The main function of `headroom [MODEL.gguf] [--ctx N] [--threads N]`: the program's exit code.
int run_window(int argc, char** argv);

}  // namespace headroom::ui
