#pragma once

// Many requests to one model at once. One thread makes the model's steps: every step reads one token of each answer under way together,
// and between two steps a piece of a prompt, so that new requests join without holding the others up for long.

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "core/engine/engine.h"
#include "core/engine/generation.h"
#include "core/model/runner.h"

namespace headroom::engine {

struct SchedulerOptions {
    int max_running = 64;        // answers under way at once; the others wait
    int max_queued = 256;        // that wait; one more is refused
    int kept = 8;                // ended conversations whose keys and values stay for requests that begin alike
    std::uint64_t kept_bytes = 0;  // of them together; 0: a quarter of the RAM that is available now
};

// A copy of the figures.
struct SchedulerFigures {
    int running = 0;
    int queued = 0;
    int kept = 0;                         // conversations
    std::uint64_t kv_bytes = 0;           // of running and kept ones
    std::uint64_t requests = 0;           // ended, since the start
    std::uint64_t cancelled = 0;          // of them
    std::uint64_t failed = 0;             // of them
    std::uint64_t prompt_tokens = 0;      // read
    std::uint64_t reused_tokens = 0;      // found in other conversations
    std::uint64_t completion_tokens = 0;
    std::uint64_t steps = 0;              // in which answers went on
};

// Any thread may call anything. Results are those of Session::generate, whatever runs beside them.
class Scheduler {
public:
    Scheduler(std::shared_ptr<Model> model, const SchedulerOptions& options);
    // Ends what is under way: those requests are cancelled.
    ~Scheduler();
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    // Null: the queue is full. Errors: as Session::generate, before anything is read. Later errors are the generation's outcome.
    [[nodiscard]] Result<std::shared_ptr<Generation>> submit(GenerateRequest request);

    [[nodiscard]] SchedulerFigures figures() const;
    // Forgets the conversations that are kept.
    void drop_kept();

private:
    struct Job;
    struct Kept {
        std::unique_ptr<Session> session;
        std::uint64_t used = 0;  // counts up: the least is the oldest
    };
    using Jobs = std::vector<std::unique_ptr<Job>>;

    void work();
    void remove_cancelled();
    void admit();
    [[nodiscard]] Result<> start(Job& job);
    [[nodiscard]] Result<> start_with(Job& job);
    // Another conversation that begins with more of the job's text than its own session has read, by enough to be worth copying.
    [[nodiscard]] Session* find_beginning(const Job& job, std::size_t read) const;
    bool catch_up(Job& job);
    [[nodiscard]] bool waits_for_another(const Job& job) const;
    void read_prompts();
    [[nodiscard]] Result<> read_together(std::span<const model::Piece> pieces, const std::stop_token& stop);
    void step();
    void decode_alone(Job& job);
    // What the job's session has left to read; 1: it takes part in the next step.
    [[nodiscard]] std::size_t unread(const Job& job) const;
    [[nodiscard]] std::size_t prompt_budget() const;
    void deliver(Job& job);
    // Memory for the others: a kept conversation goes, else the job starts again later. False: there is nothing to give.
    [[nodiscard]] bool make_room(Job& job);
    void finish_ended();
    void end(std::unique_ptr<Job> job);
    void keep(std::unique_ptr<Session> session);
    void drop_oldest_kept();
    void publish();

    std::shared_ptr<Model> model_;
    SchedulerOptions options_;
    std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();

    mutable std::mutex mutex_;                       // of the four below
    std::vector<std::shared_ptr<Generation>> live_;  // that have not ended
    std::deque<std::unique_ptr<Job>> queue_;
    SchedulerFigures figures_;
    bool drop_kept_ = false;

    // The thread's own.
    Jobs running_;
    std::vector<Kept> kept_;
    std::uint64_t uses_ = 0;
    std::size_t next_reader_ = 0;                    // whose prompt is read first: they take turns
    bool crowded_ = false;                           // memory ran out: nobody joins before somebody has left
    double seconds_per_prompt_token_ = 0;            // measured

    std::jthread thread_;                            // last: the others outlive it
};

}  // namespace headroom::engine
