#include "core/vmm/self_test_process.h"

#include <charconv>
#include <ctime>
#include <string_view>

#include <fmt/chrono.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "core/base/paths.h"
#include "core/base/process.h"
#include "core/base/system.h"
#include "core/vmm/self_test.h"
#include "core/vmm/verdict_text.h"

namespace headroom::vmm {
namespace {

using nlohmann::json;

// headroom-cli --gpu-self-test BACKEND INDEX SEGMENT_MIB ROUNDS CYCLES [LIBRARIES SYSFS]
constexpr std::string_view command_name = "--gpu-self-test";

void say(const json& line) { write_standard_output(line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"); }

std::optional<int> read_number(std::string_view text) {
    int value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    return code == std::errc() && end == text.data() + text.size() && value >= 0 ? std::optional(value) : std::nullopt;
}

Result<Verdict> self_test(gpu::Backend backend, int index, const SelfTestOptions& options, const gpu::SearchPath& path) {
    HR_TRY(auto driver, gpu::Driver::load(backend, path));
    if (static_cast<std::size_t>(index) >= driver->devices().size()) {
        return fail(ErrorKind::not_found, "there is no device {}:{}", gpu::to_string(backend), index);
    }
    const gpu::DeviceInfo device = driver->devices()[static_cast<std::size_t>(index)];
    const auto counter = gpu::MemoryCounter::open(device, path);
    SelfTestListener listener;
    listener.begin = [](std::string_view step) { say({{"begin", step}}); };
    listener.end = [](const Observation& observation) { say({{"observation", to_json(observation)}}); };
    return run_self_test(*driver, device, counter.get(), options, listener);
}

// What the child said, as far as it came.
struct Story {
    std::string step;  // the one begun last
    std::vector<Observation> observations;
    std::optional<Verdict> verdict;
    std::string error;
};

Story read_story(std::string_view output) {
    Story story;
    while (!output.empty()) {
        const auto end = output.find('\n');
        const json line = json::parse(output.substr(0, end), nullptr, false);
        output.remove_prefix(end == std::string_view::npos ? output.size() : end + 1);
        if (!line.is_object()) continue;  // a driver's own words
        if (const auto begin = line.find("begin"); begin != line.end() && begin->is_string()) story.step = *begin;
        if (const auto error = line.find("error"); error != line.end() && error->is_string()) story.error = *error;
        if (const auto seen = line.find("observation"); seen != line.end()) {
            if (auto observation = observation_from_json(*seen)) story.observations.push_back(std::move(*observation));
        }
        if (const auto result = line.find("result"); result != line.end()) {
            if (auto verdict = verdict_from_json(*result)) story.verdict = std::move(*verdict);
        }
    }
    return story;
}

// Tells the steps that the child begins, from its output as it comes in pieces.
class StepReader {
public:
    explicit StepReader(const std::function<void(std::string_view)>& on_step) : on_step_(on_step) {}
    void add(std::string_view output) {
        pending_ += output;
        const auto end = pending_.rfind('\n');
        if (end == std::string::npos) return;
        const auto step = read_story(std::string_view(pending_).substr(0, end + 1)).step;
        pending_.erase(0, end + 1);
        if (!step.empty()) on_step_(step);
    }

private:
    const std::function<void(std::string_view)>& on_step_;
    std::string pending_;
};

std::string utc_now() {
    const std::time_t now = std::time(nullptr);
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

}  // namespace

std::optional<int> run_hidden_command(const std::vector<std::string>& arguments) {
    if (arguments.empty() || arguments[0] != command_name) return std::nullopt;
    spdlog::set_level(spdlog::level::off);
    if (arguments.size() != 6 && arguments.size() != 8) return 2;
    const auto backend = gpu::backend_from(arguments[1]);
    const auto index = read_number(arguments[2]), segment_mib = read_number(arguments[3]), rounds = read_number(arguments[4]),
               cycles = read_number(arguments[5]);
    if (!backend || !index || !segment_mib || !rounds || !cycles) return 2;
    SelfTestOptions options;
    options.segment_bytes = static_cast<std::uint64_t>(*segment_mib) * MiB;
    options.rounds = *rounds;
    options.cycles = *cycles;
    gpu::SearchPath path;
    if (arguments.size() == 8) path = {.libraries = from_utf8(arguments[6]), .sysfs = from_utf8(arguments[7])};
    const auto verdict = self_test(*backend, *index, options, path);
    if (!verdict) {
        say({{"error", verdict.error().message}});
        return 1;
    }
    say({{"result", to_json(*verdict)}});
    return 0;
}

Verdict test_in_child(const gpu::DeviceInfo& device, const SelfTestProcess& process) {
    ChildCommand command{.program = process.program.empty() ? program_file() : process.program,
                         .arguments = {std::string(command_name), std::string(gpu::to_string(device.backend)), std::to_string(device.index),
                                       std::to_string(process.options.segment_bytes / MiB), std::to_string(process.options.rounds),
                                       std::to_string(process.options.cycles)},
                         .time_limit = process.time_limit,
                         .stop = process.stop};
    StepReader steps(process.on_step);
    if (process.on_step) command.on_output = [&](std::string_view output) { steps.add(output); };
    if (!process.path.libraries.empty()) {
        command.arguments.push_back(to_utf8(process.path.libraries));
        command.arguments.push_back(to_utf8(process.path.sysfs));
    }
    const auto child = run_child(command);
    Verdict verdict;
    std::string problem;
    if (!child) {
        problem = text::child_not_started(child.error().message);
        verdict.keep = false;
    } else {
        Story story = read_story(child->output);
        if (story.verdict && child->end == ChildResult::End::exited) {
            verdict = std::move(*story.verdict);
        } else {
            verdict.observations = std::move(story.observations);
            const std::string how = describe_end(*child, process.time_limit);
            problem = story.error.empty() ? text::child_ended(how, story.step) : story.error;
            if (!story.step.empty()) verdict.observations.push_back({story.step, Observation::Outcome::failed, problem, 0});
            verdict.keep = story.error.empty() && child->end != ChildResult::End::stopped;
        }
        verdict.seconds = child->seconds;
    }
    if (!problem.empty()) {
        verdict.kind = VerdictKind::off;
        verdict.reason = text::with_runtime(problem, device);
    }
    verdict.uuid = device.uuid;
    verdict.driver = device.driver;
    verdict.runtime = device.runtime;
    verdict.os = os_name();
    verdict.tested_at = utc_now();
    return verdict;
}

}  // namespace headroom::vmm
