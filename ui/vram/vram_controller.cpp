#include "ui/vram/vram_controller.h"

#include <algorithm>
#include <chrono>
#include <ranges>

namespace headroom::ui {

using namespace std::chrono_literals;

VramController::VramController(EngineController& engine, DevicesController& machine, QObject* parent)
    : QObject(parent), engine_(engine), machine_(machine) {
    clock_.start();
    refresh_.setInterval(1s);
    connect(&refresh_, &QTimer::timeout, this, &VramController::refresh);
    send_.setInterval(30ms);
    send_.setSingleShot(true);
    connect(&send_, &QTimer::timeout, this, &VramController::send);
    connect(&engine_, &EngineController::model_changed, this, &VramController::update_model);
    connect(&engine_, &EngineController::text_added, this,
            [this](qint64 answer, const QString&, const engine::GenerateStats& stats) { on_speed(answer, stats); });
    connect(&machine_, &DevicesController::found, this, [this] {
        update_machine();
        machine_.read();
    });
    connect(&machine_, &DevicesController::device_changed, this, &VramController::update_machine);
    connect(&machine_, &DevicesController::memory_changed, this, &VramController::update_machine);
    connect(&machine_, &DevicesController::wish_changed, this, &VramController::update_machine);
}

VramController::~VramController() = default;  // listening_ goes before anything it could still call

const engine::VramDevice* VramController::find(const std::string& device) const {
    const auto at = std::ranges::find(devices_, device, &engine::VramDevice::id);
    return at == devices_.end() ? nullptr : &*at;
}

const VramHistory* VramController::history(const std::string& device) const {
    const auto at = histories_.find(device);
    return at == histories_.end() ? nullptr : &at->second;
}

bool VramController::no_gpu() const { return machine_.state() == DevicesController::State::found && machine_.devices().empty(); }

void VramController::update_model() {
    using Model = ModelStatus::State;
    const ModelStatus& model = engine_.model();
    State state = State::none;
    if (model.state == Model::ready) state = model.vram && !model.vram->devices().empty() ? State::card : State::processor;
    if (model.state == Model::inspecting || model.state == Model::loading) state = State::loading;
    if (state == state_ && model.vram == vram_) return;
    state_ = state;
    set_model(state == State::card ? model.vram : nullptr);
}

void VramController::set_model(std::shared_ptr<engine::Vram> vram) {
    listening_.reset();
    vram_ = std::move(vram);
    ++model_;
    report_.reset();
    problem_.clear();
    unsent_.clear();
    newest_.reset();
    sampled_.reset();
    if (vram_) {
        // Called on the watcher's thread.
        listening_ = vram_->listen([this, model = model_](const engine::VramReport& report) {
            QMetaObject::invokeMethod(this, [this, model, report] {
                if (model == model_) on_report(report);
            }, Qt::QueuedConnection);
        });
        devices_ = vram_->devices();
        for (const engine::VramDevice& device : devices_) {
            if (device.last_report && (!report_ || report_->number < device.last_report->number)) report_ = device.last_report;
        }
        refresh_.start();
        sample();
    } else {
        refresh_.stop();
        devices_ = of_the_machine();
        machine_.read();  // once: where nothing is loaded, nobody wakes a card that sleeps
    }
    emit devices_changed();
    emit figures_changed();
    emit reported();
}

std::vector<engine::VramDevice> VramController::of_the_machine() const {
    const auto& all = machine_.devices();
    auto first = std::ranges::find(all, false, [](const DeviceStatus& status) { return status.device.integrated; });
    if (first == all.end()) first = all.begin();
    if (first == all.end()) return {};
    engine::VramDevice device;
    device.id = first->device.id;
    device.name = first->device.name;
    device.uuid = first->device.uuid;
    if (const auto& verdict = first->device.verdict) {
        using Kind = engine::DeviceVerdict::Kind;
        device.verdict = verdict->kind == Kind::on ? "on" : verdict->kind == Kind::fixed ? "fixed" : "off";
        device.reason = verdict->reason;
    }
    device.wish = first->wish;
    device.reserve_bytes = first->wish.reserve_bytes.value_or(0);
    if (first->memory) {
        device.total_bytes = first->memory->total;
        device.free_bytes = first->memory->free;
    }
    return {device};
}

void VramController::update_machine() {
    if (state_ == State::card) {
        emit figures_changed();  // wishes of devices that are not in use
        return;
    }
    const bool other = devices_.empty() != machine_.devices().empty();
    devices_ = of_the_machine();
    if (other || devices_.empty()) emit devices_changed();
    emit figures_changed();
}

void VramController::set_watched(bool watched) {
    watched_ = watched;
    refresh_.setInterval(watched ? 250ms : 1000ms);  // goes on if it is active
    if (!watched) return;
    if (state_ == State::card) {
        refresh();
    } else {
        machine_.read();
    }
}

void VramController::refresh() {
    if (!vram_) return;
    std::vector<engine::VramDevice> devices = vram_->devices();
    if (devices.empty()) return;  // it is being unloaded
    for (engine::VramDevice& device : devices) {
        // What is wished here and not sent yet is newer.
        if (const auto unsent = unsent_.find(device.id); unsent != unsent_.end()) {
            device.wish = unsent->second;
            device.reserve_bytes = device.wish.reserve_bytes.value_or(device.default_reserve_bytes);
        }
        // Nobody watches the counter of a card whose memory stays as it is; the Devices page may have read it.
        const DeviceStatus* status = machine_.status(device.id);
        if (!device.elastic && status && status->memory) device.free_bytes = status->memory->free;
    }
    devices_ = std::move(devices);
    sample();
    emit figures_changed();
}

void VramController::sample() {
    const std::int64_t second = clock_.elapsed() / 1000;
    const bool due = std::ranges::any_of(devices_, [&](const engine::VramDevice& device) {
        const VramHistory* history = this->history(device.id);
        return !history || history->samples().empty() || history->samples().back().second < second;
    });
    if (!due) return;
    const double speed = speed_of_last_second();
    for (const engine::VramDevice& device : devices_) histories_[device.id].add(second, device, speed);
    emit history_changed();
}

void VramController::on_speed(qint64 answer, const engine::GenerateStats& stats) {
    newest_ = {.answer = answer, .tokens = stats.completion_tokens, .seconds = stats.completion_seconds};
}

double VramController::speed_of_last_second() {
    const std::optional<Speed> before = std::exchange(sampled_, newest_);
    if (!newest_) return 0;
    const bool same = before && before->answer == newest_->answer && before->tokens <= newest_->tokens;
    // The first token came with the prompt and took no time of its own.
    const int tokens = newest_->tokens - (same ? before->tokens : 1);
    const double seconds = newest_->seconds - (same ? before->seconds : 0);
    return tokens > 0 && seconds > 0 ? tokens / seconds : 0;
}

void VramController::on_report(const engine::VramReport& report) {
    report_ = report;
    problem_.clear();
    refresh();
    emit reported();
}

engine::VramWish VramController::wish(const std::string& device) const {
    if (const auto* used = find(device); used && state_ == State::card) return used->wish;
    const DeviceStatus* status = machine_.status(device);
    return status ? status->wish : engine::VramWish();
}

void VramController::set_wish(const std::string& device, const engine::VramWish& wish) {
    const auto used = std::ranges::find(devices_, device, &engine::VramDevice::id);
    if (state_ != State::card || used == devices_.end()) {
        machine_.set_wish(device, wish, true);
        return;
    }
    used->wish = wish;
    used->reserve_bytes = wish.reserve_bytes.value_or(used->default_reserve_bytes);
    unsent_[device] = wish;
    if (!send_.isActive()) send();
    emit figures_changed();
}

void VramController::send() {
    const auto wishes = std::exchange(unsent_, {});
    if (!vram_ || wishes.empty()) return;
    for (const auto& [device, wish] : wishes) {
        machine_.set_wish(device, wish, false);
        const auto taken = vram_->set(device, wish, {});
        const QString problem = taken ? QString() : QString::fromStdString(taken.error().message);
        if (problem == problem_) continue;
        problem_ = problem;
        emit reported();
    }
    send_.start();
}

void VramController::set_reserve(const std::string& device, std::optional<std::uint64_t> bytes) {
    engine::VramWish wish = this->wish(device);
    wish.reserve_bytes = bytes;
    set_wish(device, wish);
}

void VramController::set_cap(const std::string& device, std::optional<std::uint64_t> bytes) {
    engine::VramWish wish = this->wish(device);
    wish.cap_bytes = bytes;
    set_wish(device, wish);
}

void VramController::apply(const std::string& device, VramPreset preset) {
    const engine::VramDevice* found = find(device);
    if (found) set_reserve(device, reserve_of(preset, found->total_bytes));
}

}  // namespace headroom::ui
