#pragma once

// A transformer on one or several GPUs, with the processor's help for what does not fit.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/compute/gpu/kernels.h"
#include "core/model/forward.h"
#include "core/model/gpu/page_pool.h"
#include "core/model/gpu/part_runner.h"
#include "core/model/gpu/placement.h"
#include "core/model/runner.h"
#include "core/residency/resize_report.h"
#include "core/vmm/verdict.h"

namespace headroom::model {

// A device to use. The driver must outlive the runner.
struct GpuTarget {
    gpu::Driver* driver = nullptr;
    gpu::DeviceInfo device;
    std::uint64_t reserve_bytes = 0;   // to leave free for other programs
    std::uint64_t cap_bytes = 0;       // the most to use; 0: no limit
    std::optional<vmm::Verdict> verdict{};  // nothing: the device was not tested, and its memory is allocated the plain way
};

class GpuRunner final : public Runner {
public:
    struct Options {
        const Transformer& transformer;    // must outlive the runner
        ThreadPool& pool;                  // the same
        std::span<const GpuTarget> targets;
        std::int64_t context = 0;          // positions of a session
        UploadProgress progress{};         // bytes that have reached a device
        std::stop_token stop{};
        std::optional<double> over_bus{};      // share of a layer's missing experts that a device reads from memory itself; null: by what steps show (BusShare)
        std::optional<Placement> placement{};  // what goes where, instead of plan_placement's answer: to compare with
    };
    // Places the model by what is free on the devices now, and copies it there. Where memory runs out on the way (another program took
    // some), it begins again with less. A runner without parts (placement().parts is empty) is never made: that is out_of_memory, with a
    // sentence. Errors: also device, unsupported (no kernels for this device), cancelled.
    [[nodiscard]] static Result<std::unique_ptr<GpuRunner>> create(const Options& options);
    ~GpuRunner() override;

    [[nodiscard]] const Placement& placement() const noexcept { return placement_; }
    [[nodiscard]] std::uint64_t device_bytes() const;  // held on all devices

    // What the model holds on a device (an index into Options::targets; a change of it changes no other device). Any thread; cheap.
    [[nodiscard]] residency::Usage usage(std::size_t device) const;
    // Of decode steps since the device was last loaded. Not while it is parked or comes back.
    [[nodiscard]] MissingChoices missing_choices(std::size_t device) const;
    // Makes the model hold at most `budget` bytes on a device, and use what there is up to that: gives memory back to the driver, or takes it
    // and copies blocks there, the hottest first, while steps go on. 0: everything goes, the context too ("park"); steps are then the
    // processor's, and a later budget brings the device back. Any thread but one that steps; calls for one device follow one another.
    // superseded: a newer request is waiting, so growing ends with the piece under way (a fraction of a second).
    // A failure on the way is told in the report (limited_by), and the model goes on with what is there then. Error: unsupported (the
    // device's verdict is not `on`, with its reason; or no layer was dealt to it).
    [[nodiscard]] Result<residency::ResizeReport> resize(std::size_t device, std::uint64_t budget, const std::stop_token& superseded = {});

    // Waits until what create() left to the background is done: copies to the devices run at the speed of the bus from then on.
    void settle();

    [[nodiscard]] Result<std::unique_ptr<Sequence>> create_sequence() override;
    [[nodiscard]] Result<std::unique_ptr<Sequence>> copy_sequence(Sequence& from, std::int64_t positions) override;
    [[nodiscard]] std::int64_t max_tokens() const noexcept override { return max_tokens_; }
    [[nodiscard]] Result<> run(const Piece& piece, LogitsSink sink, std::stop_token stop) override;
    [[nodiscard]] Result<> read_together(std::span<const Piece> pieces, std::stop_token stop) override;
    [[nodiscard]] Result<> run_together(std::span<const Step> steps, LogitsSink sink, std::stop_token stop) override;
    [[nodiscard]] Result<> choose_together(std::span<const Step> steps, ChoiceSink sink, std::stop_token stop) override;
    [[nodiscard]] Result<> look_together(std::span<const Step> steps, std::int32_t count, OutlookSink sink, std::stop_token stop) override;
    [[nodiscard]] Result<> decode_greedily(Sequence& sequence, std::int32_t token, std::int64_t most, FunctionRef<bool(std::int32_t)> next,
                                           std::stop_token stop) override;

private:
    class GpuSequence;
    // A run of layers that lie on one device, but for the first so many of them, which are the processor's now. What changes knows its layers by
    // their numbers in the run, from 0.
    struct Part {
        std::size_t target = 0;
        gpu::Driver* driver = nullptr;
        int device = 0;
        bool elastic = false;              // layers and conversations come and go
        LayerRun layers;
        std::int64_t on_processor = 0;     // with the turn
        std::int64_t chunk = 0;            // tokens that the device computes together; with the turn
        std::shared_ptr<kernels::Kernels> kernels;
        std::unique_ptr<PartRunner> runner;  // null: parked

        [[nodiscard]] std::int64_t size() const noexcept { return layers.last - layers.first; }
        [[nodiscard]] bool on_device() const noexcept { return on_processor < size(); }
    };
    struct Target {
        GpuTarget described;
        std::string reason;        // why it is not elastic
        residency::Usage usage;    // as last told; guarded by usage_mutex_
    };

    explicit GpuRunner(const Options& options) : transformer_(options.transformer), forward_(options.transformer, options.pool), pool_(options.pool) {}
    // loaded: the kernels of each target.
    [[nodiscard]] Result<> place(const Options& options, std::span<const std::uint64_t> budgets,
                                 std::span<const std::shared_ptr<kernels::Kernels>> loaded);
    // Makes its runner for what the plan puts on the device. chunk: as Part::chunk.
    [[nodiscard]] Result<> make_part(Part& part, const DevicePart& plan, std::int64_t chunk, std::uint64_t budget, const UploadProgress& progress,
                                     const std::stop_token& stop);
    [[nodiscard]] static Result<std::shared_ptr<kernels::Kernels>> load_kernels(gpu::Driver& driver, const gpu::DeviceInfo& device);
    // targets: all that are placed together.
    [[nodiscard]] ElasticSizes elastic_sizes(std::span<const GpuTarget* const> targets) const;
    void count_experts();
    [[nodiscard]] std::size_t index_of(const Part& part) const noexcept { return static_cast<std::size_t>(&part - parts_.data()); }

    // With the turn: whether some layers are on a device; whether all are. Tokens that can be computed together.
    [[nodiscard]] bool some_on_devices() const noexcept;
    [[nodiscard]] bool all_on_devices() const noexcept;
    [[nodiscard]] std::int64_t chunk() const noexcept;

    // Steps. Those named _alone have the turn (alone_).
    // Pages for `count` more positions, without the turn; takes room from weights where that is needed.
    [[nodiscard]] Result<> make_room(GpuSequence& sequence, std::int64_t count);
    [[nodiscard]] Result<> grow_kv(std::size_t pages);
    // Has pages made in the background where a conversation that steps, and stands at `position` now, soon needs more than there are: a step
    // that waits for them takes milliseconds more, or as long as the change under way. With the turn.
    void look_ahead(GpuSequence& sequence, std::int64_t position);
    // False: there is no room now for what conversations might not need. Error: a driver call failed.
    [[nodiscard]] Result<bool> make_pages_ahead();
    // Runs the batch through all parts, whose layers are all on devices; the last one's tail is logits of `rows`.
    // hand_out(i, row): step i has been computed and is row `row` of the last part; by_itself(i, logits): it has been computed alone.
    [[nodiscard]] Result<> step_together(std::span<const Step> steps, Tail tail, FunctionRef<void(std::int32_t i, std::size_t row)> hand_out,
                                         LogitsSink by_itself, const std::stop_token& stop);
    // One part's layers on its device: batch.x is the residual stream behind them then, unless it is the last part.
    [[nodiscard]] Result<> run_part(std::size_t number, PartBatch& batch, Tail tail, std::span<const std::int32_t> rows, const std::stop_token& stop);
    [[nodiscard]] Result<> run_parts(PartBatch batch, Tail tail, std::span<const std::int32_t> rows, const std::stop_token& stop);
    [[nodiscard]] Result<> run_few_rows(const Piece& piece, LogitsSink sink, const std::stop_token& stop);
    [[nodiscard]] Result<> run_few_rows_alone(const Piece& piece, LogitsSink sink, const std::stop_token& stop);
    [[nodiscard]] Result<> read_some_alone(std::span<const Piece> some, const std::stop_token& stop);
    [[nodiscard]] Result<> run_some_together(std::span<const Step> some, std::size_t first, Tail tail,
                                             FunctionRef<void(std::int32_t i, std::size_t row)> hand_out, const std::stop_token& stop);
    // Steps that need not wait for the host, one behind the other, until a change waits for the turn. handed_out: grows; goes_on: next said so.
    [[nodiscard]] Result<> chain_alone(GpuSequence& sequence, std::int32_t& token, std::int64_t most, std::int64_t& handed_out, bool& goes_on,
                                       FunctionRef<bool(std::int32_t)> next, const std::stop_token& stop);
    [[nodiscard]] std::int64_t most_together() const noexcept;

    // Keeps steps out. For changes, with changing_; one within another is part of it.
    class Alone;
    // The same where the part's device wants to have no work while memory leaves; elsewhere nothing.
    class Quiet;

    // Changes: with changing_, the part's device current.
    void fit(Part& part, std::uint64_t budget, residency::ResizeReport& report);
    void grow(Part& part, std::uint64_t budget, residency::ResizeReport& report, const std::function<bool()>& superseded);
    void give_layers(Part& part, std::uint64_t budget, residency::ResizeReport& report);
    void take_layers(Part& part, std::uint64_t budget, residency::ResizeReport& report, const std::function<bool()>& superseded);
    // Gives back what no conversation uses. compact: what they use is moved together first.
    void release_unused(Part& part, bool compact, residency::ResizeReport& report);
    [[nodiscard]] Result<> compact_pages();
    // Pages can be used that have memory on every device that has any.
    void back_pages();
    void give_up_pages();
    void park(Part& part, residency::ResizeReport& report);
    void unpark(Part& part, std::uint64_t budget, residency::ResizeReport& report);
    // The keys and values of the layers between, in every conversation. With the turn.
    [[nodiscard]] Result<> layers_to_processor(Part& part, std::int64_t on_processor);
    [[nodiscard]] Result<> layers_to_device(Part& part, std::int64_t on_processor);
    void set_on_processor(Part& part, std::int64_t on_processor);
    void tell_usage(std::size_t part);
    void adapt(const std::stop_token& stop);

    const Transformer& transformer_;
    Forward forward_;      // the layers on the processor
    ThreadPool& pool_;
    Placement placement_;
    std::int64_t context_ = 0;
    std::optional<double> over_bus_;
    std::int64_t max_tokens_ = 0;
    std::unique_ptr<PagePool> pages_;
    std::vector<Part> parts_;
    std::deque<Target> targets_;      // as in Options::targets

    // One after the other takes the turn: steps, and changes of what steps may not see change. Before it: changing_, never after.
    residency::StepGate alone_;
    std::mutex changing_;             // one change at a time
    bool kept_out_ = false;           // a change has the turn; with changing_
    std::atomic<bool> kv_wanted_{false};  // a step waits for pages: growing ends early
    std::atomic<bool> kv_wanted_soon_{false};
    std::mutex background_mutex_;
    std::condition_variable_any background_;  // kv_wanted_soon_ was set
    std::mutex sequences_mutex_;      // their lists of pages and caches, where a change or another thread may be at them
    std::set<GpuSequence*> sequences_;
    mutable std::mutex usage_mutex_;
    std::jthread adapting_;           // ends before what it uses
};

}  // namespace headroom::model
