#include "cli/commands.h"
#include "core/base/bytes.h"
#include "core/vmm/device_list.h"
#include "core/vmm/verdict_text.h"

namespace headroom::cli {
namespace {

// A reading of the card's memory, or nothing where nobody counts it.
std::optional<gpu::MemoryReading> read_memory(const vmm::ListedDevice& device) {
    if (!device.counter) return std::nullopt;
    const auto reading = device.counter->read();
    return reading ? std::optional(*reading) : std::nullopt;
}

Json device_json(const vmm::ListedDevice& device) {
    const gpu::DeviceInfo& info = device.info;
    const vmm::Verdict& verdict = *device.verdict;
    const auto memory = read_memory(device);
    Json observations = Json::array();
    for (const auto& o : verdict.observations) {
        observations.push_back({{"step", o.step}, {"outcome", vmm::to_string(o.outcome)}, {"seen", o.seen}, {"seconds", o.seconds}});
    }
    return {{"id", info.id},
            {"backend", gpu::to_string(info.backend)},
            {"name", info.name},
            {"uuid", info.uuid},
            {"bus", info.bus},
            {"architecture", info.architecture},
            {"integrated", info.integrated},
            {"driver", info.driver},
            {"runtime", info.runtime},
            {"total_mib", (memory ? memory->total : info.total_bytes) / MiB},
            {"free_mib", memory ? Json(memory->free / MiB) : Json()},
            {"verdict", vmm::to_string(verdict.kind)},
            {"reason", verdict.reason},
            {"granularity_min", verdict.granularity_min},
            {"granularity_recommended", verdict.granularity_recommended},
            {"segment_mib", verdict.segment_bytes / MiB},
            {"tested_at", verdict.tested_at},
            {"tested_now", !device.from_store},
            {"observations", std::move(observations)}};
}

// A bar of 32 characters: used is solid, free is light.
std::string memory_bar(const gpu::MemoryReading& memory) {
    constexpr std::uint64_t width = 32;
    const auto used = memory.total > 0 ? (memory.used * width + memory.total / 2) / memory.total : 0;
    std::string bar;
    for (std::uint64_t i = 0; i < width; ++i) bar += i < used ? "█" : "░";
    return bar;
}

std::string device_text(const vmm::ListedDevice& device, bool colours) {
    const gpu::DeviceInfo& info = device.info;
    const vmm::Verdict& verdict = *device.verdict;
    const char* colour = verdict.kind == vmm::VerdictKind::on ? "\x1b[32m" : verdict.kind == vmm::VerdictKind::fixed ? "\x1b[33m" : "\x1b[31m";
    const char* mark = verdict.kind == vmm::VerdictKind::on ? "●" : verdict.kind == vmm::VerdictKind::fixed ? "◐" : "○";
    const std::string badge = fmt::format("{} {}", mark, vmm::to_string(verdict.kind));
    std::string out = fmt::format("{:<8}{}{}    {}{}{}\n", info.id, info.name, info.integrated ? " (integrated)" : "", colours ? colour : "", badge,
                                  colours ? "\x1b[0m" : "");
    const auto line = [&](std::string_view name, const std::string& text) { out += fmt::format("        {:<9}{}\n", name, text); };
    if (const auto memory = read_memory(device)) {
        line("VRAM", fmt::format("{}  {} free of {}", memory_bar(*memory), format_bytes(memory->free), format_bytes(memory->total)));
    } else {
        line("VRAM", format_bytes(info.total_bytes));
    }
    line("Driver", info.driver.empty() ? info.runtime : fmt::format("{}, {}", info.runtime, info.driver));
    line("Card", fmt::format("{}{}, {}", info.architecture.empty() ? "" : info.architecture + ", ", info.bus, info.uuid));
    std::string meaning(vmm::text::meaning(vmm::to_string(verdict.kind)));
    if (verdict.segment_bytes > 0) meaning += fmt::format(" Segments of {} MiB.", verdict.segment_bytes / MiB);
    line("Memory", meaning);
    if (!verdict.reason.empty()) line("Reason", verdict.reason);
    line("Tested", fmt::format("{}{}", verdict.tested_at, device.from_store ? " (devices --retest tests again)" : fmt::format(", in {:.1f} s", verdict.seconds)));
    return out;
}

}  // namespace

void add_devices(CLI::App& app, Program& program) {
    auto retest = std::make_shared<bool>(false);
    CLI::App* command = add_command(app, program, "devices", "List the GPUs and whether their memory can be given back", [&program, retest]() -> Result<> {
        vmm::DeviceListOptions options;
        options.test.path = gpu::SearchPath::from_environment();
        options.retest = *retest;
        options.on_test = [&program](const gpu::DeviceInfo& device) {
            if (program.terminal.error) program.notice(fmt::format("Testing {} ({}), once …", device.id, device.name));
        };
        const vmm::DeviceList list = vmm::list_devices(options);
        const std::string none = list.devices.empty() ? vmm::text::no_gpu(list.cuda_problem, list.hip_problem) : std::string();
        if (program.json) {
            Json devices = Json::array();
            for (const auto& device : list.devices) devices.push_back(device_json(device));
            Json result{{"devices", std::move(devices)}};
            if (!none.empty()) result["explanation"] = none;
            program.print_json(result);
            return {};
        }
        if (!none.empty()) write_output(none + "\n");
        for (std::size_t i = 0; i < list.devices.size(); ++i) write_output((i > 0 ? "\n" : "") + device_text(list.devices[i], program.terminal.output));
        return {};
    });
    command->add_flag("--retest", *retest, "Test the devices again instead of using the kept verdicts");
}

}  // namespace headroom::cli
