#pragma once

#include <string>
#include <vector>

namespace headroom::cli {

// The whole command line program. arguments: UTF-8, without the program's name. Returns the exit code: 0 done, 1 it could not be
// done (one line on standard error says why), 2 wrong usage. Call it once, from main.
[[nodiscard]] int run(const std::vector<std::string>& arguments);

}  // namespace headroom::cli
