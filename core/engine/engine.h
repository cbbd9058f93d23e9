#pragma once

// The facade: what the command line, the window and the server use. Nothing here throws; errors are values.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/compute/cpu/kv_view.h"
#include "core/engine/sampling.h"
#include "core/engine/vram.h"
#include "core/gguf/file.h"
#include "core/gpu/search_path.h"
#include "core/text/chat_template.h"
#include "core/text/constraint.h"
#include "core/text/tokenizer.h"

namespace headroom::engine {

// How a conversation's keys and values are kept: as halves, or as codes of 8 bits, which take about half of that.
using cpu::KvType;

struct LoadOptions {
    std::filesystem::path path{};
    int context = 0;   // positions; 0: the file's, or 4,096 where the file's is larger (see ModelInfo::context)
    int threads = 0;   // 0: physical cores
    KvType kv_type = KvType::f16;                       // q8_0: for heads whose widths are multiples of 32, at most 256
    std::string device = "auto";                        // "cpu", "auto", or a device's id: "cuda:0", "hip:1"
    std::optional<std::uint64_t> reserve_bytes{};       // VRAM to leave free on each device; none: what was kept for it, else the default
    std::optional<std::uint64_t> cap_bytes{};           // the most to use of each device; none: what was kept for it, else no limit
    std::filesystem::path data_folder{};                // where verdicts and wishes are kept (base/paths.h); empty: nothing is kept, no
                                                        // verdict is known, and so no device is elastic
    gpu::SearchPath drivers = gpu::SearchPath::from_environment();
};

// What of a loaded model lies on one GPU.
struct DeviceUse {
    std::string id;                   // "cuda:0"
    std::string name;                 // "NVIDIA GeForce RTX 4070"
    int layers = 0;
    std::int64_t experts = 0;         // of all its layers together
    std::uint64_t bytes = 0;          // weights, KV pool and scratch
};

struct LoadProgress {
    enum class Stage : std::uint8_t { opening, reading, preparing } stage = Stage::opening;
    double fraction = 0;              // of the whole load, 0 to 1
    std::uint64_t bytes_done = 0;     // of the file
    std::uint64_t bytes_total = 0;
};
// Called from the loading thread, at most some 30 times a second.
using ProgressCallback = std::function<void(const LoadProgress&)>;

// What a model will need, before it is loaded.
struct Estimate {
    std::uint64_t weights_bytes = 0;
    std::uint64_t kv_bytes = 0;       // of one conversation at the whole context
    std::uint64_t scratch_bytes = 0;
    std::uint64_t available_ram = 0;  // now; 0: unknown
    [[nodiscard]] std::uint64_t total() const noexcept { return weights_bytes + kv_bytes + scratch_bytes; }
    [[nodiscard]] bool fits() const noexcept { return available_ram == 0 || total() <= available_ram; }
};

struct ModelInfo {
    std::string name;                 // general.name, or the file's name
    std::string family;               // general.architecture: "qwen3moe"
    std::string quantization;         // "Q4_K_M", from general.file_type, else the most common tensor type
    std::uint64_t parameters = 0;
    std::uint64_t file_bytes = 0;
    int trained_context = 0;          // the file's context_length
    int context = 0;                  // in use
    KvType kv_type = KvType::f16;     // in use
    int vocabulary = 0;
    int layers = 0;
    int experts = 0;                  // 0: dense
    int experts_used = 0;
    bool has_chat_template = false;
    std::vector<DeviceUse> devices;   // of a loaded model, in the layers' order; empty: the processor alone
    std::int64_t experts_total = 0;   // of all layers, where devices is not empty
    std::vector<std::string> warnings;  // sentences for the user (unknown pre-tokenizer, …)
};

// What inspect and the window's "open" page show without loading. Reads only the header. context and kv_type as in LoadOptions.
struct Inspection {
    ModelInfo info;
    Estimate estimate;
    std::string problem;              // why this model cannot be run (unknown family, tensor type, kv_type); empty: it can
};
[[nodiscard]] Inspection inspect(const gguf::File& file, int context, KvType kv_type = KvType::f16);

// How the hidden states of a text become one vector.
enum class Pooling : std::uint8_t { mean, last };

// A loaded model. Shared by sessions; its const functions are safe from any thread.
class Model {
public:
    // Errors: those of gguf::File::open, unsupported (family, tensor type, kv_type), invalid_file (shapes), out_of_memory, cancelled.
    // stop: checked at least every 50 ms.
    [[nodiscard]] static Result<std::shared_ptr<Model>> load(const LoadOptions& options, const ProgressCallback& progress = {},
                                                             std::stop_token stop = {});
    ~Model();
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;

    [[nodiscard]] const ModelInfo& info() const noexcept;
    [[nodiscard]] const gguf::File& file() const noexcept;
    [[nodiscard]] const text::Tokenizer& tokenizer() const noexcept;
    // For text::TokenGrammar; built when first asked for (0.2 s with a large vocabulary), then the same.
    [[nodiscard]] std::shared_ptr<const text::TokenTrie> token_trie() const;
    [[nodiscard]] int threads() const noexcept;
    // Reserve and cap of its GPUs; null where it runs on the processor alone. May outlive the model: it answers with no devices then.
    [[nodiscard]] std::shared_ptr<Vram> vram() const noexcept;

    // The prompt of a conversation through the file's chat template. context: {"messages": [...], "tools": …}; add_generation_prompt is
    // true unless given. Errors: template_failed; unsupported where the file has no template.
    [[nodiscard]] Result<std::vector<TokenId>> chat_prompt(const text::Json& context) const;

    // The text as one vector of length 1, [embedding]: the hidden states behind the last norm, their mean or that of the last token; without
    // `pooling` as the file says, else the mean. Computed on the processor, wherever the model lies; takes turns with sessions. Errors: as
    // Session::generate's, unsupported (the file asks for another pooling), cancelled.
    [[nodiscard]] Result<std::vector<float>> embed(std::span<const TokenId> tokens, std::optional<Pooling> pooling = {}, std::stop_token stop = {});

private:
    friend class Session;
    friend class Scheduler;
    struct State;
    explicit Model(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

enum class FinishReason : std::uint8_t { stop, length, cancelled };
[[nodiscard]] std::string_view to_string(FinishReason reason) noexcept;  // "stop", "length", "cancelled"

struct GenerateRequest {
    std::vector<TokenId> prompt{};     // the whole conversation so far: what the session has already read is not read again
    SamplingOptions sampling{};
    int max_tokens = -1;               // -1: to the end of the context
    std::vector<std::string> stops{};  // end the answer, not part of it
    bool ignore_end = false;           // go on after end tokens (benchmarks)
    bool show_special = false;         // control tokens as text
    std::vector<TokenId> shown{};      // these control tokens as text in any case (text::shown_tokens)
    std::shared_ptr<const text::TokenGrammar> grammar{};  // what the answer is held to; not with ignore_end
    std::string begun{};               // of that, what the end of the prompt has said already: the answer goes on from there
    std::optional<int> likeliest{};    // tell each token's probability, and those of so many likeliest ones
};

// A token and the logarithm of its probability, before penalties, temperature and grammar.
struct TokenProbability {
    TokenId id = 0;
    std::string bytes;                 // may be part of a UTF-8 character; control tokens by their names
    float logprob = 0;                 // -9999: impossible
};
struct TokenChoice {
    TokenProbability token;                   // the one that was taken
    std::vector<TokenProbability> likeliest;  // descending
};

struct GenerateStats {
    int prompt_tokens = 0;
    int reused_tokens = 0;             // of the prompt, found in the session
    int completion_tokens = 0;
    double prompt_seconds = 0;
    double completion_seconds = 0;
    [[nodiscard]] double prompt_tps() const noexcept {
        return prompt_seconds > 0 ? (prompt_tokens - reused_tokens) / prompt_seconds : 0;
    }
    [[nodiscard]] double completion_tps() const noexcept {
        return completion_seconds > 0 ? (completion_tokens - 1) / completion_seconds : 0;  // the first came with the prompt
    }
};

struct GenerateResult {
    std::string text;                  // valid UTF-8
    std::vector<TokenId> tokens;       // of the answer, an end token included
    FinishReason finish = FinishReason::stop;
    GenerateStats stats;
};

struct GenerateCallbacks {
    // New text, in order, valid UTF-8; joined it is GenerateResult::text. Called on the generating thread.
    std::function<void(std::string_view text, const GenerateStats& stats)> on_text{};
    // While the prompt is read: tokens done of tokens to do.
    std::function<void(int done, int total)> on_prompt{};
    // Each token of the answer, where GenerateRequest::likeliest is set.
    std::function<void(const TokenChoice& choice)> on_choice{};
};

// One conversation: the tokens read so far and their KV cache, whose pages are allocated as it grows. Used from one thread at a
// time; sessions of one model may be used from different threads, their steps take turns.
class Session {
public:
    [[nodiscard]] static Result<std::unique_ptr<Session>> create(std::shared_ptr<Model> model);
    ~Session();

    // Answers. Errors: invalid_argument (sampling, empty prompt, ids outside the vocabulary), context_full (both numbers in the message),
    // out_of_memory. Cancelling through stop is no error: finish is `cancelled`, text what there is; it is noticed within one
    // layer's work. After any outcome the session can be used again.
    [[nodiscard]] Result<GenerateResult> generate(const GenerateRequest& request, const GenerateCallbacks& callbacks = {},
                                                  std::stop_token stop = {});

    // Reads tokens (from an empty session: what it held is dropped) and hands the logits behind each position in `positions`
    // (ascending) to on_logits: for eval and perplexity. on_logits is called while other sessions wait for their turn: it must not
    // wait for them. Errors: as generate's, and cancelled.
    [[nodiscard]] Result<> evaluate(std::span<const TokenId> tokens, std::span<const int> positions,
                                    const std::function<void(int position, std::span<const float> logits)>& on_logits,
                                    std::stop_token stop = {});

    // One token each of several sessions of one model, all different, read in one step. on_logits gets the logits behind each one's token,
    // which may be changed. Errors: as generate's, and cancelled; then every session is what it was.
    struct Step {
        Session* session = nullptr;
        TokenId token = 0;
    };
    [[nodiscard]] static Result<> step_together(std::span<const Step> steps,
                                                const std::function<void(std::size_t i, std::span<float> logits)>& on_logits,
                                                std::stop_token stop = {});
    // The same; on_choice gets the likeliest next token of each (the lowest id among equals): faster where a GPU chooses.
    [[nodiscard]] static Result<> choose_together(std::span<const Step> steps, const std::function<void(std::size_t i, TokenId token)>& on_choice,
                                                  std::stop_token stop = {});

    // The same; on_outlook gets, where a GPU picks them out, at least the `count` likeliest next tokens of each, elsewhere, and with a count of 0,
    // all logits.
    [[nodiscard]] static Result<> look_together(std::span<const Step> steps, std::size_t count,
                                                const std::function<void(std::size_t i, const model::Outlook& outlook)>& on_outlook,
                                                std::stop_token stop = {});

    [[nodiscard]] std::span<const TokenId> tokens() const noexcept;  // read so far
    [[nodiscard]] std::uint64_t kv_bytes() const noexcept;            // allocated now
    void clear() noexcept;

private:
    friend class Scheduler;
    struct State;
    explicit Session(std::unique_ptr<State> state);
    template <class Run>
    [[nodiscard]] static Result<> all_together(std::span<const Step> steps, const std::stop_token& stop, Run run);
    std::unique_ptr<State> state_;
};

// The models in the folder by name: its .gguf files without the ending, sorted; of a split model the first part alone. A folder that is not
// there is empty.
[[nodiscard]] std::vector<std::string> model_names(const std::filesystem::path& model_folder);
// Only a name in the model folder, or "builtin": never a path. Errors: not_found.
[[nodiscard]] Result<std::filesystem::path> find_model_by_name(std::string_view name, const std::filesystem::path& model_folder);

// Where -m NAME points: a path that exists, "builtin", or a name in the model folder (with or without ".gguf"; a name never leads
// outside the folder). Errors: not_found with the names that are there.
[[nodiscard]] Result<std::filesystem::path> find_model(std::string_view name, const std::filesystem::path& model_folder);

}  // namespace headroom::engine
