#include "tests/ui/support/scripted_devices.h"

#include <algorithm>

#include "core/base/bytes.h"

namespace headroom::test {
namespace {

constexpr int kSteps = 10;
const char* const kTitles[kSteps] = {"Functions of the driver", "Granularity", "Address space", "Patterns in unequal segments", "Release, measured",
                                     "Growing several ranges", "Replacing a segment in the middle", "Data kept over many cycles", "Open files", "Teardown"};

}  // namespace

engine::DeviceList DeviceScript::none() {
    return {.devices = {},
            .explanation = "No NVIDIA or AMD GPU was found, so models run on the processor.\n"
                           "  NVIDIA: none of libcuda.so.1 was found. If there is such a card, install the NVIDIA driver.\n"
                           "  AMD: none of libamdhip64.so.7, libamdhip64.so.6, libamdhip64.so.5, libamdhip64.so was found. If there is such a card, install ROCm's "
                           "HIP runtime (Linux) or the Radeon driver (Windows)."};
}

engine::Device DeviceScript::card(const std::string& id, const std::string& name) {
    const bool amd = id.starts_with("hip");
    return {.id = id,
            .name = name,
            .bus = amd ? "0000:03:00.0" : "0000:01:00.0",
            .uuid = amd ? "GPU-4ff8a1b2c3d4e5f6" : "GPU-9f9b4a3c-0011-2233-4455-6677889900aa",
            .architecture = amd ? "gfx1201" : "sm_89",
            .driver = amd ? "6.12.12" : "580.159.04",
            .runtime = amd ? "HIP 7.2.53210" : "CUDA 13.0",
            .total_bytes = (amd ? 32 : 12) * GiB,
            .integrated = false,
            .verdict = {}};
}

engine::DeviceVerdict DeviceScript::on() {
    engine::DeviceVerdict verdict{.kind = engine::DeviceVerdict::Kind::on,
                                  .meaning = "VRAM is given back while the model stays loaded.",
                                  .reason = {},
                                  .segment_bytes = 128 * MiB,
                                  .tested_at = "2026-11-29T20:15:00Z",
                                  .seconds = 0.71,
                                  .steps = {}};
    for (const char* title : kTitles) verdict.steps.push_back({engine::DeviceTestStep::Outcome::passed, title, "all is as it should be", 0.07});
    return verdict;
}

engine::DeviceVerdict DeviceScript::off(const std::string& reason) {
    engine::DeviceVerdict verdict = on();
    verdict.kind = engine::DeviceVerdict::Kind::off;
    verdict.meaning = "VRAM is allocated the plain way and given back only when the model is closed.";
    verdict.reason = reason;
    verdict.segment_bytes = 0;
    verdict.steps.resize(5);
    verdict.steps.back().outcome = engine::DeviceTestStep::Outcome::failed;
    verdict.steps.back().seen = reason;
    return verdict;
}

void DeviceScript::hold() {
    const std::scoped_lock lock(mutex_);
    allowed_ = 0;
}

void DeviceScript::release(int steps) {
    const std::scoped_lock lock(mutex_);
    allowed_ = std::max(allowed_, 0) + steps;
    changed_.notify_all();
}

void DeviceScript::go() {
    const std::scoped_lock lock(mutex_);
    allowed_ = -1;
    changed_.notify_all();
}

void DeviceScript::set_memory(const std::string& id, const engine::DeviceMemory& reading) {
    const std::scoped_lock lock(mutex_);
    memory[id] = reading;
}

int DeviceScript::finds() const {
    const std::scoped_lock lock(mutex_);
    return finds_;
}

int DeviceScript::reads() const {
    const std::scoped_lock lock(mutex_);
    return reads_;
}

engine::VramWish DeviceScript::kept(const std::string& uuid) const {
    const std::scoped_lock lock(mutex_);
    const auto wish = wishes.find(uuid);
    return wish == wishes.end() ? engine::VramWish() : wish->second;
}

int DeviceScript::stopped() const {
    const std::scoped_lock lock(mutex_);
    return stopped_;
}

engine::DeviceList ScriptedDevices::find() {
    const std::scoped_lock lock(script_->mutex_);
    ++script_->finds_;
    return script_->list;
}

std::optional<engine::DeviceVerdict> ScriptedDevices::test(std::string_view id, const std::function<void(const engine::DeviceTestProgress&)>& on_progress,
                                                           std::stop_token stop) {
    for (int step = 1; step <= kSteps; ++step) {
        {
            std::unique_lock lock(script_->mutex_);
            script_->changed_.wait(lock, stop, [&] { return script_->allowed_ < 0 || step <= script_->allowed_; });
            if (stop.stop_requested()) {
                ++script_->stopped_;
                return std::nullopt;
            }
        }
        on_progress({kTitles[step - 1], step, kSteps});
    }
    const std::scoped_lock lock(script_->mutex_);
    const auto verdict = script_->verdicts.find(std::string(id));
    return verdict == script_->verdicts.end() ? DeviceScript::on() : verdict->second;
}

std::optional<engine::DeviceMemory> ScriptedDevices::read(std::string_view id) {
    const std::scoped_lock lock(script_->mutex_);
    ++script_->reads_;
    const auto memory = script_->memory.find(std::string(id));
    return memory == script_->memory.end() ? std::nullopt : std::optional(memory->second);
}

Result<> ScriptedDevices::keep(std::string_view uuid, const engine::VramWish& wish) {
    const std::scoped_lock lock(script_->mutex_);
    script_->wishes[std::string(uuid)] = wish;
    return {};
}

}  // namespace headroom::test
