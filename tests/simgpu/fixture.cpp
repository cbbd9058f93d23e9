#include "tests/simgpu/fixture.h"

#include <QtGlobal>

#include "core/base/paths.h"

namespace headroom::test {

using nlohmann::json;

namespace {
std::filesystem::path libraries() { return program_folder().parent_path() / "simgpu"; }
}  // namespace

std::filesystem::path SimGpu::library() {
#ifdef _WIN32
    return libraries() / "simgpu.dll";
#else
    return libraries() / "libsimgpu.so";
#endif
}

SimGpu::SimGpu() {
    const auto library = DynamicLibrary::open(SimGpu::library());
    if (!library) qFatal("%s", library.error().message.c_str());
    reset_ = library->function<SimReset>("sim_reset");
    counters_ = library->function<SimReadCounters>("sim_counters");
    trace_ = library->function<SimTrace>("sim_trace");
    rule_ = library->function<SimRule>("sim_rule");
    other_ = library->function<SimOther>("sim_other");
    register_ = library->function<SimRegister>("sim_register");
    reset(healthy());
}

void SimGpu::reset(const json& description) {
    json whole = description;
    whole["sysfs"] = to_utf8(path().sysfs);
    const std::string text = whole.dump();
    const auto file = folder() / "simgpu.json";
    if (!reset_(text.c_str()) || !write_file(file, text)) qFatal("the simulator does not take %s", text.c_str());
    qputenv("SIMGPU_CONFIG", QByteArray::fromStdString(to_utf8(file)));
}

json SimGpu::healthy() { return {{"cuda", json::array({json::object()})}, {"hip", json::array({json::object()})}}; }

json SimGpu::with_faults(json faults, json calls) {
    json description = healthy();
    if (!faults.is_null()) description["faults"] = std::move(faults);
    description["calls"] = std::move(calls);
    return description;
}

gpu::SearchPath SimGpu::path() const { return {.libraries = libraries(), .sysfs = folder() / "sys"}; }

std::filesystem::path SimGpu::folder_for_programs() const {
#ifdef _WIN32
    return path().libraries;
#else
    const auto programs = folder() / "programs";
    if (!std::filesystem::create_directory(programs)) return programs;
    for (const auto& library : std::filesystem::directory_iterator(path().libraries)) {
        std::filesystem::create_symlink(library.path(), programs / library.path().filename());
    }
    std::filesystem::create_directory_symlink(path().sysfs, programs / "sys");
    return programs;
#endif
}

gpu::SearchPath SimGpu::nothing() const { return {.libraries = folder() / "nothing", .sysfs = folder() / "nothing"}; }

std::filesystem::path SimGpu::folder() const { return from_utf8(folder_.path().toStdString()); }

SimCounters SimGpu::counters() const {
    SimCounters counters{};
    counters_(&counters);
    return counters;
}

std::vector<std::string> SimGpu::trace() const {
    std::vector<std::string> calls;
    for (std::size_t i = 0; const char* name = trace_(i); ++i) calls.emplace_back(name);
    return calls;
}

std::string leaks(const SimCounters& c) {
    std::string text;
    const auto add = [&](std::uint64_t count, const char* what) {
        if (count != 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
    };
    add(c.ranges, "ranges");
    add(c.segments, "segments");
    add(c.mappings, "mappings");
    add(c.allocations, "allocations");
    add(c.host_allocations, "host allocations");
    add(c.host_registrations, "host registrations");
    add(c.contexts, "contexts");
    add(c.streams, "streams");
    add(c.events, "events");
    add(c.modules, "modules");
    add(c.graphs, "graphs");
    add(c.double_maps, "double mappings");
    add(c.rdma_segments, "segments for RDMA");
    return text;
}

}  // namespace headroom::test
