#include "core/engine/scheduler.h"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "core/base/system.h"
#include "core/engine/answer_builder.h"
#include "core/engine/session_state.h"

namespace headroom::engine {
namespace {

using Clock = std::chrono::steady_clock;

// How long the answers under way may wait for a piece of somebody's prompt.
constexpr double kPromptPieceSeconds = 0.1;
constexpr std::size_t kSmallestPiece = 16;
// A kept conversation is taken over where at least half of it, or half of the prompt, is the same, and little of it is lost: so many tokens, or
// this share of what stays. Else its beginning is copied, where that is long enough, and it may serve other requests.
constexpr std::size_t kWorthShare = 2;
constexpr std::size_t kLittle = 64;
constexpr std::size_t kLittleShare = 8;
constexpr std::size_t kWorthCopying = 32;

SchedulerOptions complete(SchedulerOptions options) {
    if (options.kept_bytes == 0) options.kept_bytes = std::max<std::uint64_t>(available_ram() / 4, std::uint64_t{256} << 20);
    return options;
}

}  // namespace

struct Scheduler::Job {
    Job(const Model& model, GenerateRequest request, std::shared_ptr<Generation> handle)
        : answer(model, std::move(request)), generation(std::move(handle)), stop(generation->stop_token()) {}

    AnswerBuilder answer;
    std::shared_ptr<Generation> generation;
    std::stop_token stop;
    std::unique_ptr<Session> session;   // while it runs
    std::optional<Error> error;
    [[nodiscard]] bool over() const { return error || answer.ended() || stop.stop_requested(); }
};

Scheduler::Scheduler(std::shared_ptr<Model> model, const SchedulerOptions& options)
    : model_(std::move(model)), options_(complete(options)), thread_([this](const std::stop_token& stop) {
          while (!stop.stop_requested()) work();
      }) {}

Scheduler::~Scheduler() {
    thread_.request_stop();
    {
        const std::scoped_lock lock(mutex_);
        for (const auto& generation : live_) generation->cancel();
    }
    bell_->ring();
    thread_.join();
    for (auto& job : running_) end(std::move(job));
    for (auto& job : queue_) end(std::move(job));
}

Result<std::shared_ptr<Generation>> Scheduler::submit(GenerateRequest request) try {
    HR_CHECK(check(*model_, request));
    auto generation = std::make_shared<Generation>(bell_);
    auto job = std::make_unique<Job>(*model_, std::move(request), generation);
    {
        const std::scoped_lock lock(mutex_);
        const auto waiting = std::ranges::count_if(queue_, [](const auto& other) { return !other->stop.stop_requested(); });
        if (waiting >= options_.max_queued) return nullptr;
        live_.push_back(generation);
        queue_.push_back(std::move(job));
        figures_.queued = static_cast<int>(waiting + 1);
    }
    bell_->ring();
    return generation;
} catch (const std::bad_alloc&) {
    return fail(ErrorKind::out_of_memory, "There is not enough memory for another request");
}

SchedulerFigures Scheduler::figures() const {
    const std::scoped_lock lock(mutex_);
    return figures_;
}

void Scheduler::drop_kept() {
    {
        const std::scoped_lock lock(mutex_);
        drop_kept_ = true;
    }
    bell_->ring();
}

// One round: who is gone leaves, who waits joins, prompts are read for a while, the answers go on by a token.
void Scheduler::work() try {
    remove_cancelled();
    admit();
    read_prompts();
    step();
    finish_ended();
    publish();
    const bool can_go_on = std::ranges::any_of(running_, [](const auto& job) { return !job->generation->is_full() || job->stop.stop_requested(); });
    if (can_go_on) return;
    {
        const std::scoped_lock lock(mutex_);
        if (drop_kept_ || (!queue_.empty() && !crowded_ && static_cast<int>(running_.size()) < options_.max_running)) return;
    }
    bell_->wait();
} catch (const std::bad_alloc&) {
    kept_.clear();
    for (auto& job : running_) job->error = Error{ErrorKind::out_of_memory, "There is not enough memory to go on"};
    finish_ended();
}

void Scheduler::remove_cancelled() {
    std::vector<std::unique_ptr<Job>> gone;
    bool drop = false;
    {
        const std::scoped_lock lock(mutex_);
        for (auto& job : queue_) {
            if (job->stop.stop_requested()) gone.push_back(std::move(job));
        }
        std::erase(queue_, nullptr);
        drop = std::exchange(drop_kept_, false);
    }
    for (auto& job : gone) end(std::move(job));
    if (drop) kept_.clear();
    finish_ended();
}

void Scheduler::admit() {
    while (!crowded_ && static_cast<int>(running_.size()) < options_.max_running) {
        std::unique_ptr<Job> job;
        {
            const std::scoped_lock lock(mutex_);
            if (queue_.empty()) return;
            job = std::move(queue_.front());
            queue_.pop_front();
        }
        if (job->answer.ended()) {  // not a single token was asked for
            end(std::move(job));
            continue;
        }
        if (const auto started = start(*job); !started) {
            job->error = started.error();
            if (started.error().kind == ErrorKind::out_of_memory && !running_.empty()) {  // it waits until somebody has left
                job->error.reset();
                crowded_ = true;
                const std::scoped_lock lock(mutex_);
                queue_.push_front(std::move(job));
                return;
            }
            end(std::move(job));
            continue;
        }
        running_.push_back(std::move(job));
    }
}

// Gives the job a session, with what other conversations have in common with it.
Result<> Scheduler::start(Job& job) {
    HR_CHECK(start_with(job));
    const std::size_t reused = job.session->state_->keep_common(job.answer.history());
    job.answer.start_prompt(job.answer.tokens().empty() ? reused : static_cast<std::size_t>(job.answer.stats().reused_tokens));
    {
        const std::scoped_lock lock(mutex_);
        figures_.reused_tokens += reused;
    }
    catch_up(job);
    job.generation->set_stage(Generation::Stage::reading, job.answer.stats());
    return {};
}

// A kept conversation that it goes on with, or a new one.
Result<> Scheduler::start_with(Job& job) {
    const auto history = job.answer.history();
    auto best = kept_.end();
    std::size_t most = 0;
    for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
        const std::size_t common = kept->session->state_->common(history), size = kept->session->tokens().size();
        if (common <= most || common * kWorthShare < std::min(history.size(), size)) continue;
        if (size - common > std::max(kLittle, common / kLittleShare)) continue;
        best = kept;
        most = common;
    }
    if (best != kept_.end() && find_beginning(job, most) == nullptr) {
        job.session = std::move(best->session);
        kept_.erase(best);
        return {};
    }
    auto session = Session::create(model_);
    while (!session && session.error().kind == ErrorKind::out_of_memory && !kept_.empty()) {
        drop_oldest_kept();
        session = Session::create(model_);
    }
    HR_TRY(job.session, std::move(session));
    return {};
}

Session* Scheduler::find_beginning(const Job& job, std::size_t read) const {
    Session* best = nullptr;
    std::size_t most = read + kWorthCopying - 1;
    const auto look = [&](const std::unique_ptr<Session>& session) {
        if (!session || session.get() == job.session.get() || session->tokens().size() <= most) return;
        const std::size_t common = session->state_->common(job.answer.history());
        if (common <= most) return;
        best = session.get();
        most = common;
    };
    for (const Kept& kept : kept_) look(kept.session);
    for (const auto& other : running_) look(other->session);
    return best;
}

// Copies what another conversation has read by now of the job's text. False: none has, or there is no memory for it.
bool Scheduler::catch_up(Job& job) {
    const std::size_t read = job.session->tokens().size();
    Session* const from = find_beginning(job, read);
    if (from == nullptr) return false;
    const std::size_t common = from->state_->common(job.answer.history());
    if (!job.session->state_->copy(*from->state_, common)) return false;
    for (Kept& kept : kept_) {
        if (kept.session.get() == from) kept.used = ++uses_;
    }
    if (job.answer.tokens().empty()) job.answer.reuse(common - read);
    const std::scoped_lock lock(mutex_);
    figures_.reused_tokens += common - read;
    return true;
}

// Whether another one is reading what this one has to read next: it is copied then.
bool Scheduler::waits_for_another(const Job& job) const {
    const std::size_t read = job.session->tokens().size();
    bool before = true;  // of two that have read as much the first one reads on
    for (const auto& other : running_) {
        if (other.get() == &job) {
            before = false;
            continue;
        }
        const std::size_t ahead = other->session->tokens().size();
        if (other->over() || unread(*other) <= 1 || (before ? ahead < read : ahead <= read)) continue;
        const auto ours = job.answer.history(), theirs = other->answer.history();
        const auto common = static_cast<std::size_t>(std::ranges::mismatch(ours, theirs).in1 - ours.begin());
        if (common > ahead && common >= read + kWorthCopying) return true;
    }
    return false;
}

std::size_t Scheduler::unread(const Job& job) const { return job.answer.history().size() - job.session->tokens().size(); }

// How many tokens of prompts may be read between two steps.
std::size_t Scheduler::prompt_budget() const {
    const bool answers = std::ranges::any_of(running_, [&](const auto& job) { return !job->over() && unread(*job) == 1; });
    const std::size_t most = running_.front()->session->state_->max_tokens();
    if (!answers || seconds_per_prompt_token_ <= 0) return most;
    return std::clamp(static_cast<std::size_t>(kPromptPieceSeconds / seconds_per_prompt_token_), std::min(kSmallestPiece, most), most);
}

void Scheduler::read_prompts() {
    if (running_.empty()) return;
    std::size_t budget = prompt_budget();
    std::vector<Job*> readers;
    for (std::size_t i = 0; i < running_.size(); ++i) {
        Job& job = *running_[(next_reader_ + i) % running_.size()];
        if (!job.over() && unread(job) > 1) readers.push_back(&job);
    }
    ++next_reader_;
    std::vector<model::Piece> pieces;
    std::vector<Job*> reading;
    std::size_t total = 0;
    for (Job* job : readers) {
        if (budget == 0) break;
        if (waits_for_another(*job)) continue;
        if (catch_up(*job)) {
            job->generation->set_stage(Generation::Stage::reading, job->answer.stats());
            if (unread(*job) == 1) continue;
        }
        // All but the last token: that one is read in a step with the others, and its logits choose the next.
        const std::size_t count = std::min(unread(*job) - 1, budget);
        Session::State& session = *job->session->state_;
        session.tokens.reserve(session.tokens.size() + count);
        pieces.push_back({.sequence = *session.sequence, .tokens = job->answer.history().subspan(session.tokens.size(), count), .rows = {}});
        reading.push_back(job);
        budget -= count;
        total += count;
    }
    if (pieces.empty()) return;
    const auto start = Clock::now();
    // One that is alone is cancelled in the middle of its piece; of several the others' pieces are read.
    const auto done = read_together(pieces, reading.size() == 1 ? reading[0]->stop : std::stop_token());
    if (!done) {
        if (done.error().kind == ErrorKind::cancelled) return;
        if (done.error().kind != ErrorKind::out_of_memory) {
            for (Job* job : reading) job->error = done.error();
        } else if (!make_room(*reading.back())) {
            reading.back()->error = done.error();
        }
        return;
    }
    for (std::size_t i = 0; i < reading.size(); ++i) {
        auto& tokens = reading[i]->session->state_->tokens;
        tokens.insert(tokens.end(), pieces[i].tokens.begin(), pieces[i].tokens.end());
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count() / static_cast<double>(total);
    seconds_per_prompt_token_ = seconds_per_prompt_token_ > 0 ? 0.7 * seconds_per_prompt_token_ + 0.3 * seconds : seconds;
    const std::scoped_lock lock(mutex_);
    figures_.prompt_tokens += total;
}

Result<> Scheduler::read_together(std::span<const model::Piece> pieces, const std::stop_token& stop) {
    const TurnLock::Turn turn(model_->state_->turns, stop);
    if (!turn) return fail(ErrorKind::cancelled, "The computation was cancelled");
    return model_->state_->runner->read_together(pieces, stop);
}

void Scheduler::step() {
    std::vector<Job*> jobs;
    for (const auto& job : running_) {
        if (!job->over() && unread(*job) == 1 && !job->generation->is_full()) jobs.push_back(job.get());
    }
    if (jobs.empty()) return;
    if (jobs.size() == 1 && running_.size() == 1 && jobs[0]->answer.is_plain_greedy() && !jobs[0]->answer.tokens().empty()) {
        decode_alone(*jobs[0]);
        return;
    }
    std::vector<Session::Step> steps;
    for (Job* job : jobs) steps.push_back({.session = job->session.get(), .token = job->answer.history().back()});
    const auto choose = [&](std::size_t i, const model::Outlook& outlook) {
        jobs[i]->answer.choose(outlook);
        jobs[i]->error = jobs[i]->answer.error();
        deliver(*jobs[i]);
    };
    const auto add = [&](std::size_t i, TokenId id) {
        jobs[i]->answer.add(id);
        deliver(*jobs[i]);
    };
    // Where all take the likeliest token the device chooses; where the likeliest few are enough for everybody it picks those out. With others among
    // them everybody's logits come to the host: a second step would read all weights again. One that is alone is cancelled in the middle of a
    // step; of several the others' step goes on.
    const bool greedy = std::ranges::all_of(jobs, [](const Job* job) { return job->answer.is_plain_greedy(); });
    const bool few = std::ranges::all_of(jobs, [](const Job* job) { return job->answer.needed() > 0; });
    std::size_t needed = 0;
    for (const Job* job : jobs) needed = few ? std::max(needed, job->answer.needed()) : 0;
    const std::stop_token stop = jobs.size() == 1 ? jobs[0]->stop : std::stop_token();
    const auto done = greedy ? Session::choose_together(steps, add, stop) : Session::look_together(steps, needed, choose, stop);
    if (!done && done.error().kind != ErrorKind::cancelled) {
        if (done.error().kind != ErrorKind::out_of_memory) {
            for (Job* job : jobs) job->error = done.error();
        } else if (!make_room(*jobs.back())) {
            jobs.back()->error = done.error();
        }
        return;
    }
    const std::scoped_lock lock(mutex_);
    ++figures_.steps;
}

// The only one, and the device may choose: many steps at once, until somebody else comes.
void Scheduler::decode_alone(Job& job) {
    const auto add = [&](TokenId id) {
        const bool goes_on = job.answer.add(id);
        deliver(job);
        if (!goes_on || job.generation->is_full()) return false;
        const std::scoped_lock lock(mutex_);
        ++figures_.steps;
        return queue_.empty();
    };
    const auto done = job.session->state_->decode(job.answer, std::min(job.answer.room(), kGreedySteps), add, job.stop);
    if (done || done.error().kind == ErrorKind::cancelled) return;
    if (done.error().kind != ErrorKind::out_of_memory || !make_room(job)) job.error = done.error();
}

void Scheduler::deliver(Job& job) { job.generation->push(job.answer.take_text(), job.answer.take_choices(), job.answer.stats()); }

bool Scheduler::make_room(Job& job) {
    if (!kept_.empty()) {
        drop_oldest_kept();
        return true;
    }
    if (running_.size() < 2) return false;
    // It goes back to the head of the queue and reads everything again when somebody has left: what it has said stays said.
    const auto place = std::ranges::find_if(running_, [&](const auto& other) { return other.get() == &job; });
    job.session.reset();
    crowded_ = true;
    const std::scoped_lock lock(mutex_);
    queue_.push_front(std::move(*place));
    running_.erase(place);
    return true;
}

void Scheduler::finish_ended() {
    for (auto& job : running_) {
        if (job->over()) end(std::move(job));
    }
    if (std::erase(running_, nullptr) > 0 || running_.empty()) crowded_ = false;
}

void Scheduler::end(std::unique_ptr<Job> job) {
    const bool cancelled = !job->error && !job->answer.ended();
    {
        const std::scoped_lock lock(mutex_);
        ++figures_.requests;
        if (cancelled) ++figures_.cancelled;
        if (job->error) ++figures_.failed;
        figures_.completion_tokens += job->answer.tokens().size();
    }
    if (job->session) keep(std::move(job->session));
    if (job->error) {
        job->generation->end(std::unexpected(std::move(*job->error)));
        return;
    }
    GenerateResult result = job->answer.finish(cancelled ? FinishReason::cancelled : *job->answer.ended());
    deliver(*job);
    job->generation->end(std::move(result));
}

void Scheduler::keep(std::unique_ptr<Session> session) {
    if (session->tokens().empty() || options_.kept <= 0) return;
    kept_.push_back({.session = std::move(session), .used = ++uses_});
    const auto bytes = [&] {
        std::uint64_t sum = 0;
        for (const Kept& kept : kept_) sum += kept.session->kv_bytes();
        return sum;
    };
    while (!kept_.empty() && (kept_.size() > static_cast<std::size_t>(options_.kept) || bytes() > options_.kept_bytes)) drop_oldest_kept();
}

void Scheduler::drop_oldest_kept() { kept_.erase(std::ranges::min_element(kept_, {}, &Kept::used)); }

void Scheduler::publish() {
    std::uint64_t bytes = 0;
    for (const auto& job : running_) bytes += job->session ? job->session->kv_bytes() : 0;
    for (const Kept& kept : kept_) bytes += kept.session->kv_bytes();
    const std::scoped_lock lock(mutex_);
    figures_.running = static_cast<int>(running_.size());
    figures_.queued = static_cast<int>(queue_.size());
    figures_.kept = static_cast<int>(kept_.size());
    figures_.kv_bytes = bytes;
    std::erase_if(live_, [](const auto& generation) { return generation->stage() == Generation::Stage::ended; });
}

}  // namespace headroom::engine
