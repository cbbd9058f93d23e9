#pragma once

// Models by name for those who answer requests: loaded when somebody wants them, one at a time, and given up when nobody has for a while.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/engine/engine.h"
#include "core/engine/scheduler.h"

namespace headroom::engine {

struct ModelHostOptions {
    std::filesystem::path model_folder{};
    std::string first_name = "builtin";        // a model that is known by this name wherever it lies; what an empty name means
    std::filesystem::path first_path{};        // empty: found by its name
    std::shared_ptr<Model> first_model{};      // loaded already; null: loaded when it is wanted
    LoadOptions load{};                        // of every model; the path counts for nothing
    SchedulerOptions scheduler{};
    std::optional<std::chrono::milliseconds> idle{};  // a model that nobody has used for so long is unloaded; none: never
};

class ModelHost;

// A model in use: while it lives the model is not unloaded. Must not outlive the host.
class ModelInUse {
public:
    ModelInUse(ModelInUse&& other) noexcept;
    ModelInUse& operator=(ModelInUse&&) = delete;
    ~ModelInUse();

    [[nodiscard]] const std::string& name() const noexcept;
    [[nodiscard]] Model& model() const noexcept;
    [[nodiscard]] Scheduler& scheduler() const noexcept;
    // After this use the model stays for so long (none: for ever) in place of ModelHostOptions::idle.
    void stay_for(std::optional<std::chrono::milliseconds> time);

    struct Loaded;

private:
    friend class ModelHost;
    ModelInUse(ModelHost& host, std::shared_ptr<Loaded> loaded) : host_(&host), loaded_(std::move(loaded)) {}
    ModelHost* host_;
    std::shared_ptr<Loaded> loaded_;
};

// A copy.
struct ModelHostStatus {
    std::string name;                      // of the model that is loaded or being loaded; empty: none
    bool loading = false;
    double progress = 0;                   // of loading
    int users = 0;                         // requests that use it
    int waiting = 0;                       // requests that wait for a model
    std::shared_ptr<Model> model;          // null unless loaded. Holds it in memory: not to be kept
    SchedulerFigures figures;              // of the loaded one
    std::optional<std::chrono::system_clock::time_point> loaded_at{};
    std::optional<std::chrono::system_clock::time_point> leaves_at{};  // if nobody uses it again; none: it stays
    std::uint64_t loads = 0;               // since the start
};

// Any thread may call anything.
class ModelHost {
public:
    explicit ModelHost(ModelHostOptions options);
    ~ModelHost();
    ModelHost(const ModelHost&) = delete;
    ModelHost& operator=(const ModelHost&) = delete;

    // The model of this name ("" for the first one), loaded if it is not. Another one that is loaded goes first, when nobody uses it; who
    // comes later waits for its turn. gone: asked now and then while waiting. Errors: not_found, those of Model::load, cancelled (gone()).
    [[nodiscard]] Result<ModelInUse> acquire(std::string_view name, FunctionRef<bool()> gone);
    // Unloads the model of this name ("" for whatever is loaded) when nobody uses it any more. Errors: not_found: it is not loaded; cancelled.
    [[nodiscard]] Result<> unload(std::string_view name, FunctionRef<bool()> gone);

    // Names that acquire() knows, the first model's first. Reads the folder.
    [[nodiscard]] std::vector<std::string> names() const;
    // Where the model of this name lies. Errors: not_found.
    [[nodiscard]] Result<std::filesystem::path> find(std::string_view name) const;
    [[nodiscard]] const std::string& first_name() const noexcept { return options_.first_name; }
    // Neither wakes nor keeps a model.
    [[nodiscard]] ModelHostStatus status() const;

private:
    ModelHost(std::shared_ptr<Model> first, ModelHostOptions&& options);
    friend class ModelInUse;
    struct Ask;
    void work(const std::stop_token& stop);
    void answer_asks();
    void change_model(std::unique_lock<std::mutex>& lock, const std::stop_token& stop);
    void release();
    [[nodiscard]] Result<std::shared_ptr<ModelInUse::Loaded>> wait_for(std::string name, std::filesystem::path path, FunctionRef<bool()> gone);

    const ModelHostOptions options_;
    mutable std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<std::shared_ptr<Ask>> asks_;
    std::shared_ptr<ModelInUse::Loaded> loaded_;
    int users_ = 0;
    std::string loading_;                  // name; empty: nothing is being loaded
    double progress_ = 0;
    std::uint64_t loads_ = 0;
    bool released_ = false;                // somebody has stopped using the model since the thread looked
    std::optional<std::chrono::milliseconds> stay_;
    std::chrono::steady_clock::time_point free_since_{};
    std::jthread thread_;                  // last
};

}  // namespace headroom::engine
