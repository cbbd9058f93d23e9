#include "cli/options.h"

#include <cstdio>

#include "core/base/log.h"
#include "core/base/paths.h"
#include "core/base/bytes.h"
#include "core/base/quote.h"

namespace headroom::cli {
namespace {

// One line on standard error, written over and over.
class ProgressLine {
public:
    explicit ProgressLine(bool shown) : shown_(shown) {}
    ~ProgressLine() { clear(); }
    void show(std::string_view text) {
        if (!shown_) return;
        write(fmt::format("\r{}\x1b[K", text));
        dirty_ = true;
    }
    void clear() {
        if (dirty_) write("\r\x1b[K");
        dirty_ = false;
    }

private:
    static void write(std::string_view text) {
        std::fwrite(text.data(), 1, text.size(), stderr);
        std::fflush(stderr);
    }
    bool shown_;
    bool dirty_ = false;
};

}  // namespace

CLI::Validator positive() { return CLI::PositiveNumber.description(""); }
CLI::Validator not_negative() { return CLI::NonNegativeNumber.description(""); }

void add_model_option(CLI::App& command, ModelOptions& options) {
    command.add_option("-m,--model", options.model, "A GGUF file, a name from the model folder, or builtin (the default)")
        ->type_name("MODEL");
}

void add_kv_option(CLI::App& command, ModelOptions& options) {
    command
        .add_option_function<std::string>(
            "--kv-type", [&options](const std::string& name) { options.kv_type = cpu::kv_type_from(name).value_or(options.kv_type); },
            "How keys and values are kept: f16 (the default) or q8_0, which takes half the memory")
        ->type_name("TYPE")
        ->check(CLI::IsMember({"f16", "q8_0"}).description(""));
}

void add_compute_options(CLI::App& command, ModelOptions& options) {
    add_model_option(command, options);
    command.add_option("--ctx", options.context, "Length of the context in tokens (default: the model's, at most 4096)")
        ->type_name("N")
        ->check(positive());
    add_kv_option(command, options);
    command.add_option("--threads", options.threads, "Threads that compute (default: one for each core)")
        ->type_name("N")
        ->check(positive());
    command.add_option("--device", options.device, "Where to compute: cpu, cuda:0, hip:0, … or auto (the default)")->type_name("DEVICE");
    command.add_option("--reserve-mib", options.reserve_mib, "VRAM to leave to other programs, in MiB; without a GPU it changes nothing")
        ->type_name("N")
        ->delimiter(',')
        ->allow_extra_args(false);
}

void add_answer_options(CLI::App& command, AnswerOptions& options) {
    auto& sampling = options.sampling;
    const auto number = [&](const char* name, auto& target, const char* text) {
        command.add_option(name, target, text)->type_name("")->capture_default_str();
    };
    command.add_option("-n,--max-tokens", options.max_tokens, "End the answer after this many tokens (default: the context's end)")
        ->type_name("N");
    number("--temp", sampling.temperature, "Temperature; 0 always takes the most likely token");
    number("--top-k", sampling.top_k, "Draw from the K most likely tokens; 0: from all");
    number("--top-p", sampling.top_p, "Draw from the most likely tokens that together have this probability");
    number("--min-p", sampling.min_p, "Leave out tokens less likely than this share of the most likely one");
    number("--repeat-penalty", sampling.repeat_penalty, "Make tokens less likely that were there already; 1: off");
    number("--presence-penalty", sampling.presence_penalty, "Subtracted from tokens that were there already");
    number("--frequency-penalty", sampling.frequency_penalty, "The same for each time they were there");
    command.add_option("--seed", sampling.seed, "Same seed, same words (default: drawn at random)")->type_name("N");
    command.add_option("--stop", options.stops, "End the answer before this text; may be given several times")
        ->type_name("TEXT")
        ->allow_extra_args(false);
}

Result<gguf::File> open_model_file(const std::string& name) {
    HR_TRY(const auto path, engine::find_model(name, default_model_folder()));
    return gguf::File::open(path);
}

std::optional<std::uint64_t> reserve_bytes(const ModelOptions& options) {
    if (options.reserve_mib.empty()) return std::nullopt;
    return checked_mul(options.reserve_mib.front(), MiB).value_or(UINT64_MAX);
}

std::string where_it_runs(const engine::Model& model) {
    const engine::ModelInfo& info = model.info();
    if (info.devices.empty()) return fmt::format("{} thread{} of the CPU", model.threads(), model.threads() == 1 ? "" : "s");
    std::string text;
    int layers = 0;
    std::int64_t experts = 0;
    for (const engine::DeviceUse& use : info.devices) {
        text.append(text.empty() ? "" : " and ").append(fmt::format("{} ({})", use.name, use.id));
        layers += use.layers;
        experts += use.experts;
    }
    if (layers < info.layers) text += fmt::format(", {} of {} layers there", layers, info.layers);
    if (experts < info.experts_total) text += fmt::format(", {} of {} experts there", experts, info.experts_total);
    return text;
}

Result<engine::LoadOptions> load_options(const ModelOptions& options) {
    if (options.reserve_mib.size() > 1) {
        return fail(ErrorKind::invalid_argument, "--reserve-mib takes one number here, {} were given", options.reserve_mib.size());
    }
    return engine::LoadOptions{.context = options.context, .threads = options.threads, .kv_type = options.kv_type, .device = options.device,
                               .reserve_bytes = reserve_bytes(options), .data_folder = user_data_folder()};
}

Result<std::shared_ptr<engine::Model>> load_model(const Program& program, const ModelOptions& options, Interrupt& interrupt) {
    HR_TRY(engine::LoadOptions load, load_options(options));
    HR_TRY(load.path, engine::find_model(options.model, default_model_folder()));
    ProgressLine line(program.terminal.error);
    const std::string name = printable(to_utf8(load.path.filename()));
    auto model = engine::Model::load(
        load,
        [&](const engine::LoadProgress& progress) { line.show(fmt::format("Loading {}  {:3.0f} %", name, 100 * progress.fraction)); },
        interrupt.begin());
    interrupt.end();
    line.clear();
    if (!model) return model;
    for (const std::string& warning : (*model)->info().warnings) program.notice("warning: " + warning);
    return model;
}

Json answer_json(const engine::GenerateResult& result) {
    return {{"text", result.text},
            {"finish_reason", engine::to_string(result.finish)},
            {"prompt_tokens", result.stats.prompt_tokens},
            {"completion_tokens", result.stats.completion_tokens},
            {"prompt_tps", result.stats.prompt_tps()},
            {"completion_tps", result.stats.completion_tps()}};
}

std::string answer_figures(const engine::GenerateResult& result) {
    const auto& stats = result.stats;
    std::string text = fmt::format("{} token{}, {:.1f} tok/s", stats.completion_tokens, stats.completion_tokens == 1 ? "" : "s",
                                   stats.completion_tps());
    if (result.finish == engine::FinishReason::length) text += "; cut at the limit";
    if (result.finish == engine::FinishReason::cancelled) text += "; stopped";
    return text;
}

}  // namespace headroom::cli
