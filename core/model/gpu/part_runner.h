#pragma once

// The forward pass of one device's part of the layers: enqueues kernels, and replays them as a graph where steps repeat.

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <tuple>
#include <vector>

#include "core/compute/gpu/ops.h"
#include "core/gpu/resources.h"
#include "core/model/gpu/device_layers.h"
#include "core/model/gpu/expert_residency.h"
#include "core/model/gpu/expert_stream.h"
#include "core/model/gpu/expert_worker.h"
#include "core/model/gpu/kv_memory.h"
#include "core/model/gpu/placement.h"
#include "core/model/gpu/scratch.h"
#include "core/model/gpu/upload.h"
#include "core/model/runner.h"
#include "core/model/transformer.h"

namespace headroom::model {

// Tokens of one or several sessions, computed together.
struct PartBatch {
    std::span<const std::int32_t> tokens;      // ids; read by the part with the embedding
    std::span<const std::int64_t> positions;   // of each token
    std::span<const std::int32_t> tables;      // of each token: whose pages, index into `pages`
    std::span<const std::span<const std::int32_t>> pages;  // of each session
    std::span<const float> x;                  // [tokens, embedding] from the part before; empty for the part with the embedding
};

// What is computed behind the layers.
enum class PartTail : std::uint8_t {
    rows,    // nothing: the residual stream goes to the next part
    logits,  // of the rows that were named, if any were
    choice,  // of the rows that were named: the likeliest next token, which also becomes the next step's
    likeliest,  // of the rows that were named: the likeliest next tokens
};
struct Tail {
    PartTail kind;
    std::int32_t count = 0;  // of the likeliest, at most kernels::kMostTop

    auto operator<=>(const Tail&) const = default;
};

// One thread at a time, with the device current in it.
class PartRunner {
public:
    // Everything it names must outlive it.
    struct Environment {
        kernels::Kernels& kernels;
        const Transformer& transformer;
        ThreadPool& pool;
        int device = 0;
        const vmm::Verdict* verdict = nullptr;  // that is `on`; null: nothing moves once it is placed
        std::uint64_t budget = 0;               // bytes it may hold
        std::int64_t begin = 0;                 // of the part's layers the first that is on the device now, the others are the processor's
        std::int64_t kv_pages = 0;              // that are wanted at once, where they can come later
        std::function<void()> changed{};        // called by changes, whenever what is held or resident has changed
        vmm::SegmentPool::Quiet quiet{};        // as SegmentPool takes it
        std::optional<double> over_bus{};       // BusShare's fixed share
    };
    // placement: its chunk and its kv_positions. Layers have the part's numbers in all that follows, from 0.
    [[nodiscard]] static Result<std::unique_ptr<PartRunner>> create(const Environment& environment, const Placement& placement,
                                                                    const DevicePart& part, std::int64_t context, Uploader& uploader);
    ~PartRunner();
    PartRunner(const PartRunner&) = delete;
    PartRunner& operator=(const PartRunner&) = delete;

    // Computes the batch and waits for it. tail rows: x_rows() holds the residual stream then. tail logits: the logits of `rows`
    // (ascending, at most kLogitRows) are in logits_row(i); tail choice: the choices in choice_row(i); likeliest: they are in likeliest_row(i).
    // Errors: cancelled, device.
    [[nodiscard]] Result<> run(const PartBatch& batch, Tail tail, std::span<const std::int32_t> rows, const std::stop_token& stop);
    [[nodiscard]] std::span<float> x_rows(std::int64_t tokens) noexcept;
    [[nodiscard]] std::span<float> logits_row(std::size_t i) noexcept;
    [[nodiscard]] std::int32_t choice_row(std::size_t i) noexcept { return logits_.as<std::int32_t>()[i]; }
    // count: that of the tail.
    void likeliest_row(std::size_t i, std::int32_t count, std::vector<Likely>& out);

    // For decoding without waiting: enqueues a step of one token that chooses the next. chained: the token is the one that the step before
    // chose. Step n's choice is there when choice(n) returns. At most kInFlight steps may be enqueued and not yet awaited.
    static constexpr std::size_t kInFlight = 2;
    [[nodiscard]] Result<> enqueue_choice(const PartBatch& batch, bool chained);
    [[nodiscard]] Result<std::int32_t> await_choice();
    // Waits for everything that was enqueued and forgets choices that nobody asked for.
    [[nodiscard]] Result<> drain();

    // Bytes it holds on the device. Any thread.
    [[nodiscard]] std::uint64_t bytes() const noexcept { return held_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t scratch_bytes() const noexcept { return scratch_.memory.bytes() + block_.bytes(); }
    [[nodiscard]] const ExpertResidency* experts() const noexcept { return experts_.get(); }  // null: no mixture
    // Of decode steps. Any thread.
    [[nodiscard]] MissingChoices missing_choices() const noexcept { return worker_ ? worker_->counted() : MissingChoices{}; }
    // Counts the batches that were computed. Any thread.
    [[nodiscard]] std::uint64_t steps() const noexcept { return steps_.load(std::memory_order_relaxed); }

    // Changes of what lies on the device: one thread at a time, with the device current in it. They say in the report what failed.
    [[nodiscard]] bool elastic() const noexcept { return segments_ != nullptr; }
    // Beside steps of another thread:
    void give_experts(std::uint64_t bytes, residency::ResizeReport& report) { experts_->give(bytes, report); }
    void take_experts(std::uint64_t room, residency::ResizeReport& report, const std::function<bool()>& superseded) {
        const Growing growing(*this);
        experts_->take(room, report, superseded);
    }
    // Lets hot experts that are missing take the places of cold ones, a few at a time.
    void adapt(residency::ResizeReport& report);
    // What a layer before begin() would take; what one behind it would give.
    [[nodiscard]] std::uint64_t missing_bytes(std::int64_t layer) const;
    [[nodiscard]] std::uint64_t held_bytes(std::int64_t layer) const;
    // Copies a layer before begin() to the device; it is not used before set_begin.
    [[nodiscard]] Result<> load_layer(std::int64_t layer, residency::ResizeReport& report);
    [[nodiscard]] KvMemory& kv() noexcept { return kv_; }
    // Puts memory behind so many pages.
    [[nodiscard]] Result<> extend_kv(std::int64_t pages);
    // Gives memory behind pages that nobody uses back to the driver, and that of layers before begin().
    void release(std::int64_t kv_pages, residency::ResizeReport& report);
    // What would be held with everything there, conversations as they are.
    [[nodiscard]] std::uint64_t full_bytes() const;
    // While there are no steps:
    [[nodiscard]] std::int64_t begin() const noexcept { return begin_; }
    void set_begin(std::int64_t layer);
    // A page of one layer, to and from the processor's memory. Returns when it is there.
    [[nodiscard]] Result<> read_page(std::int64_t layer, std::int32_t page, void* to);
    [[nodiscard]] Result<> write_page(std::int64_t layer, std::int32_t page, const void* from);
    [[nodiscard]] Result<> copy_page(std::int32_t from, std::int32_t to);  // of all layers that are here

    // Prepares quick copies beside anything else (PinnedSpans); settle() waits for the end of that.
    void start_pinning();
    void settle();

private:
    PartRunner(const Environment& environment, const DevicePart& part) : kernels_(environment.kernels), driver_(environment.kernels.driver()),
                                                                        transformer_(environment.transformer), pool_(environment.pool), part_(part),
                                                                        device_(environment.device),
                                                                        changed_(environment.changed), begin_(environment.begin),
                                                                        copier_(environment.kernels.driver()) {}
    [[nodiscard]] Result<> create_memory(const Environment& environment, const Placement& placement, Uploader& uploader);
    [[nodiscard]] Result<> create_experts(const Environment& environment, std::int64_t chunk, Uploader& uploader);
    void list_hand_overs();
    // The output is the embedding's matrix too: it stays where layer 0 leaves.
    [[nodiscard]] bool embedding_stays() const noexcept { return part_.output && transformer_.output.data == transformer_.embedding.data; }

    // While it lives the bus belongs to copies to the device: steps read no experts over it.
    class Growing {
    public:
        explicit Growing(PartRunner& runner) : runner_(runner) { runner_.growing_.store(true, std::memory_order_relaxed); }
        ~Growing() { runner_.growing_.store(false, std::memory_order_relaxed); }
        Growing(const Growing&) = delete;
        Growing& operator=(const Growing&) = delete;

    private:
        PartRunner& runner_;
    };
    std::atomic<bool> growing_{false};

    // A batch as the kernels see it.
    struct Step {
        std::int64_t tokens = 0;
        std::int64_t sessions = 0;
        std::int64_t chunks = 0;   // a bound of what a token sees
        bool complete = true;      // every expert is on the device: nothing is handed over
        std::shared_ptr<const ExpertResidency::Here> here;
        const std::int32_t* ids = nullptr;
        const std::int32_t* rows = nullptr;  // whose logits are wanted
        const std::uint32_t* bus_share = nullptr;
        const float* cosine = nullptr;
        const float* sine = nullptr;
        kernels::Places places{};
    };
    [[nodiscard]] Step step_for(const PartBatch& batch) const noexcept;
    // Neighbouring positions of one session in a batch that is no graph: attention is each one's as if it were alone.
    struct Stretch {
        std::int64_t begin = 0;    // its first token in the batch
        std::int64_t tokens = 0;
        std::int64_t chunks = 0;   // as in Step
    };
    std::vector<Stretch> stretches_;
    void find_stretches(const PartBatch& batch);
    [[nodiscard]] Result<> send(const PartBatch& batch, const Step& step, std::span<const std::int32_t> rows, bool with_ids);
    [[nodiscard]] Result<> replay(const Step& step, Tail tail, std::size_t rows);  // with the gate
    [[nodiscard]] Result<> gated_replay(const Step& step, Tail tail, std::size_t rows);
    [[nodiscard]] Result<> capture(const Step& step, Tail tail, std::size_t rows);  // where that was not done yet
    [[nodiscard]] Step as_replayed(const Step& asked) const;
    void capture_ahead(const Step& asked, Tail tail, std::size_t rows);
    [[nodiscard]] std::int64_t graph_chunks(std::int64_t chunks) const noexcept;  // that the graph for so many sees
    // captured: for a graph, where nothing waits for the host.
    [[nodiscard]] Result<> enqueue_all(const Step& step, Tail tail, std::size_t rows, bool captured, const std::stop_token& stop);
    std::size_t look_ahead(std::size_t i, std::span<kernels::Ahead, kernels::kMostAhead> ahead) const noexcept;
    [[nodiscard]] Result<> attention(const DeviceLayer& layer, std::size_t i, const Step& step, bool captured);
    [[nodiscard]] Result<> feed_forward(const DeviceLayer& layer, const DeviceDense& block, const Step& step, bool captured);
    [[nodiscard]] Result<> feed_forward(const DeviceLayer& layer, const DeviceMixture& block, const Step& step, bool captured);
    [[nodiscard]] bool chooses_later(const DeviceMixture& block, const Step& step) const noexcept;
    [[nodiscard]] Result<> route(const DeviceLayer& layer, const DeviceMixture& block, const Step& step);
    // chosen: scratch_.chosen, or scratch_.placed.
    [[nodiscard]] Result<> few_experts(const DeviceMixture& block, const Step& step, std::int32_t* chosen, bool added);
    // streamed: missing ones too, in the order gates with ups, downs.
    [[nodiscard]] Result<> many_experts(const DeviceMixture& block, const Step& step, std::span<const ExpertStream::Matrix> streamed);
    // What of the layer would have to be streamed; empty where the processor is the better choice, or the only one.
    [[nodiscard]] std::vector<ExpertStream::Matrix> streamed(const DeviceMixture& block, const Step& step) const;
    [[nodiscard]] Result<> output(const Step& step, Tail tail, std::size_t rows);

    struct Target {
        const DeviceLinear* linear;
        float* y;
        bool add = false;
    };
    // Products of the rows x: [tokens, columns of the matrices], normed first where norm is there.
    [[nodiscard]] Result<> multiply(const float* x, const float* norm, std::int64_t tokens, std::span<const Target> targets, bool swiglu = false);
    // The two halves of that for several tokens: the forms of the rows (of those named by `which`, where it is there), and the products.
    [[nodiscard]] Result<> prepare(const float* x, const float* norm, std::int64_t rows, std::int64_t n, std::uint32_t forms, float* out,
                                   const std::int32_t* which = nullptr);
    [[nodiscard]] Result<> products(const float* x, std::int64_t tokens, std::span<const Target> targets, bool swiglu);
    // What the experts of the layer before have left to be added to the residual stream: the next prepare() of it does that.
    std::optional<kernels::CombineArguments> uncombined_;
    // gate and up of the scratch to the form that the next product reads.
    [[nodiscard]] Result<> swiglu(std::int64_t rows, std::int64_t n, std::uint32_t form);
    [[nodiscard]] kernels::KvPool kv_pool(std::size_t layer) const noexcept;
    [[nodiscard]] kernels::Queue queue() const noexcept { return {kernels_, stream_.get()}; }

    kernels::Kernels& kernels_;
    gpu::Driver& driver_;
    const Transformer& transformer_;
    ThreadPool& pool_;
    DevicePart part_;
    std::int64_t chunk_ = 0;
    std::int64_t context_ = 0;
    std::int64_t attention_rows_ = 0;
    int device_ = 0;
    std::function<void()> changed_;
    void count();
    std::atomic<std::uint64_t> held_{0};
    std::uint64_t plain_bytes_ = 0;  // of what is not in segments
    std::int64_t begin_ = 0;

    std::atomic<std::uint64_t> steps_{0};

    gpu::Stream stream_;
    residency::StepGate gate_;
    std::unique_ptr<vmm::SegmentPool> segments_;  // null: nothing moves
    residency::Copier copier_;
    DeviceWeights weights_;
    Scratch scratch_;
    KvMemory kv_;

    // The step's numbers: ids, positions, tables, row numbers, the bus' share of missing experts, cosines, sines, pages, written by the host into one of two pinned blocks and
    // copied in one piece.
    gpu::Buffer block_;
    struct HostBlock {
        gpu::PinnedBuffer memory;
        gpu::Event copied;
        bool used = false;
    };
    std::array<HostBlock, 2> host_blocks_;
    std::size_t next_block_ = 0;
    [[nodiscard]] std::uint64_t block_bytes(std::int64_t tokens, std::int64_t sessions) const noexcept;
    std::int64_t pages_stride_ = 0;

    gpu::PinnedBuffer x_;        // [chunk, embedding]: from and to other parts; only where there are any
    gpu::PinnedBuffer logits_;   // [kLogitRows, vocabulary]; or as Scratch::likeliest
    std::size_t likeliest_rows_ = 0;
    gpu::PinnedBuffer choices_;  // int32 [kInFlight]
    std::array<gpu::Event, kInFlight> chosen_;
    std::size_t first_choice_ = 0;
    std::size_t choices_in_flight_ = 0;
    std::array<bool, kInFlight> choice_waits_{};  // the step waits for the processor
    bool waits_for_host_ = false;                 // the last one that was enqueued does
    std::uint32_t handed_over_count_ = 0;         // hand-overs that were enqueued
    std::array<std::uint32_t, kInFlight> choice_hand_overs_{};  // the same up to that step
    std::array<gpu::Event, 4> layer_done_;
    gpu::Event handed_over_event_;
    static constexpr std::int32_t kFirstRow[] = {0};

    using GraphKey = std::tuple<std::int64_t, std::int64_t, Tail, std::size_t, bool>;  // tokens, chunks, tail, rows of logits, complete
    std::map<GraphKey, gpu::GraphExec> graphs_;

    std::unique_ptr<ExpertResidency> experts_;    // of a mixture
    std::unique_ptr<HandOverMemory> hand_over_;   // where experts are missing, or may be
    std::unique_ptr<ExpertStream> stream_experts_;  // for large batches, through the room of the logits
    std::unique_ptr<MissingExperts> missing_;     // for those that are not streamed
    std::vector<ExpertWorker::Layer> handed_over_;  // the layers with experts
    std::unique_ptr<ExpertWorker> worker_;        // for captured steps; ends before what it uses
    std::mutex settling_;
    std::jthread pinning_;                        // the same
};

}  // namespace headroom::model
