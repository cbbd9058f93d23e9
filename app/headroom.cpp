#include <algorithm>

#include "core/vmm/self_test_process.h"
#include "ui/program/run_window.h"

int main(int argc, char** argv) {
    if (const auto code = headroom::vmm::run_hidden_command({argv + std::min(argc, 1), argv + argc})) return *code;  // this process is the self-test of a GPU
    return headroom::ui::run_window(argc, argv);
}
