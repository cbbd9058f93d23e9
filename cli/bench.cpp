#include <algorithm>
#include <chrono>

#include "cli/commands.h"
#include "cli/options.h"
#include "core/base/bytes.h"
#include "core/base/system.h"

namespace headroom::cli {
namespace {

struct Options {
    ModelOptions model;
    int prompt = 512;
    int decode = 128;
    int repeats = 3;
};

struct Run {
    double prompt_tps = 0;
    double decode_tps = 0;
};

double median(std::vector<double> values) {
    std::ranges::sort(values);
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Ordinary tokens in a fixed mixture: real prompts do not repeat one token.
std::vector<text::TokenId> some_tokens(const text::Tokenizer& tokenizer, int count) {
    std::vector<text::TokenId> tokens;
    std::uint64_t state = 1;
    while (tokens.size() < static_cast<std::size_t>(count)) {
        state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth's linear congruential generator
        const auto id = static_cast<text::TokenId>((state >> 33) % static_cast<std::uint64_t>(tokenizer.size()));
        // A vocabulary of control tokens alone is no model's, but must not hang here.
        if (!tokenizer.is_control(id) || state % 16 == 0) tokens.push_back(id);
    }
    return tokens;
}

// One prompt read by an empty session, then `decode` steps of one token each.
Result<Run> measure(engine::Session& session, const std::vector<text::TokenId>& prompt, int decode, std::stop_token stop) {
    session.clear();
    engine::GenerateRequest request;
    request.prompt = prompt;
    request.sampling.temperature = 0;
    request.ignore_end = true;
    request.max_tokens = decode + 1;  // the first token comes from the prompt's own logits
    HR_TRY(const auto result, session.generate(request, {}, stop));
    if (result.finish == engine::FinishReason::cancelled) return fail(ErrorKind::cancelled, "The measurement was cancelled");
    return Run{result.stats.prompt_tps(), result.stats.completion_seconds > 0 ? decode / result.stats.completion_seconds : 0};
}

Result<> bench(const Program& program, Options options) {
    if (options.model.context == 0) options.model.context = options.prompt + options.decode + 1;
    if (options.prompt + options.decode + 1 > options.model.context)
        return fail(ErrorKind::invalid_argument, "-p {} and -n {} do not fit into --ctx {}", options.prompt, options.decode,
                    options.model.context);
    Interrupt interrupt(program.terminal);
    const auto loading = std::chrono::steady_clock::now();
    HR_TRY(const auto model, load_model(program, options.model, interrupt));
    const double load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - loading).count();
    HR_TRY(const auto session, engine::Session::create(model));
    const auto prompt = some_tokens(model->tokenizer(), options.prompt);

    const auto stop = interrupt.begin();
    HR_CHECK(measure(*session, prompt, std::min(options.decode, 8), stop));  // warm-up: pages and caches
    std::vector<double> prompt_tps;
    std::vector<double> decode_tps;
    for (int i = 0; i < options.repeats; ++i) {
        HR_TRY(const Run run, measure(*session, prompt, options.decode, stop));
        prompt_tps.push_back(run.prompt_tps);
        decode_tps.push_back(run.decode_tps);
        if (program.verbose) program.notice(fmt::format("run {}: prompt {:.1f}, decode {:.1f} tok/s", i + 1, run.prompt_tps, run.decode_tps));
    }
    interrupt.end();

    const engine::ModelInfo& info = model->info();
    const double peak_mib = static_cast<double>(peak_resident_bytes()) / static_cast<double>(MiB);
    if (program.json) {
        const Json run{{"reserve_mib", nullptr},
                       {"prompt_tps", median(prompt_tps)},
                       {"decode_tps", median(decode_tps)},
                       {"vram_used_mib", 0},
                       {"prompt_tokens", options.prompt},
                       {"decode_tokens", options.decode},
                       {"prompt_tps_all", prompt_tps},
                       {"decode_tps_all", decode_tps}};
        program.print_json({{"model", info.name},
                            {"architecture", info.family},
                            {"quantization", info.quantization},
                            {"file_bytes", info.file_bytes},
                            {"device", "cpu"},
                            {"threads", model->threads()},
                            {"load_seconds", load_seconds},
                            {"peak_ram_mib", peak_mib},
                            {"runs", Json::array({run})}});
    } else {
        write_output(fmt::format("{} ({}, {}), {} thread{} of the CPU, medians of {}\n"
                                 "prompt  {:>5} tokens  {:>10.1f} tok/s\n"
                                 "decode  {:>5} tokens  {:>10.1f} tok/s\n"
                                 "loaded in {:.2f} s, {:.0f} MiB of RAM at most\n",
                                 info.name, info.family, info.quantization, model->threads(), model->threads() == 1 ? "" : "s",
                                 options.repeats, options.prompt, median(prompt_tps), options.decode, median(decode_tps), load_seconds,
                                 peak_mib));
    }
    return {};
}

}  // namespace

void add_bench(CLI::App& app, Program& program) {
    auto options = std::make_shared<Options>();
    CLI::App* command = add_command(app, program, "bench", "Measure the speed of reading a prompt and of answering",
                                    [&program, options] { return bench(program, *options); });
    const auto number = [&](const char* name, int& target, const char* text) {
        command->add_option(name, target, text)->type_name("N")->check(CLI::Range(1, 1'000'000).description(""))->capture_default_str();
    };
    number("-p,--prompt-tokens", options->prompt, "Length of the prompt in tokens");
    number("-n,--decode-tokens", options->decode, "Tokens of the answer");
    number("-r,--repeats", options->repeats, "Runs; the medians are shown");
    add_compute_options(*command, options->model);
}

}  // namespace headroom::cli
