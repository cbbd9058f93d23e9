#include <chrono>
#include <new>
#include <system_error>

#include "core/base/bytes.h"
#include "core/base/system.h"
#include "core/engine/description.h"
#include "core/engine/engine.h"
#include "core/engine/model_state.h"
#include "core/engine/read_ahead.h"
#include "core/model/cpu_runner.h"
#include "core/model/family.h"
#include "core/text/chat_prompt.h"

namespace headroom::engine {
namespace {

constexpr int kMaxThreads = 1024;
constexpr double kOpened = 0.01;    // shares of the whole load: what comes before the weights is quick
constexpr double kPrepared = 0.05;

// Calls back at most some 30 times a second, except for a new stage and the end.
class ProgressReporter {
public:
    ProgressReporter(const ProgressCallback& callback, LoadProgress::Stage stage) : callback_(callback) { begin(stage, 0); }

    void begin(LoadProgress::Stage stage, double fraction) {
        progress_.stage = stage;
        progress_.fraction = fraction;
        send();
    }
    void set_total(std::uint64_t bytes) { progress_.bytes_total = bytes; }
    void read(std::uint64_t bytes) {
        progress_.bytes_done = bytes;
        progress_.fraction = kPrepared + (1 - kPrepared) * static_cast<double>(bytes) / static_cast<double>(progress_.bytes_total);
        if (std::chrono::steady_clock::now() - sent_ >= std::chrono::milliseconds(33)) send();
    }
    void finish() {
        progress_.fraction = 1;
        progress_.bytes_done = progress_.bytes_total;
        send();
    }

private:
    void send() {
        sent_ = std::chrono::steady_clock::now();
        if (callback_) callback_(progress_);
    }

    const ProgressCallback& callback_;
    LoadProgress progress_;
    std::chrono::steady_clock::time_point sent_;
};

std::optional<Result<text::ChatTemplate>> parse_template(const gguf::File& file) {
    const auto source = file.get_string("tokenizer.chat_template");
    if (!source) return std::unexpected(source.error());
    if (!*source) return std::nullopt;
    return text::ChatTemplate::parse(std::string(**source));
}

}  // namespace

Model::Model(std::unique_ptr<State> state) : state_(std::move(state)) {}
Model::~Model() = default;

const ModelInfo& Model::info() const noexcept { return state_->info; }
const gguf::File& Model::file() const noexcept { return state_->file; }
const text::Tokenizer& Model::tokenizer() const noexcept { return *state_->tokenizer; }

std::shared_ptr<const text::TokenTrie> Model::token_trie() const {
    std::call_once(state_->token_trie_made, [&] { state_->token_trie = text::TokenTrie::build(*state_->tokenizer); });
    return state_->token_trie;
}

int Model::threads() const noexcept { return state_->pool->size(); }
std::shared_ptr<Vram> Model::vram() const noexcept { return state_->vram; }

Result<std::shared_ptr<Model>> Model::load(const LoadOptions& options, const ProgressCallback& progress, std::stop_token stop) try {
    const auto cancelled = [] { return fail(ErrorKind::cancelled, "Loading was cancelled"); };
    if (options.threads < 0 || options.threads > kMaxThreads) {
        return fail(ErrorKind::invalid_argument, "{} threads were asked for, possible are 1 to {}", options.threads, kMaxThreads);
    }
    ProgressReporter reporter(progress, LoadProgress::Stage::opening);
    HR_TRY(gguf::File file, gguf::File::open(options.path));
    if (stop.stop_requested()) return cancelled();

    reporter.set_total(file.file_bytes());
    reporter.begin(LoadProgress::Stage::preparing, kOpened);
    HR_TRY(model::Transformer transformer, model::bind_transformer(file));
    HR_CHECK(model::set_kv_type(transformer, options.kv_type));
    ModelInfo info = describe(file);
    info.kv_type = options.kv_type;
    HR_TRY(info.context, context_in_use(info.trained_context, options.context));
    if (info.context > info.trained_context) {
        info.warnings.push_back(fmt::format("The context of {} positions is longer than the {} the model was trained on: answers may "
                                            "become worse beyond",
                                            info.context, info.trained_context));
    }
    const Estimate need = estimate(file, transformer, info.context);
    if (!need.fits()) {
        info.warnings.push_back(fmt::format("The model needs about {} of memory, {} are available: it may be very slow",
                                            format_bytes(need.total()), format_bytes(need.available_ram)));
    }
    auto state = std::make_unique<State>(std::move(file), std::move(transformer));
    if (stop.stop_requested()) return cancelled();
    HR_TRY(state->tokenizer, text::Tokenizer::load(state->file));
    if (state->tokenizer->size() > state->transformer.vocabulary) {
        return fail(ErrorKind::invalid_file, "{}: the tokenizer has {} tokens, but the model knows only {}", state->file.name(),
                    state->tokenizer->size(), state->transformer.vocabulary);
    }
    for (const std::string& warning : state->tokenizer->warnings()) info.warnings.push_back(warning);
    if (stop.stop_requested()) return cancelled();
    state->chat_template = parse_template(state->file);
    state->info = std::move(info);

    reporter.begin(LoadProgress::Stage::reading, kPrepared);
    HR_CHECK(state->use_devices(options, [&](std::uint64_t bytes) { reporter.read(bytes); }, stop));
    if (!state->runner) {
        state->runner = std::make_unique<model::CpuRunner>(state->transformer, *state->pool);
        if (need.fits()) {  // else the pages would push each other out
            HR_CHECK(read_ahead(state->file, [&](std::uint64_t bytes) { reporter.read(bytes); }, stop));
        }
    }
    if (stop.stop_requested()) return cancelled();
    reporter.finish();
    return std::shared_ptr<Model>(new Model(std::move(state)));
} catch (const std::bad_alloc&) {
    return fail(ErrorKind::out_of_memory, "There is not enough memory to load the model; close other programs or choose a smaller one");
} catch (const std::system_error& error) {
    return fail(ErrorKind::out_of_memory, "The compute threads cannot be started: {}", error.what());
}

Result<std::vector<TokenId>> Model::chat_prompt(const text::Json& context) const try {
    if (!state_->chat_template) {
        return fail(ErrorKind::unsupported, "{}: the model has no chat template: it can complete text, but not chat",
                    state_->file.name());
    }
    if (!*state_->chat_template) return std::unexpected(state_->chat_template->error());
    text::Json complete = context;
    if (!complete.contains("add_generation_prompt")) complete["add_generation_prompt"] = true;
    return text::chat_prompt(**state_->chat_template, *state_->tokenizer, std::move(complete), text::local_now());
} catch (const std::bad_alloc&) {
    return fail(ErrorKind::out_of_memory, "There is not enough memory for the prompt");
}

}  // namespace headroom::engine
