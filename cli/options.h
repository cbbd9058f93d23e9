#pragma once

// Options that several commands have, and what is made of them.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/interrupt.h"
#include "cli/program.h"
#include "core/engine/engine.h"

namespace headroom::cli {

struct ModelOptions {
    std::string model = "builtin";
    std::string device = "auto";
    std::vector<std::uint64_t> reserve_mib;
    int threads = 0;
    int context = 0;
    engine::KvType kv_type = engine::KvType::f16;
};

// A number from 1 (from 0): a check for CLI11 that does not show in the help.
[[nodiscard]] CLI::Validator positive();
[[nodiscard]] CLI::Validator not_negative();

// -m
void add_model_option(CLI::App& command, ModelOptions& options);
// --kv-type
void add_kv_option(CLI::App& command, ModelOptions& options);
// -m, --threads, --ctx, --kv-type, --device, --reserve-mib
void add_compute_options(CLI::App& command, ModelOptions& options);

struct AnswerOptions {
    engine::SamplingOptions sampling;
    int max_tokens = -1;
    std::vector<std::string> stops;
};

// -n, --temp, --top-k, …, --stop
void add_answer_options(CLI::App& command, AnswerOptions& options);

// Its header and metadata only, for commands that do not compute.
[[nodiscard]] Result<gguf::File> open_model_file(const std::string& name);

// Without the path. Error: invalid_argument (several reserves).
[[nodiscard]] Result<engine::LoadOptions> load_options(const ModelOptions& options);

// Loads the model; Ctrl-C stops it. Shows progress on standard error where that is a terminal, and the model's warnings.
[[nodiscard]] Result<std::shared_ptr<engine::Model>> load_model(const Program& program, const ModelOptions& options,
                                                                Interrupt& interrupt);

// "NVIDIA GeForce RTX 4070 (cuda:0), 24 of 32 layers there", "8 threads of the CPU".
[[nodiscard]] std::string where_it_runs(const engine::Model& model);

// {"text", "finish_reason", "prompt_tokens", …}: what chat and complete print.
[[nodiscard]] Json answer_json(const engine::GenerateResult& result);
// "38 tokens, 212.4 tok/s"; says so where the answer was cut or cancelled.
[[nodiscard]] std::string answer_figures(const engine::GenerateResult& result);

}  // namespace headroom::cli
