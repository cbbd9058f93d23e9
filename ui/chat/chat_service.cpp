#include "ui/chat/chat_service.h"

#include <algorithm>
#include <chrono>

#include "ui/chat/reasoning.h"

namespace headroom::ui {
namespace {

using namespace std::chrono_literals;

// A kill loses nothing that was on the screen for a second.
constexpr auto kSaveInterval = 500ms;

constexpr qsizetype kTitleLength = 60;

QString title_of(const QString& text) {
    const QString line = text.trimmed().section(QLatin1Char('\n'), 0, 0).simplified();
    return line.size() <= kTitleLength ? line : line.first(kTitleLength - 1).trimmed() + QChar(0x2026);
}

}  // namespace

ChatService::ChatService(ChatStore& store, EngineController& engine, QObject* parent) : QObject(parent), store_(store), engine_(engine) {
    save_timer_.setInterval(kSaveInterval);
    connect(&save_timer_, &QTimer::timeout, this, &ChatService::save_running);
    connect(&engine_, &EngineController::text_added, this, &ChatService::on_text);
    connect(&engine_, &EngineController::prompt_progress, this, &ChatService::on_prompt);
    connect(&engine_, &EngineController::answer_finished, this, &ChatService::on_finished);
    connect(&engine_, &EngineController::model_changed, this, &ChatService::start_next);
    connect(&store_, &ChatStore::replaced, this, [this] {
        emit list_changed();
        open(0);
    });
}

ChatService::~ChatService() {
    for (Job& job : jobs_) {
        job.message.state = MessageState::stopped;
        store_.update_message(job.message);
    }
}

void ChatService::open(qint64 conversation) {
    current_ = conversation;
    settings_ = conversation ? store_.settings(conversation) : ConversationSettings{};
    tree_ = conversation ? ConversationTree(store_.messages(conversation), store_.leaf(conversation)) : ConversationTree{};
    for (const Job& job : jobs_) {  // newer than what was saved
        if (Message* message = tree_.find(job.message.id)) *message = job.message;
    }
    emit opened();
    emit settings_changed();
    emit busy_changed();
}

void ChatService::set_settings(const ConversationSettings& settings) {
    settings_ = settings;
    if (current_) store_.set_settings(current_, settings_);
    emit settings_changed();
}

void ChatService::send(const QString& text) {
    if (text.trimmed().isEmpty() || busy()) return;
    if (!current_) {
        current_ = store_.add_conversation(title_of(text), settings_);
        if (!current_) return;
    } else {
        store_.touch(current_);
    }
    Message message{.conversation = current_, .parent = tree_.leaf(), .role = Role::user, .text = text};
    message.id = store_.add_message(message);
    if (!message.id) return;
    tree_.add(message);
    emit list_changed();
    add_answer(message.id);
}

void ChatService::edit(qint64 user_message, const QString& text) {
    const Message* old = tree_.find(user_message);
    if (!old || old->role != Role::user || text.trimmed().isEmpty() || busy()) return;
    Message message{.conversation = current_, .parent = old->parent, .role = Role::user, .text = text};
    message.id = store_.add_message(message);
    if (!message.id) return;
    store_.touch(current_);
    tree_.add(message);
    emit list_changed();
    add_answer(message.id);
}

void ChatService::regenerate(qint64 answer) {
    const Message* old = tree_.find(answer);
    if (!old || old->role != Role::assistant || busy()) return;
    add_answer(old->parent);
}

void ChatService::add_answer(qint64 parent) {
    Job job;
    job.request.conversation = current_;
    job.request.sampling = settings_.sampling;
    job.request.max_tokens = settings_.max_tokens;
    if (!settings_.system_prompt.trimmed().isEmpty()) job.request.turns.push_back({"system", settings_.system_prompt.toStdString()});
    for (const qint64 id : tree_.path_to(parent)) {
        const Message& message = *tree_.find(id);
        job.request.turns.push_back({message.role == Role::user ? "user" : "assistant", message.text.toStdString()});
    }
    job.message = {.conversation = current_, .parent = parent, .role = Role::assistant, .state = MessageState::streaming};
    job.message.id = store_.add_message(job.message);
    if (!job.message.id) return;
    store_.set_leaf(current_, job.message.id);
    tree_.add(job.message);
    jobs_.push_back(std::move(job));
    start_next();
    emit path_changed();
    emit busy_changed();
}

void ChatService::start_next() {
    using Phase = Progress::Phase;
    const bool ready = engine_.model().state == ModelStatus::State::ready;
    for (auto job = jobs_.begin(); job != jobs_.end(); ++job) {
        if (job->running) continue;
        const bool first = job == jobs_.begin();
        job->progress.phase = !ready ? Phase::waiting_for_model : first ? Phase::reading : Phase::waiting_for_turn;
        if (ready && first) {
            job->running = true;
            job->message.model = QString::fromStdString(engine_.model().info.name);
            save_timer_.start();
            engine_.answer(job->message.id, job->request);
        }
        publish(*job);
    }
}

std::deque<ChatService::Job>::iterator ChatService::find_job(qint64 answer) {
    return std::ranges::find_if(jobs_, [&](const Job& job) { return job.message.id == answer; });
}

// Copies a job's answer into the tree that is shown.
void ChatService::publish(const Job& job) {
    if (Message* message = tree_.find(job.message.id); message && job.message.conversation == current_) {
        *message = job.message;
        emit message_changed(job.message.id);
    }
}

void ChatService::on_prompt(qint64 answer, int done, int total) {
    const auto job = find_job(answer);
    if (job == jobs_.end()) return;
    job->progress.phase = Progress::Phase::reading;
    job->progress.prompt_done = done;
    job->progress.prompt_total = total;
    publish(*job);
}

void ChatService::on_text(qint64 answer, const QString& text, const engine::GenerateStats& stats) {
    const auto job = find_job(answer);
    if (job == jobs_.end()) return;
    Message& message = job->message;
    if (!job->thinking.isValid()) job->thinking.start();
    message.text += text;
    message.prompt_tokens = stats.prompt_tokens;
    message.completion_tokens = stats.completion_tokens;
    message.tokens_per_second = stats.completion_tps();
    const AnswerParts parts = split_reasoning(message.text);
    job->progress.phase = parts.thinking ? Progress::Phase::thinking : Progress::Phase::writing;
    job->progress.tokens_per_second = stats.completion_tps();
    if (parts.thinking || (message.thinking_ms == 0 && !parts.reasoning.isEmpty())) message.thinking_ms = job->thinking.elapsed();
    job->unsaved = true;
    publish(*job);
}

void ChatService::save_running() {
    for (Job& job : jobs_) {
        if (!std::exchange(job.unsaved, false)) continue;
        store_.update_message(job.message);
    }
}

void ChatService::on_finished(qint64 answer, const AnswerOutcome& outcome) {
    const auto job = find_job(answer);
    if (job == jobs_.end()) return;
    Message& message = job->message;
    if (!outcome.error.isEmpty()) {
        message.state = MessageState::failed;
        message.error = outcome.error;
    } else {
        switch (outcome.finish) {
            case engine::FinishReason::stop: message.state = MessageState::complete; break;
            case engine::FinishReason::length: message.state = MessageState::length; break;
            case engine::FinishReason::cancelled: message.state = MessageState::stopped; break;
        }
        if (outcome.stats.prompt_tokens > 0) {
            message.prompt_tokens = outcome.stats.prompt_tokens;
            message.completion_tokens = outcome.stats.completion_tokens;
            message.tokens_per_second = outcome.stats.completion_tps();
        }
    }
    finish(job);
}

void ChatService::finish(std::deque<Job>::iterator job) {
    store_.update_message(job->message);
    const Job done = std::move(*job);
    jobs_.erase(job);
    if (jobs_.empty()) save_timer_.stop();
    publish(done);
    start_next();
    emit busy_changed();
}

void ChatService::select_branch(qint64 message) {
    if (!tree_.find(message)) return;
    tree_.select(message);
    store_.set_leaf(current_, tree_.leaf());
    emit path_changed();
    emit busy_changed();
}

void ChatService::stop() {
    for (auto job = jobs_.begin(); job != jobs_.end(); ++job) {
        if (job->message.conversation != current_) continue;
        if (job->running) {
            engine_.stop_answer(job->message.id);
        } else {
            job->message.state = MessageState::stopped;
            finish(job);
        }
        return;
    }
}

bool ChatService::busy() const { return answering(current_); }

bool ChatService::answering(qint64 conversation) const {
    return conversation && std::ranges::any_of(jobs_, [&](const Job& job) { return job.message.conversation == conversation; });
}

ChatService::Progress ChatService::progress(qint64 message) const {
    for (const Job& job : jobs_) {
        if (job.message.id == message) return job.progress;
    }
    return {};
}

int ChatService::context_used() const {
    const std::vector<qint64> path = tree_.path();
    for (auto id = path.rbegin(); id != path.rend(); ++id) {
        const Message& message = *tree_.find(*id);
        if (message.prompt_tokens > 0) return message.prompt_tokens + message.completion_tokens;
    }
    return 0;
}

void ChatService::rename(qint64 conversation, const QString& title) {
    if (title.trimmed().isEmpty()) return;
    store_.rename(conversation, title.simplified());
    emit list_changed();
}

void ChatService::remove(qint64 conversation) {
    for (const Job& job : jobs_) {
        if (job.message.conversation == conversation) engine_.stop_answer(job.message.id);
    }
    std::erase_if(jobs_, [&](const Job& job) { return job.message.conversation == conversation && !job.running; });
    store_.set_deleted(conversation, true);
    engine_.forget(conversation);
    emit list_changed();
    if (conversation == current_) open(0);
}

void ChatService::restore(qint64 conversation) {
    store_.set_deleted(conversation, false);
    emit list_changed();
    open(conversation);
}

}  // namespace headroom::ui
