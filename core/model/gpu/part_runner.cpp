#include "core/model/gpu/part_runner.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/base/bytes.h"

namespace headroom::model {
namespace {

// Where the arrays of a step's block lie. The ids stand first: a chained step leaves them as the step before wrote them.
struct BlockLayout {
    std::uint64_t ids = 0, positions = 0, tables = 0, rows = 0, share = 0, cosine = 0, sine = 0, pages = 0, bytes = 0;

    BlockLayout(std::int64_t tokens, std::int64_t sessions, std::int64_t half, std::int64_t stride) {
        const auto add = [this](std::int64_t count) {
            const std::uint64_t at = bytes;
            bytes += (static_cast<std::uint64_t>(count) * 4 + 63) / 64 * 64;
            return at;
        };
        ids = add(tokens);
        positions = add(tokens);
        tables = add(tokens);
        rows = add(kLogitRows);
        share = add(1);
        cosine = add(tokens * half);
        sine = add(tokens * half);
        pages = add(sessions * stride);
    }
};

// Waits for a step that waits for experts: the driver's own waiting would take a core from those who compute them.
template <class Done>
Result<> poll(Done done) {
    for (;;) {
        HR_TRY(const bool ended, done());
        if (ended) return {};
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

}  // namespace

std::uint64_t PartRunner::block_bytes(std::int64_t tokens, std::int64_t sessions) const noexcept {
    return BlockLayout(tokens, sessions, transformer_.rope.half(), pages_stride_).bytes;
}

Result<std::unique_ptr<PartRunner>> PartRunner::create(const Environment& environment, const Placement& placement, const DevicePart& part,
                                                       std::int64_t context, Uploader& uploader) {
    std::unique_ptr<PartRunner> runner(new PartRunner(environment, part));
    gpu::Driver& driver = runner->driver_;
    const Transformer& transformer = environment.transformer;
    const std::int64_t width = transformer.hyperparameters.embedding;
    runner->chunk_ = placement.chunk;
    runner->context_ = context;
    runner->attention_rows_ = attention_rows_limit(transformer, context);
    runner->pages_stride_ = (context + cpu::kPagePositions - 1) / cpu::kPagePositions;
    HR_TRY(runner->stream_, gpu::make_stream(driver));

    const ScratchPlan plan{.tokens = placement.chunk, .context = context, .logits = part.output};
    HR_TRY(runner->scratch_, Scratch::create(driver, transformer, plan));
    const std::int64_t together = std::max(placement.chunk, kLogitRows);
    const std::uint64_t block = runner->block_bytes(together, kLogitRows);
    HR_TRY(runner->block_, gpu::Buffer::create(driver, block));
    for (HostBlock& host : runner->host_blocks_) {
        HR_TRY(host.memory, gpu::PinnedBuffer::create(driver, block));
        HR_TRY(host.copied, gpu::make_event(driver));
    }
    if (!part.embedding || !part.output || environment.verdict != nullptr) {
        HR_TRY(runner->x_, gpu::PinnedBuffer::create(driver, static_cast<std::uint64_t>(placement.chunk * width) * sizeof(float)));
    }
    if (part.output) {
        HR_TRY(runner->logits_, gpu::PinnedBuffer::create(driver, static_cast<std::uint64_t>(kLogitRows * transformer.vocabulary) * sizeof(float)));
    }
    HR_TRY(runner->choices_, gpu::PinnedBuffer::create(driver, kInFlight * sizeof(std::int32_t)));
    for (gpu::Event& event : runner->chosen_) {
        HR_TRY(event, gpu::make_event(driver));
    }
    for (gpu::Event& event : runner->layer_done_) {
        HR_TRY(event, gpu::make_event(driver));
    }
    HR_TRY(runner->handed_over_event_, gpu::make_event(driver));

    HR_CHECK(runner->create_memory(environment, placement, uploader));
    return runner;
}

Result<> PartRunner::create_memory(const Environment& environment, const Placement& placement, Uploader& uploader) {
    if (environment.verdict != nullptr) {
        segments_ = std::make_unique<vmm::SegmentPool>(driver_, environment.device, environment.quiet);
        HR_CHECK(copier_.start());
    }
    HR_TRY(weights_, describe_weights({.driver = driver_, .pool = segments_.get(), .verdict = environment.verdict}, transformer_, part_));
    KvShape kv = transformer_.kv_shape();
    kv.layers = 1;
    HR_TRY(kv_, KvMemory::create(driver_, segments_.get(), environment.verdict, kv, weights_.layers.size(), placement.kv_positions / cpu::kPagePositions,
                                 pages_stride_));
    HR_CHECK(kv_.extend(static_cast<std::size_t>(begin_), environment.kv_pages));
    const auto upload = [&](gpu::DevicePointer to, const void* from, std::uint64_t bytes) { return uploader.copy(to, from, bytes); };
    if (begin_ == 0 || embedding_stays()) HR_CHECK(weights_.embedding_memory.load(upload));
    HR_CHECK(weights_.output_memory.load(upload));
    for (auto i = static_cast<std::size_t>(begin_); i < weights_.layers.size(); ++i) HR_CHECK(weights_.layers[i].memory.load(upload));
    HR_CHECK(uploader.finish());
    plain_bytes_ = segments_ ? scratch_bytes() : part_.bytes;
    count();
    HR_CHECK(create_experts(environment, placement.chunk, uploader));
    count();
    return {};
}

Result<> PartRunner::create_experts(const Environment& environment, std::int64_t chunk, Uploader& uploader) {
    std::int64_t used = 0, experts = 0;
    for (const DeviceLayer& layer : weights_.layers) {
        const auto* mixture = std::get_if<DeviceMixture>(&layer.feed_forward);
        if (mixture == nullptr) continue;
        used = std::max<std::int64_t>(used, mixture->shape.used);
        experts = std::max<std::int64_t>(experts, mixture->shape.experts);
    }
    if (used == 0) return {};
    const std::uint64_t room = begin_ == 0 ? environment.budget - std::min(environment.budget, bytes()) : 0;
    HR_TRY(experts_, ExpertResidency::create({.kernels = kernels_, .gate = gate_, .steps = stream_.get(), .transformer = transformer_, .part = part_,
                                              .copier = copier_, .changed = [this] { count(); }, .pool = segments_.get(),
                                              .verdict = environment.verdict},
                                             room, uploader));
    for (DeviceLayer& layer : weights_.layers) {
        if (auto* mixture = std::get_if<DeviceMixture>(&layer.feed_forward)) mixture->table = experts_->table(mixture->layer);
    }
    list_hand_overs();
    if (!segments_ && experts_->here()->all) return {};
    hand_over_ = std::make_unique<HandOverMemory>();
    HR_TRY(*hand_over_, HandOverMemory::create(driver_, chunk, transformer_.hyperparameters.embedding, used));
    missing_ = std::make_unique<MissingExperts>(pool_, *hand_over_);
    if (segments_ && part_.output) {
        const std::uint64_t bytes_there = static_cast<std::uint64_t>(kLogitRows * transformer_.vocabulary) * sizeof(float);
        HR_TRY(stream_experts_, ExpertStream::create(kernels_, copier_.pinned(), reinterpret_cast<gpu::DevicePointer>(scratch_.logits), bytes_there, experts));
    }
    worker_ = std::make_unique<ExpertWorker>(pool_, *hand_over_, environment.over_bus);
    return {};
}

PartRunner::~PartRunner() {
    pinning_ = {};
    if (worker_ && choices_in_flight_ > 0) worker_->abandon();
    if (stream_) (void)driver_.synchronize_stream(stream_.get());
}

std::span<float> PartRunner::x_rows(std::int64_t tokens) noexcept {
    return {x_.as<float>(), static_cast<std::size_t>(tokens * transformer_.hyperparameters.embedding)};
}

std::span<float> PartRunner::logits_row(std::size_t i) noexcept {
    const auto vocabulary = static_cast<std::size_t>(transformer_.vocabulary);
    return {logits_.as<float>() + i * vocabulary, vocabulary};
}

void PartRunner::likeliest_row(std::size_t i, std::int32_t count, std::vector<Likely>& out) {
    const auto each = static_cast<std::size_t>(count);
    const float* values = logits_.as<float>() + i * each;
    const std::int32_t* ids = logits_.as<std::int32_t>() + (likeliest_rows_ + i) * each;
    out.resize(each);
    for (std::size_t j = 0; j < each; ++j) out[j] = {.token = ids[j], .logit = values[j]};
}

PartRunner::Step PartRunner::step_for(const PartBatch& batch) const noexcept {
    Step step;
    step.tokens = static_cast<std::int64_t>(batch.positions.size());
    step.sessions = static_cast<std::int64_t>(batch.pages.size());
    step.chunks = *std::ranges::max_element(batch.positions) / cpu::kPagePositions + 1;
    const BlockLayout layout(step.tokens, step.sessions, transformer_.rope.half(), pages_stride_);
    step.ids = block_.as<std::int32_t>(layout.ids);
    step.rows = block_.as<std::int32_t>(layout.rows);
    step.bus_share = block_.as<std::uint32_t>(layout.share);
    step.cosine = block_.as<float>(layout.cosine);
    step.sine = block_.as<float>(layout.sine);
    step.places = {.positions = block_.as<std::int32_t>(layout.positions), .tables = block_.as<std::int32_t>(layout.tables),
                   .pages = block_.as<std::int32_t>(layout.pages), .pages_stride = static_cast<std::int32_t>(pages_stride_)};
    return step;
}

void PartRunner::find_stretches(const PartBatch& batch) {
    stretches_.clear();
    for (std::size_t t = 0; t < batch.tables.size(); ++t) {
        if (t == 0 || batch.tables[t] != batch.tables[t - 1]) stretches_.push_back({.begin = static_cast<std::int64_t>(t)});
        ++stretches_.back().tokens;
        stretches_.back().chunks = batch.positions[t] / cpu::kPagePositions + 1;
    }
}

// Writes the step's numbers into a pinned block and enqueues its copy.
Result<> PartRunner::send(const PartBatch& batch, const Step& step, std::span<const std::int32_t> rows, bool with_ids) {
    const std::int64_t half = transformer_.rope.half();
    const BlockLayout layout(step.tokens, step.sessions, half, pages_stride_);
    HostBlock& host = host_blocks_[next_block_];
    next_block_ = (next_block_ + 1) % host_blocks_.size();
    if (host.used) HR_CHECK(driver_.synchronize_event(host.copied.get()));
    if (with_ids && !batch.tokens.empty()) std::ranges::copy(batch.tokens, host.memory.as<std::int32_t>(layout.ids));
    std::ranges::transform(batch.positions, host.memory.as<std::int32_t>(layout.positions), [](std::int64_t at) { return static_cast<std::int32_t>(at); });
    std::ranges::copy(batch.tables, host.memory.as<std::int32_t>(layout.tables));
    std::ranges::copy(rows, host.memory.as<std::int32_t>(layout.rows));
    *host.memory.as<std::uint32_t>(layout.share) = worker_ && !growing_.load(std::memory_order_relaxed) ? worker_->bus_share() : 0;
    const auto angles = [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t t = begin; t < end; ++t) {
            transformer_.rope.fill(batch.positions[static_cast<std::size_t>(t)], 1, host.memory.as<float>(layout.cosine) + t * half,
                                   host.memory.as<float>(layout.sine) + t * half);
        }
    };
    if (step.tokens > kLogitRows) {
        pool_.parallel_for(step.tokens, 16, angles);
    } else {
        angles(0, step.tokens, 0);  // the pool may be at work for the step before
    }
    for (std::size_t s = 0; s < batch.pages.size(); ++s) {
        std::ranges::copy(batch.pages[s], host.memory.as<std::int32_t>(layout.pages) + static_cast<std::int64_t>(s) * pages_stride_);
    }
    const std::uint64_t skipped = with_ids ? 0 : layout.positions;
    HR_CHECK(kernels::copy_words(queue(), block_.address() + skipped, host.memory.on_device(skipped), layout.bytes - skipped));
    HR_CHECK(driver_.record_event(host.copied.get(), stream_.get()));
    host.used = true;
    return {};
}

Result<> PartRunner::run(const PartBatch& batch, Tail tail, std::span<const std::int32_t> rows, const std::stop_token& stop) {
    HR_CHECK(drain());
    const Step step = step_for(batch);
    HR_CHECK(send(batch, step, rows, true));
    const std::uint64_t x_bytes = static_cast<std::uint64_t>(step.tokens * transformer_.hyperparameters.embedding) * sizeof(float);
    if (!batch.x.empty()) {
        if (batch.x.data() != x_.as<float>()) std::memcpy(x_.as<>(), batch.x.data(), x_bytes);
        HR_CHECK(driver_.copy_to_device(reinterpret_cast<gpu::DevicePointer>(scratch_.x), x_.as<>(), x_bytes, stream_.get()));
    }
    // Steps that come again and again: one token, or one each of several sessions.
    const bool repeats = step.tokens == 1 || step.sessions == step.tokens;
    if (!repeats) find_stretches(batch);
    const Result<> enqueued = repeats ? gated_replay(step, tail, rows.size()) : enqueue_all(step, tail, rows.size(), false, stop);
    if (enqueued && tail.kind == PartTail::rows) {
        HR_CHECK(driver_.copy_to_host(x_.as<>(), reinterpret_cast<gpu::DevicePointer>(scratch_.x), x_bytes, stream_.get()));
    }
    if (enqueued && tail.kind == PartTail::logits && !rows.empty()) {
        HR_CHECK(driver_.copy_to_host(logits_.as<>(), reinterpret_cast<gpu::DevicePointer>(scratch_.logits),
                                      rows.size() * static_cast<std::uint64_t>(transformer_.vocabulary) * sizeof(float), stream_.get()));
    }
    if (enqueued && tail.kind == PartTail::likeliest && !rows.empty()) {
        HR_CHECK(driver_.copy_to_host(logits_.as<>(), reinterpret_cast<gpu::DevicePointer>(scratch_.likeliest),
                                      rows.size() * static_cast<std::uint64_t>(tail.count) * sizeof(Likely), stream_.get()));
        likeliest_rows_ = rows.size();
    }
    if (enqueued && tail.kind == PartTail::choice && !rows.empty()) {
        HR_CHECK(driver_.copy_to_host(logits_.as<>(), reinterpret_cast<gpu::DevicePointer>(step.ids), rows.size() * sizeof(std::int32_t), stream_.get()));
    }
    if (enqueued && repeats) capture_ahead(step, tail, rows.size());
    const Result<> done = repeats && waits_for_host_ ? poll([&] { return driver_.stream_done(stream_.get()); }) : driver_.synchronize_stream(stream_.get());
    if (done && worker_) worker_->passed(handed_over_count_);
    HR_CHECK(enqueued);
    return done;
}

// The step as its graph is captured now; with the gate.
PartRunner::Step PartRunner::as_replayed(const Step& asked) const {
    Step step = asked;
    if (experts_) {
        step.here = experts_->here();
        step.complete = step.here->all;
    }
    step.chunks = graph_chunks(asked.chunks);
    return step;
}

Result<> PartRunner::replay(const Step& asked, Tail tail, std::size_t rows) {
    const Step step = as_replayed(asked);
    HR_CHECK(capture(step, tail, rows));
    const gpu::GraphExec& graph = graphs_[{step.tokens, step.chunks, tail, rows, step.complete}];
    if (!step.complete) worker_->await(handed_over_, step.tokens, step.here);
    const Result<> launched = driver_.launch_graph(graph.get(), stream_.get());
    if (!launched && !step.complete) worker_->abandon();
    waits_for_host_ = !step.complete;
    if (!step.complete) handed_over_count_ += static_cast<std::uint32_t>(handed_over_.size());
    steps_.fetch_add(1, std::memory_order_relaxed);
    return launched;
}

std::int64_t PartRunner::graph_chunks(std::int64_t chunks) const noexcept {
    return std::min<std::int64_t>(static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(chunks))), pages_stride_);
}

Result<> PartRunner::capture(const Step& step, Tail tail, std::size_t rows) {
    gpu::GraphExec& graph = graphs_[{step.tokens, step.chunks, tail, rows, step.complete}];
    if (graph) return {};
    HR_TRY(graph, gpu::capture(driver_, stream_.get(), [&] { return enqueue_all(step, tail, rows, true, {}); }));
    return {};
}

// Capturing takes longer than a step: what steps are going to need is captured while the device is at work with one, one graph at a time. That
// is the other way that this step may go, with all experts on the device or without, which changes in the middle of an answer; and both ways
// of one that sees twice as much. What fails here is tried again when it is needed.
void PartRunner::capture_ahead(const Step& asked, Tail tail, std::size_t rows) {
    const residency::StepGate::Step gated(gate_);
    const Step now = as_replayed(asked);
    for (const std::int64_t chunks : {now.chunks, graph_chunks(now.chunks + 1)}) {
        for (const bool complete : {now.complete, !now.complete}) {
            if (complete != now.complete && !(experts_ && segments_)) continue;
            Step step = now;
            step.chunks = chunks;
            step.complete = complete;
            gpu::GraphExec& graph = graphs_[{step.tokens, chunks, tail, rows, complete}];
            if (graph) continue;
            if (capture(step, tail, rows)) (void)driver_.prepare_graph(graph.get(), stream_.get());
            return;
        }
    }
}

Result<> PartRunner::gated_replay(const Step& step, Tail tail, std::size_t rows) {
    const residency::StepGate::Step gated(gate_);
    return replay(step, tail, rows);
}

Result<> PartRunner::enqueue_choice(const PartBatch& batch, bool chained) {
    const Step step = step_for(batch);
    if (choices_in_flight_ == kInFlight) return fail(ErrorKind::internal, "Too many decode steps were enqueued");
    HR_CHECK(send(batch, step, std::span(kFirstRow), !chained));
    HR_CHECK(gated_replay(step, {PartTail::choice}, 1));
    const std::size_t slot = (first_choice_ + choices_in_flight_) % kInFlight;
    choice_waits_[slot] = waits_for_host_;
    choice_hand_overs_[slot] = handed_over_count_;
    HR_CHECK(driver_.copy_to_host(choices_.as<std::int32_t>() + slot, reinterpret_cast<gpu::DevicePointer>(step.ids), sizeof(std::int32_t),
                                  stream_.get()));
    HR_CHECK(driver_.record_event(chosen_[slot].get(), stream_.get()));
    ++choices_in_flight_;
    // The device has enough to do meanwhile; and never two graphs between two tokens.
    if (choices_in_flight_ == kInFlight) capture_ahead(step, {PartTail::choice}, 1);
    return {};
}

Result<std::int32_t> PartRunner::await_choice() {
    if (choices_in_flight_ == 0) return fail(ErrorKind::internal, "No decode step was enqueued");
    const std::size_t slot = first_choice_;
    first_choice_ = (first_choice_ + 1) % kInFlight;
    --choices_in_flight_;
    if (choice_waits_[slot]) {
        HR_CHECK(poll([&] { return driver_.event_done(chosen_[slot].get()); }));
    } else {
        HR_CHECK(driver_.synchronize_event(chosen_[slot].get()));
    }
    if (worker_) worker_->passed(choice_hand_overs_[slot]);
    return choices_.as<std::int32_t>()[slot];
}

Result<> PartRunner::drain() {
    if (choices_in_flight_ == 0) return {};
    choices_in_flight_ = 0;
    HR_CHECK(driver_.synchronize_stream(stream_.get()));
    if (worker_) worker_->passed(handed_over_count_);
    return {};
}

}  // namespace headroom::model
