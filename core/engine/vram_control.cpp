#include "core/engine/vram_control.h"

#include <algorithm>
#include <future>

#include <spdlog/spdlog.h>

#include "core/base/bytes.h"
#include "core/base/quote.h"

namespace headroom::engine {
namespace {

constexpr std::uint64_t kSpeedStep = 256 * MiB;  // of the curve
constexpr double kSpeedShare = 0.3;              // of a new measurement in a point that is there already
constexpr int kMostTries = 4;                    // to reach a reserve while other programs take more

VramCause cause_of(VramPolicy::Decision::Kind kind) noexcept {
    return kind == VramPolicy::Decision::Kind::grow ? VramCause::regrow : VramCause::yield;
}

void add(VramReport& report, const residency::ResizeReport& resized) {
    report.waiting_ms += resized.waiting_ms;
    report.moving_ms += resized.moving_ms;
    report.releasing_ms += resized.releasing_ms;
    report.limited_by = resized.limited_by;
}

void fill(VramReport& report, const residency::Usage& usage) {
    report.own_after = usage.held_bytes();
    report.blocks_resident = usage.blocks_resident;
    report.blocks_total = usage.blocks_total;
    report.block_name = usage.blocks_are_experts ? "experts" : "layers";
    report.weights_bytes = usage.weights_bytes;
    report.kv_bytes = usage.kv_bytes;
    report.parked = usage.parked;
}

}  // namespace

std::uint64_t default_reserve(std::uint64_t total_bytes, bool display) noexcept {
    // A desktop's programs grow by some hundreds of MiB when a window is opened or a film is played; a card without a screen has to allow for
    // little more than other programs' contexts. Never more than an eighth of a small card.
    return std::min(display ? GiB : 512 * MiB, total_bytes / 8);
}

VramControl::VramControl(std::vector<VramTarget> targets, VramWishes wishes) : wishes_(std::move(wishes)) {
    for (VramTarget& target : targets) {
        auto watched = std::make_unique<Watched>();
        watched->wish = target.wish;
        watched->target = std::move(target);
        watched->asked = watched->target.usage().elastic;  // the first look at the card takes up what was kept
        watched->asked_at = Clock::now();
        if (const auto free = read(*watched)) watched->free_bytes = *free;
        watched_.push_back(std::move(watched));
    }
}

VramControl::~VramControl() { close(); }

void VramControl::start() {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void VramControl::close() {
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        for (const auto& watched : watched_) watched->superseded.request_stop();
    }
    if (thread_.joinable()) {
        thread_.request_stop();
        thread_.join();
    }
    std::vector<std::unique_ptr<Watched>> watched;
    {
        const std::lock_guard lock(mutex_);
        watched.swap(watched_);
    }
    for (const auto& one : watched) {
        const VramReport report{.device = one->target.id, .wish = one->wish, .met = false, .limited_by = "The model was unloaded"};
        if (one->asked && one->cause == VramCause::request) keep(one->target, one->wish);
        for (const Done& done : one->waiting) {
            if (done) done(report);
        }
    }
}

void VramControl::run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        step(Clock::now());
        std::unique_lock lock(mutex_);
        const auto asked = [&] { return std::ranges::any_of(watched_, [](const auto& watched) { return watched->asked; }); };
        if (std::ranges::none_of(watched_, [](const auto& watched) { return watched->target.usage().elastic; })) {
            wake_.wait(lock, stop, asked);  // nothing to hold
        } else {
            wake_.wait_until(lock, stop, read_at_ + kReadingEvery, asked);
        }
    }
}

void VramControl::step(Clock::time_point now) {
    const bool due = now - read_at_ >= kReadingEvery;
    if (due) read_at_ = now;
    for (const auto& watched : watched_) {  // changed by close() alone, which waits for this thread
        if (!watched->target.usage().elastic) continue;
        bool asked = false;
        {
            const std::lock_guard lock(mutex_);
            asked = watched->asked;
        }
        if (asked) {
            take_up(*watched);
        } else if (due) {
            watch(*watched, now);
        }
    }
}

std::optional<std::uint64_t> VramControl::read(Watched& watched) {
    const auto free = watched.target.read_free();
    if (!free) {
        if (watched.problem != free.error().message) spdlog::warn("{}: the free VRAM cannot be read: {}", watched.target.id, free.error().message);
        watched.problem = free.error().message;
        return std::nullopt;
    }
    watched.problem.clear();
    const std::lock_guard lock(mutex_);
    watched.free_bytes = *free;
    return *free;
}

VramPolicy::Limits VramControl::limits(const Watched& watched) const {
    return {.reserve_bytes = watched.wish.reserve_bytes.value_or(watched.target.default_reserve_bytes), .cap_bytes = watched.wish.cap_bytes};
}

void VramControl::keep(const VramTarget& target, const VramWish& wish) const {
    if (!target.keep) return;
    if (const auto kept = wishes_.keep(target.uuid, wish); !kept) {
        spdlog::warn("The reserve of {} could not be kept: {}", target.id, kept.error().message);
    }
}

void VramControl::take_up(Watched& watched) {
    VramPolicy::Limits wanted;
    Clock::time_point asked_at;
    VramCause cause;
    VramWish wish;
    std::vector<Done> waiting;
    {
        const std::lock_guard lock(mutex_);
        watched.asked = false;
        wish = watched.wish;
        cause = watched.cause;
        asked_at = watched.asked_at;
        wanted = limits(watched);
        waiting.swap(watched.waiting);
    }
    const residency::Usage usage = watched.target.usage();
    const std::optional<std::uint64_t> free = read(watched);
    const VramPolicy::Reading reading{.at = Clock::now(), .total = watched.target.total_bytes, .free = free.value_or(0), .own = usage.held_bytes(),
                                      .full = usage.full_bytes};
    VramPolicy::Decision decision = watched.policy.change(wanted, reading);
    if (!free) decision = {VramPolicy::Decision::Kind::hold, usage.held_bytes()};
    VramReport report = act(watched, decision, cause, asked_at, reading.free);
    if (!free) {
        report.met = false;
        report.limited_by = fmt::format("The free VRAM cannot be read: {}", watched.problem);
    }
    tell(watched, std::move(report), std::move(waiting));
    // After the fact, and not at every call of set(): somebody may be dragging a slider.
    if (cause == VramCause::request) keep(watched.target, wish);
}

void VramControl::watch(Watched& watched, Clock::time_point now) {
    const std::optional<std::uint64_t> free = read(watched);
    if (!free) return;
    const residency::Usage usage = watched.target.usage();
    const VramPolicy::Decision decision = watched.policy.watch(
        {.at = now, .total = watched.target.total_bytes, .free = *free, .own = usage.held_bytes(), .full = usage.full_bytes});
    if (decision.kind == VramPolicy::Decision::Kind::hold) return;
    // Where the last yield left nothing to give, there is nothing to do or to tell again.
    if (decision.kind == VramPolicy::Decision::Kind::yield && usage.held_bytes() == 0) return;
    VramReport report = act(watched, decision, cause_of(decision.kind), Clock::now(), *free);
    if (report.own_after == report.own_before && watched.last_report && report.limited_by == watched.last_report->limited_by) return;
    tell(watched, std::move(report), {});
}

VramReport VramControl::act(Watched& watched, VramPolicy::Decision decision, VramCause cause, Clock::time_point began, std::uint64_t free) {
    using Kind = VramPolicy::Decision::Kind;
    const residency::Usage before = watched.target.usage();
    const VramPolicy::Limits limits = watched.policy.limits();
    VramReport report{.device = watched.target.id, .cause = cause, .reserve_bytes = limits.reserve_bytes, .free_before = free, .free_after = free,
                      .own_before = before.held_bytes(), .limited_by = {}};
    {
        const std::lock_guard lock(mutex_);
        report.wish = watched.wish;
        watched.growing = decision.kind == Kind::grow;
    }
    std::uint64_t own = before.held_bytes();
    std::uint64_t goal = decision.budget;
    watched.acting = true;
    for (int tries = 0; decision.kind != Kind::hold && tries < kMostTries; ++tries) {
        if (goal > own) serve_others();
        const bool grows = goal > own;
        const std::uint64_t budget = grows ? std::min(goal, own + kPiece) : goal;
        const auto resized = watched.target.resize(budget, begin_resize(watched));
        if (!resized) {
            report.limited_by = resized.error().message;
            break;
        }
        add(report, *resized);
        const std::uint64_t held = watched.target.usage().held_bytes();
        const bool moved = held != own;
        own = held;
        const std::optional<std::uint64_t> left = read(watched);
        if (!left || (resized->superseded && is_outdated(watched))) break;
        report.free_after = *left;
        // What others did meanwhile counts.
        const std::uint64_t most = VramPolicy::allowed(limits, {.at = {}, .total = watched.target.total_bytes, .free = *left, .own = own, .full = before.full_bytes});
        if (own > most && own > 0) {
            if (!moved && !grows) break;  // it cannot give more
            goal = most;
            continue;
        }
        if (!grows || own + VramPolicy::kBand / 2 >= goal || (!moved && !resized->superseded)) break;
        goal = std::min(goal, most);
        --tries;  // a piece of growing is no try
    }
    watched.acting = false;
    if (decision.kind == Kind::hold) {
        if (const auto now = read(watched)) report.free_after = *now;
    }
    fill(report, watched.target.usage());
    report.total_ms = std::chrono::duration<double, std::milli>(Clock::now() - began).count();
    const bool capped = !limits.cap_bytes || report.own_after <= *limits.cap_bytes;
    report.met = capped && report.free_after >= std::min(limits.reserve_bytes, watched.target.total_bytes);
    if (report.parked || report.own_after == 0) {
        // Everything was given; a whole card is never free, so that a reserve of that size only means this.
        report.met = capped && (report.free_after >= limits.reserve_bytes || limits.reserve_bytes >= watched.target.total_bytes);
        if (!report.met) report.limited_by = "the rest is held by other programs";
    } else if (!report.met && report.limited_by.empty()) {
        report.limited_by = "other programs took memory meanwhile";
    }
    const std::lock_guard lock(mutex_);
    watched.growing = false;
    return report;
}

void VramControl::serve_others() {
    for (const auto& other : watched_) {
        bool asked = false;
        {
            const std::lock_guard lock(mutex_);
            asked = other->asked;
        }
        if (asked && !other->acting && other->target.usage().elastic) take_up(*other);
    }
}

std::stop_token VramControl::begin_resize(Watched& watched) {
    const std::lock_guard lock(mutex_);
    watched.superseded = std::stop_source();
    if (watched.asked || closed_) watched.superseded.request_stop();
    return watched.superseded.get_token();
}

bool VramControl::is_outdated(const Watched& watched) const {
    const std::lock_guard lock(mutex_);
    return watched.asked || closed_;
}

void VramControl::tell(Watched& watched, VramReport report, std::vector<Done> waiting) {
    {
        const std::lock_guard lock(mutex_);
        report.number = ++reports_;
        watched.last_report = report;
    }
    spdlog::info("{}: {}", report.device, describe(report));
    for (const Done& done : waiting) {
        if (done) done(report);
    }
    const std::lock_guard lock(listeners_->mutex);
    for (const auto& [key, listener] : listeners_->all) listener(report);
}

void VramControl::note_speed(double tokens_per_second) {
    const std::lock_guard lock(mutex_);
    for (const auto& watched : watched_) {
        const std::uint64_t at = watched->target.usage().held_bytes() / kSpeedStep * kSpeedStep;
        const auto [point, fresh] = watched->speeds.try_emplace(at, tokens_per_second);
        if (!fresh) point->second += kSpeedShare * (tokens_per_second - point->second);
    }
}

std::vector<VramDevice> VramControl::devices() const {
    const std::lock_guard lock(mutex_);
    std::vector<VramDevice> devices;
    for (const auto& watched : watched_) {
        const VramTarget& target = watched->target;
        const residency::Usage usage = target.usage();
        VramDevice device{.id = target.id, .name = target.name, .uuid = target.uuid, .verdict = target.verdict, .reason = target.reason,
                          .elastic = usage.elastic, .total_bytes = target.total_bytes, .free_bytes = watched->free_bytes,
                          .weights_bytes = usage.weights_bytes, .kv_bytes = usage.kv_bytes, .scratch_bytes = usage.scratch_bytes,
                          .blocks_resident = usage.blocks_resident, .blocks_total = usage.blocks_total,
                          .block_name = usage.blocks_are_experts ? "experts" : "layers", .hit_rate = usage.hit_rate, .parked = usage.parked,
                          .growing = watched->growing, .default_reserve_bytes = target.default_reserve_bytes,
                          .reserve_bytes = limits(*watched).reserve_bytes, .wish = watched->wish, .full_bytes = usage.full_bytes,
                          .last_report = watched->last_report, .speeds = {}};
        if (!usage.elastic && device.reason.empty()) device.reason = usage.reason;
        for (const auto& [bytes, speed] : watched->speeds) device.speeds.push_back({bytes, speed});
        devices.push_back(std::move(device));
    }
    return devices;
}

VramControl::Watched* VramControl::find(std::string_view device) {
    const auto at = std::ranges::find(watched_, device, [](const auto& watched) { return std::string_view(watched->target.id); });
    return at == watched_.end() ? nullptr : at->get();
}

Result<> VramControl::set(std::string_view device, const VramWish& wish, Done done) {
    std::optional<std::string> refusal;
    VramTarget target;
    {
        const std::lock_guard lock(mutex_);
        Watched* watched = find(device);
        if (watched == nullptr) {
            if (closed_) return fail(ErrorKind::not_found, "The model was unloaded: there is nothing whose VRAM could be changed");
            std::string known;
            for (const auto& one : watched_) known.append(known.empty() ? "" : ", ").append(one->target.id);
            return fail(ErrorKind::not_found, "The model does not use a device {}; it uses {}", quote(device), known);
        }
        watched->wish = wish;
        const residency::Usage usage = watched->target.usage();
        if (usage.elastic) {
            watched->asked = true;
            watched->cause = VramCause::request;
            watched->asked_at = Clock::now();
            watched->waiting.push_back(std::move(done));
            for (const auto& one : watched_) one->superseded.request_stop();
        } else {
            target = watched->target;
            refusal = target.reason.empty() ? usage.reason : target.reason;
        }
    }
    wake_.notify_all();
    if (refusal) {
        keep(target, wish);
        return fail(ErrorKind::unsupported, "The memory of {} cannot be changed while a model is loaded; the next load keeps to it: {}", device, *refusal);
    }
    return {};
}

Result<VramReport> VramControl::set_and_wait(std::string_view device, const VramWish& wish) {
    // Shared: the report may come after the promise's owner would be gone, were it on the stack and the call below fail half-way.
    const auto promise = std::make_shared<std::promise<VramReport>>();
    auto report = promise->get_future();
    HR_CHECK(set(device, wish, [promise](const VramReport& done) { promise->set_value(done); }));
    return report.get();
}

std::shared_ptr<void> VramControl::listen(Listener listener) {
    const std::lock_guard lock(listeners_->mutex);
    const std::uint64_t key = listeners_->next++;
    listeners_->all.emplace(key, std::move(listener));
    return std::shared_ptr<void>(nullptr, [listeners = listeners_, key](void*) {
        const std::lock_guard guard(listeners->mutex);
        listeners->all.erase(key);
    });
}

}  // namespace headroom::engine
