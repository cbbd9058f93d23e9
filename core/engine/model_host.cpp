#include "core/engine/model_host.h"

#include <algorithm>
#include <new>
#include <utility>

#include "core/base/quote.h"

namespace headroom::engine {
namespace {

using namespace std::chrono_literals;

constexpr auto kGoneInterval = 50ms;  // how often a waiting request is asked whether anybody still wants it

}  // namespace

struct ModelInUse::Loaded {
    Loaded(std::string called, std::shared_ptr<Model> of, const SchedulerOptions& options)
        : name(std::move(called)), model(std::move(of)), scheduler(model, options) {}
    std::string name;
    std::shared_ptr<Model> model;
    Scheduler scheduler;
    std::chrono::system_clock::time_point since = std::chrono::system_clock::now();
};

// Somebody who waits: for a model, or (empty name) for the loaded one to be gone.
struct ModelHost::Ask {
    std::string name;
    std::filesystem::path path;
    std::optional<Result<std::shared_ptr<ModelInUse::Loaded>>> answer;
};

ModelInUse::ModelInUse(ModelInUse&& other) noexcept : host_(std::exchange(other.host_, nullptr)), loaded_(std::move(other.loaded_)) {}
ModelInUse::~ModelInUse() {
    if (host_ != nullptr) host_->release();
}
const std::string& ModelInUse::name() const noexcept { return loaded_->name; }
Model& ModelInUse::model() const noexcept { return *loaded_->model; }
Scheduler& ModelInUse::scheduler() const noexcept { return loaded_->scheduler; }
void ModelInUse::stay_for(std::optional<std::chrono::milliseconds> time) {
    const std::scoped_lock lock(host_->mutex_);
    host_->stay_ = time;
}

// The first model is not kept with the options: nobody would unload it then.
ModelHost::ModelHost(ModelHostOptions options) : ModelHost(std::exchange(options.first_model, nullptr), std::move(options)) {}

ModelHost::ModelHost(std::shared_ptr<Model> first, ModelHostOptions&& options) : options_(std::move(options)), stay_(options_.idle) {
    if (first) {
        loaded_ = std::make_shared<ModelInUse::Loaded>(options_.first_name, std::move(first), options_.scheduler);
        free_since_ = std::chrono::steady_clock::now();
        loads_ = 1;
    }
    thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

ModelHost::~ModelHost() = default;

Result<std::filesystem::path> ModelHost::find(std::string_view name) const {
    if ((name.empty() || name == options_.first_name) && !options_.first_path.empty()) return options_.first_path;
    return find_model_by_name(name.empty() ? options_.first_name : name, options_.model_folder);
}

std::vector<std::string> ModelHost::names() const {
    std::vector<std::string> names{options_.first_name};
    const auto add = [&](std::string name) {
        if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    };
    for (std::string& name : model_names(options_.model_folder)) add(std::move(name));
    if (find_model_by_name("builtin", {})) add("builtin");
    return names;
}

Result<ModelInUse> ModelHost::acquire(std::string_view wanted, FunctionRef<bool()> gone) {
    const std::string name(wanted.empty() ? std::string_view(options_.first_name) : wanted);
    {
        const std::scoped_lock lock(mutex_);
        if (loaded_ && loaded_->name == name && asks_.empty()) {
            ++users_;
            return ModelInUse(*this, loaded_);
        }
    }
    HR_TRY(std::filesystem::path path, find(name));
    HR_TRY(auto loaded, wait_for(name, std::move(path), gone));
    return ModelInUse(*this, std::move(loaded));
}

Result<> ModelHost::unload(std::string_view name, FunctionRef<bool()> gone) {
    {
        const std::scoped_lock lock(mutex_);
        if (!loaded_ || (!name.empty() && loaded_->name != name)) {
            return fail(ErrorKind::not_found, "{} is not loaded", name.empty() ? "A model" : "The model " + quote(name));
        }
    }
    HR_CHECK(wait_for({}, {}, gone));
    return {};
}

// Returns with one more user, except for the empty name.
Result<std::shared_ptr<ModelInUse::Loaded>> ModelHost::wait_for(std::string name, std::filesystem::path path, FunctionRef<bool()> gone) {
    const auto ask = std::make_shared<Ask>(std::move(name), std::move(path), std::nullopt);
    std::unique_lock lock(mutex_);
    asks_.push_back(ask);
    changed_.notify_all();
    while (!ask->answer) {
        changed_.wait_for(lock, kGoneInterval);
        if (ask->answer) break;
        lock.unlock();
        const bool left = gone();
        lock.lock();
        if (left && !ask->answer) {
            std::erase(asks_, ask);
            changed_.notify_all();
            return fail(ErrorKind::cancelled, "Nobody waits for the model any more");
        }
    }
    return std::move(*ask->answer);
}

void ModelHost::release() {
    {
        const std::scoped_lock lock(mutex_);
        --users_;
        released_ = true;
        free_since_ = std::chrono::steady_clock::now();
    }
    changed_.notify_all();
}

void ModelHost::work(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
        answer_asks();
        const bool wanted = !asks_.empty() && users_ == 0;
        const bool idle = loaded_ && users_ == 0 && asks_.empty() && stay_ && std::chrono::steady_clock::now() >= free_since_ + *stay_;
        if (wanted || idle) {
            change_model(lock, stop);
            continue;
        }
        const auto anything = [&] {
            return std::exchange(released_, false) || (!asks_.empty() && (users_ == 0 || (loaded_ && asks_.front()->name == loaded_->name)));
        };
        if (loaded_ && users_ == 0 && stay_) {
            changed_.wait_until(lock, stop, free_since_ + *stay_, anything);
        } else {
            changed_.wait(lock, stop, anything);
        }
    }
    for (const auto& ask : asks_) ask->answer = fail(ErrorKind::cancelled, "The server is stopping");
    asks_.clear();
    changed_.notify_all();
}

// Those at the head of the queue who want what is there.
void ModelHost::answer_asks() {
    while (!asks_.empty()) {
        Ask& ask = *asks_.front();
        if (ask.name.empty() ? loaded_ != nullptr : !loaded_ || ask.name != loaded_->name) break;
        if (!ask.name.empty()) ++users_;
        ask.answer = loaded_;
        asks_.pop_front();
    }
    changed_.notify_all();
}

// Nobody uses the model that is loaded: it goes, and what the head of the queue wants is loaded. The lock is given up meanwhile.
void ModelHost::change_model(std::unique_lock<std::mutex>& lock, const std::stop_token& stop) {
    std::shared_ptr<ModelInUse::Loaded> old = std::move(loaded_);
    stay_ = options_.idle;
    const std::shared_ptr<Ask> ask = asks_.empty() ? nullptr : asks_.front();
    const bool load = ask && !ask->name.empty();
    if (load) loading_ = ask->name;
    progress_ = 0;
    lock.unlock();
    old.reset();
    Result<std::shared_ptr<ModelInUse::Loaded>> made = nullptr;
    if (load) try {
        LoadOptions options = options_.load;
        options.path = ask->path;
        auto model = Model::load(
            options,
            [&](const LoadProgress& progress) {
                const std::scoped_lock progress_lock(mutex_);
                progress_ = progress.fraction;
            },
            stop);
        if (model) {
            made = std::make_shared<ModelInUse::Loaded>(ask->name, std::move(*model), options_.scheduler);
        } else {
            made = std::unexpected(model.error());
        }
    } catch (const std::exception& error) {  // memory, threads
        made = fail(ErrorKind::out_of_memory, "The model cannot be loaded: {}", error.what());
    }
    lock.lock();
    loading_.clear();
    if (made) {
        loaded_ = std::move(*made);
        free_since_ = std::chrono::steady_clock::now();
        if (loaded_) ++loads_;
        return;
    }
    for (auto& other : asks_) {
        if (other->name == ask->name) other->answer = std::unexpected(made.error());
    }
    std::erase_if(asks_, [](const auto& other) { return other->answer.has_value(); });
    changed_.notify_all();
}

ModelHostStatus ModelHost::status() const {
    const std::scoped_lock lock(mutex_);
    ModelHostStatus status{.name = loading_, .loading = !loading_.empty(), .progress = progress_, .users = users_,
                           .waiting = static_cast<int>(asks_.size()), .model = nullptr, .figures = {}, .loads = loads_};
    if (!loaded_) return status;
    status.name = loaded_->name;
    status.model = loaded_->model;
    status.figures = loaded_->scheduler.figures();
    status.loaded_at = loaded_->since;
    if (users_ == 0 && stay_) {
        const auto left = free_since_ + *stay_ - std::chrono::steady_clock::now();
        status.leaves_at = std::chrono::system_clock::now() + std::chrono::duration_cast<std::chrono::system_clock::duration>(left);
    }
    return status;
}

}  // namespace headroom::engine
