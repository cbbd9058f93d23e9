#pragma once

// The commands, one file each: each function adds one to the program.

#include "cli/program.h"

namespace headroom::cli {

void add_chat(CLI::App& app, Program& program);
void add_complete(CLI::App& app, Program& program);
void add_tokenize(CLI::App& app, Program& program);
void add_detokenize(CLI::App& app, Program& program);
void add_template(CLI::App& app, Program& program);
void add_inspect(CLI::App& app, Program& program);
void add_eval(CLI::App& app, Program& program);
void add_perplexity(CLI::App& app, Program& program);
void add_bench(CLI::App& app, Program& program);
void add_devices(CLI::App& app, Program& program);
void add_serve(CLI::App& app, Program& program);
void add_vram(CLI::App& app, Program& program);

}  // namespace headroom::cli
