#include <iostream>

#include <unistd.h>

#include "cli/terminal.h"

namespace headroom::cli {

Terminal prepare_terminal() {
    return {::isatty(STDIN_FILENO) == 1, ::isatty(STDOUT_FILENO) == 1, ::isatty(STDERR_FILENO) == 1};
}

std::vector<std::string> utf8_arguments(int argc, char** argv) {
    return argc > 1 ? std::vector<std::string>(argv + 1, argv + argc) : std::vector<std::string>();
}

bool read_line(std::string& line) { return static_cast<bool>(std::getline(std::cin, line)); }

}  // namespace headroom::cli
