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
    int sessions = 1;
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

// Ordinary tokens in a fixed mixture, another for each number: real prompts do not repeat one token.
std::vector<text::TokenId> some_tokens(const text::Tokenizer& tokenizer, int count, std::uint64_t number = 1) {
    std::vector<text::TokenId> tokens;
    std::uint64_t state = number * number;
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

// Decode steps of several sessions together: tokens per second of all. Each session reads a text of its own to its end, whatever the model would
// say: like conversations about different things, which do not choose the same experts. The choices are made all the same.
Result<double> measure_together(const std::shared_ptr<engine::Model>& model, const Options& options, std::stop_token stop) {
    std::vector<std::unique_ptr<engine::Session>> sessions;
    std::vector<std::vector<text::TokenId>> texts;
    std::vector<engine::Session::Step> steps;
    const auto prompt_size = static_cast<std::size_t>(options.prompt);
    for (int i = 0; i < options.sessions; ++i) {
        HR_TRY(auto session, engine::Session::create(model));
        texts.push_back(some_tokens(model->tokenizer(), options.prompt + options.decode + 1, static_cast<std::uint64_t>(i) + 1));
        engine::GenerateRequest request;
        request.prompt.assign(texts.back().begin(), texts.back().begin() + options.prompt);
        request.sampling.temperature = 0;
        request.ignore_end = true;
        request.max_tokens = 1;
        HR_TRY(const auto result, session->generate(request, {}, stop));
        sessions.push_back(std::move(session));
        steps.push_back({sessions.back().get(), 0});
    }
    const auto step = [&](std::size_t number) {
        for (std::size_t i = 0; i < steps.size(); ++i) steps[i].token = texts[i][prompt_size + number];
        return engine::Session::choose_together(steps, [](std::size_t, text::TokenId) {}, stop);
    };
    HR_CHECK(step(0));  // warm-up
    const auto start = std::chrono::steady_clock::now();
    for (int i = 1; i <= options.decode; ++i) HR_CHECK(step(static_cast<std::size_t>(i)));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return options.sessions * options.decode / seconds;
}

// What one loaded model showed.
struct Figures {
    std::optional<std::uint64_t> reserve_mib;
    std::vector<double> prompt_tps;
    std::vector<double> decode_tps;
    double together_tps = 0;  // 0: not measured
    double load_seconds = 0;
    engine::ModelInfo info;
    std::vector<engine::VramDevice> devices;  // after the runs; empty: the processor alone
    std::vector<engine::VramReport> reports;  // of the change before the runs, where the model was loaded already
    std::string where;
    int threads = 0;
};

Result<> measure_speed(const Program& program, const Options& options, const std::shared_ptr<engine::Model>& model, Figures& figures,
                       std::stop_token stop) {
    HR_TRY(const auto session, engine::Session::create(model));
    const auto prompt = some_tokens(model->tokenizer(), options.prompt);
    HR_CHECK(measure(*session, prompt, std::min(options.decode, 8), stop));  // warm-up: pages and caches
    for (int i = 0; i < options.repeats; ++i) {
        HR_TRY(const Run run, measure(*session, prompt, options.decode, stop));
        figures.prompt_tps.push_back(run.prompt_tps);
        figures.decode_tps.push_back(run.decode_tps);
        if (program.verbose) program.notice(fmt::format("run {}: prompt {:.1f}, decode {:.1f} tok/s", i + 1, run.prompt_tps, run.decode_tps));
    }
    session->clear();
    if (options.sessions > 1) {
        HR_TRY(figures.together_tps, measure_together(model, options, stop));
    }
    if (model->vram()) figures.devices = model->vram()->devices();
    return {};
}

bool is_elastic(const engine::Model& model) {
    return model.vram() && std::ranges::all_of(model.vram()->devices(), &engine::VramDevice::elastic);
}

// One run for each reserve: on a loaded model where its devices are elastic, else on one that is loaded anew for each.
Result<std::vector<Figures>> measure_all(const Program& program, const Options& options) {
    std::vector<std::optional<std::uint64_t>> reserves(options.model.reserve_mib.begin(), options.model.reserve_mib.end());
    if (reserves.empty()) reserves.emplace_back();
    std::vector<Figures> all;
    std::shared_ptr<engine::Model> model;
    double load_seconds = 0;
    Interrupt interrupt(program.terminal);
    for (const auto& reserve : reserves) {
        Figures figures;
        figures.reserve_mib = reserve;
        if (model && is_elastic(*model)) {
            for (const engine::VramDevice& device : model->vram()->devices()) {
                HR_TRY(const auto report, model->vram()->set_and_wait(device.id, {.reserve_bytes = *reserve * MiB, .cap_bytes = {}}));
                figures.reports.push_back(report);
            }
        } else {
            model.reset();
            ModelOptions model_options = options.model;
            model_options.reserve_mib.clear();
            if (reserve) model_options.reserve_mib.push_back(*reserve);
            const auto loading = std::chrono::steady_clock::now();
            HR_TRY(model, load_model(program, model_options, interrupt));
            load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - loading).count();
        }
        figures.load_seconds = load_seconds;
        figures.info = model->info();
        figures.where = where_it_runs(*model);
        figures.threads = model->threads();
        HR_CHECK(measure_speed(program, options, model, figures, interrupt.begin()));
        interrupt.end();
        all.push_back(std::move(figures));
    }
    return all;
}

// What the model held on its devices.
struct Held {
    std::uint64_t bytes = 0;
    std::int64_t experts = 0;
    int layers = 0;
    double hit_rate = 1;
};
Held held(const Figures& figures) {
    Held held;
    for (const engine::DeviceUse& use : figures.info.devices) {
        held.experts += use.experts;
        held.layers += use.layers;
        held.bytes += use.bytes;
    }
    if (figures.devices.empty()) return held;
    held.bytes = 0;
    double rates = 0;
    std::int64_t blocks = 0;
    for (const engine::VramDevice& device : figures.devices) {
        held.bytes += device.own_bytes();
        rates += device.hit_rate;
        blocks += device.blocks_resident;
    }
    if (figures.info.experts_total > 0) {
        held.experts = blocks;
    } else {
        held.layers = static_cast<int>(blocks);
    }
    held.hit_rate = rates / static_cast<double>(figures.devices.size());
    return held;
}

Json run_json(const Options& options, const Figures& figures) {
    const Held on_devices = held(figures);
    Json run{{"reserve_mib", figures.reserve_mib ? Json(*figures.reserve_mib) : Json(nullptr)},
             {"prompt_tps", median(figures.prompt_tps)},
             {"decode_tps", median(figures.decode_tps)},
             {"vram_used_mib", on_devices.bytes / MiB},
             {"hit_rate", on_devices.hit_rate},
             {"device_layers", on_devices.layers},
             {"device_experts", on_devices.experts},
             {"experts", figures.info.experts_total},
             {"load_seconds", figures.load_seconds},
             {"prompt_tokens", options.prompt},
             {"decode_tokens", options.decode},
             {"prompt_tps_all", figures.prompt_tps},
             {"decode_tps_all", figures.decode_tps}};
    if (!figures.devices.empty()) run["vram_free_mib"] = figures.devices.front().free_bytes / MiB;
    if (!figures.reports.empty()) {
        const engine::VramReport& report = figures.reports.front();
        run["change"] = {{"ms", report.total_ms}, {"waiting_ms", report.waiting_ms}, {"moving_ms", report.moving_ms},
                         {"releasing_ms", report.releasing_ms}, {"met", report.met}, {"limited_by", report.limited_by}};
    }
    if (options.sessions > 1) {
        run["sessions"] = options.sessions;
        run["together_tps"] = figures.together_tps;
    }
    return run;
}

Result<> bench(const Program& program, Options options) {
    if (options.model.context == 0) options.model.context = options.prompt + options.decode + 2;
    if (options.prompt + options.decode + 1 > options.model.context)
        return fail(ErrorKind::invalid_argument, "-p {} and -n {} do not fit into --ctx {}", options.prompt, options.decode,
                    options.model.context);
    HR_TRY(const std::vector<Figures> all, measure_all(program, options));
    const engine::ModelInfo& info = all.front().info;
    const double peak_mib = static_cast<double>(peak_resident_bytes()) / static_cast<double>(MiB);
    if (program.json) {
        Json runs = Json::array();
        for (const Figures& figures : all) runs.push_back(run_json(options, figures));
        program.print_json({{"model", info.name},
                            {"architecture", info.family},
                            {"quantization", info.quantization},
                            {"file_bytes", info.file_bytes},
                            {"kv_type", cpu::to_string(info.kv_type)},
                            {"device", info.devices.empty() ? "cpu" : info.devices.front().id},
                            {"threads", all.front().threads},
                            {"load_seconds", all.front().load_seconds},
                            {"peak_ram_mib", peak_mib},
                            {"runs", std::move(runs)}});
        return {};
    }
    write_output(fmt::format("{} ({}, {}, keys and values {}), medians of {}\n", info.name, info.family, info.quantization, cpu::to_string(info.kv_type),
                             options.repeats));
    for (const Figures& figures : all) {
        std::string text = fmt::format("{}\n", figures.where);
        if (figures.reserve_mib) text += fmt::format("reserve {:>5} MiB\n", *figures.reserve_mib);
        for (const engine::VramReport& report : figures.reports) text += fmt::format("{}: {}\n", report.device, engine::describe(report));
        text += fmt::format("prompt  {:>5} tokens  {:>10.1f} tok/s\ndecode  {:>5} tokens  {:>10.1f} tok/s\n", options.prompt,
                            median(figures.prompt_tps), options.decode, median(figures.decode_tps));
        if (options.sessions > 1) text += fmt::format("decode  {:>3} sessions  {:>10.1f} tok/s together\n", options.sessions, figures.together_tps);
        text += fmt::format("loaded in {:.2f} s", figures.load_seconds);
        if (!figures.info.devices.empty()) {
            const Held on_devices = held(figures);
            text += fmt::format(", {} MiB of VRAM, {:.0f} % of the blocks that were used were there", on_devices.bytes / MiB, on_devices.hit_rate * 100);
        }
        write_output(text + fmt::format(", {:.0f} MiB of RAM at most\n", peak_mib));
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
    number("--sessions", options->sessions, "Also measure the decode steps of so many conversations together");
    add_compute_options(*command, options->model);
}

}  // namespace headroom::cli
