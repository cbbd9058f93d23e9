// The changes of what lies on a device: giving and taking.

#include <algorithm>
#include <chrono>
#include <map>

#include "core/base/bytes.h"
#include "core/model/gpu/expert_residency.h"

namespace headroom::model {
namespace {

using residency::Block;
using residency::BlockStore;
using residency::ResizeReport;

constexpr std::uint64_t kPieceBytes = 256 * MiB;   // of growing, published together
constexpr std::size_t kPiecesAtOnce = 2;           // one is copied while the next is mapped
constexpr std::uint64_t kMostMoved = 1 * GiB;      // by one change: a step waits for it, about a millisecond

constexpr std::uint64_t kMostAdapted = 128 * MiB;  // at a time: 3 ms of the bus
constexpr float kHotter = 1.5F;                    // what comes, against what goes: choices are noisy
constexpr float kLeastHeat = 2;

class Timer {
public:
    explicit Timer(double& sum) : sum_(sum) {}
    ~Timer() { sum_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count(); }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

private:
    double& sum_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void note(ResizeReport& report, const Error& error) {
    if (report.limited_by.empty()) report.limited_by = error.message;
}

}  // namespace

Result<> ExpertResidency::unpublish(const BlockStore::Leaving& leaving, ResizeReport& report) {
    const std::vector<std::uint8_t> before = published_;
    for (const Block block : leaving.out) published_[block] = 0;
    for (const auto& move : leaving.moves) published_[move.block] = 0;
    if (auto written = write_table(); !written) {
        published_ = before;
        return written;
    }
    for (const Block block : leaving.out) store_->remove(block);
    bool moved = false, stopped = false;
    for (const auto& move : leaving.moves) {
        const gpu::DevicePointer from = store_->address(move.block);
        store_->remove(move.block);
        if (stopped) continue;
        if (auto copied = driver_.copy_on_device(store_->slot_address(move.to), from, store_->block_bytes(move.block), environment_.steps); !copied) {
            note(report, copied.error());
            stopped = true;
            continue;
        }
        store_->place(move.block, move.to);
        published_[move.block] = 1;
        moved = true;
    }
    if (moved) {
        if (auto written = write_table(); !written) {
            note(report, written.error());
            for (const auto& move : leaving.moves) {
                published_[move.block] = 0;
                store_->remove(move.block);
            }
        }
    }
    renew_snapshot();
    return {};
}

void ExpertResidency::give(std::uint64_t bytes, ResizeReport& report) {
    BlockStore::Leaving leaving;
    {
        const Timer timer(report.moving_ms);
        read_heat();
        leaving = store_->plan_leaving(bytes, heat_, kMostMoved);
    }
    Result<> fence;
    {
        const Timer timer(report.waiting_ms);
        const residency::StepGate::Change change(environment_.gate);
        if (auto done = unpublish(leaving, report); !done) {
            note(report, done.error());
            return;
        }
        fence = record_fence();
    }
    {
        const Timer timer(report.waiting_ms);
        if (fence) fence = residency::await_event(driver_, fence_.get());
    }
    if (!fence) {  // what left the table stays mapped: steps may still read it
        note(report, fence.error());
        count();
        return;
    }
    release_empty(report);
}

void ExpertResidency::release_empty(ResizeReport& report) {
    const Timer timer(report.releasing_ms);
    std::optional<Error> error;
    store_->unmap(store_->empty_shelves(), error);
    if (error) note(report, *error);
    if (auto trimmed = environment_.pool->trim(); !trimmed) note(report, trimmed.error());
    count();
}

// Gives the blocks their slots and enqueues their copies; on failure they have none, and nothing is on its way.
Result<> ExpertResidency::copy_piece(std::span<const std::pair<Block, residency::Slot>> blocks, Piece& piece, ResizeReport& report) {
    const auto copy_all = [&]() -> Result<> {
        for (const auto& [block, slot] : blocks) {
            if (!store_->usable(slot)) continue;
            store_->place(block, slot);
            piece.blocks.push_back(block);
            HR_CHECK(copy_block(block, store_->slot_address(slot), piece.blocks.size() % residency::Copier::kStreams));
            report.bytes_copied += store_->block_bytes(block);
        }
        HR_TRY(piece.copied, copier_.mark());
        return {};
    };
    const auto copied = copy_all();
    if (copied) return {};
    (void)copier_.await_all();
    for (const Block block : piece.blocks) store_->remove(block);
    return copied;
}

bool ExpertResidency::begin_piece(std::span<const Block>& wanted, std::uint64_t& room, std::deque<Piece>& pieces, ResizeReport& report) {
    const auto coming = store_->plan_coming(wanted, kPieceBytes, room);
    wanted = wanted.subspan(coming.looked_at);
    if (coming.blocks.empty()) return false;
    std::optional<Error> error;
    {
        const Timer timer(report.releasing_ms);
        (void)store_->map(coming.shelves, error);
        room -= std::min(room, coming.mapping);
    }
    if (error) note(report, *error);
    Piece piece;
    if (const auto copied = copy_piece(coming.blocks, piece, report); !copied) {
        note(report, copied.error());
        return false;
    }
    if (!piece.blocks.empty()) pieces.push_back(std::move(piece));
    return !error;
}

Result<> ExpertResidency::publish(const Piece& piece) {
    const residency::StepGate::Change change(environment_.gate);
    for (const Block block : piece.blocks) published_[block] = 1;
    const auto written = write_table();
    if (!written) {
        for (const Block block : piece.blocks) published_[block] = 0;
        return written;
    }
    renew_snapshot();
    count();
    return {};
}

void ExpertResidency::take(std::uint64_t room, ResizeReport& report, const std::function<bool()>& superseded) {
    read_heat();
    const std::vector<Block> all = missing_hottest_first();
    std::span<const Block> wanted = all;
    std::deque<Piece> pieces;
    bool more = true, failed = false;
    while (more || !pieces.empty()) {
        while (more && pieces.size() < kPiecesAtOnce) {
            report.superseded = superseded();
            more = !report.superseded && begin_piece(wanted, room, pieces, report);
        }
        if (pieces.empty()) break;
        const Piece& piece = pieces.front();
        const auto arrive = [&]() -> Result<> {
            const Timer timer(report.moving_ms);
            HR_CHECK(copier_.await(piece.copied));
            return publish(piece);
        };
        if (const auto arrived = arrive(); !arrived) {
            note(report, arrived.error());
            for (const Block block : piece.blocks) store_->remove(block);
            more = false;
            failed = true;
        }
        pieces.pop_front();
    }
    if (failed || !report.limited_by.empty()) {
        // Nothing is on its way into a shelf that stayed empty.
        if (!copier_.await_all()) return count();
        release_empty(report);
    }
    count();
}

void ExpertResidency::adapt(ResizeReport& report) {
    read_heat();
    if (here_->all) return;
    std::vector<Block> cold;
    for (Block block = 0; block < published_.size(); ++block) {
        if (published_[block] != 0) cold.push_back(block);
    }
    std::ranges::stable_sort(cold, [&](Block a, Block b) { return heat_[a] < heat_[b]; });
    // The hottest that are missing against the coldest of their size.
    std::vector<std::pair<Block, Block>> changes;
    std::uint64_t bytes = 0;
    std::map<std::uint64_t, std::size_t> looked_at;  // of `cold`, by size
    for (const Block hot : missing_hottest_first()) {
        if (bytes >= kMostAdapted || heat_[hot] < kLeastHeat) break;
        std::size_t& i = looked_at[store_->block_bytes(hot)];
        while (i < cold.size() && store_->block_bytes(cold[i]) != store_->block_bytes(hot)) ++i;
        if (i == cold.size() || heat_[hot] < kHotter * heat_[cold[i]] + kLeastHeat) continue;
        changes.emplace_back(hot, cold[i++]);
        bytes += store_->block_bytes(hot);
    }
    if (changes.empty()) return;

    Piece outgoing;
    for (const auto& [hot, old] : changes) outgoing.blocks.push_back(old);
    Result<> fence;
    {
        const residency::StepGate::Change change(environment_.gate);
        for (const Block old : outgoing.blocks) published_[old] = 0;
        if (auto written = write_table(); !written) {
            for (const Block old : outgoing.blocks) published_[old] = 1;
            return note(report, written.error());
        }
        renew_snapshot();
        fence = record_fence();
    }
    if (fence) fence = residency::await_event(driver_, fence_.get());
    if (!fence) {  // they are where they were
        note(report, fence.error());
        if (const auto again = publish(outgoing); !again) note(report, again.error());
        return;
    }
    std::vector<std::pair<Block, residency::Slot>> coming;
    for (const auto& [hot, old] : changes) {
        coming.emplace_back(hot, store_->slot_of(old));
        store_->remove(old);
    }
    Piece piece;
    const auto arrive = [&]() -> Result<> {
        HR_CHECK(copy_piece(coming, piece, report));
        HR_CHECK(copier_.await(piece.copied));
        return publish(piece);
    };
    if (const auto arrived = arrive(); !arrived) {
        note(report, arrived.error());
        (void)copier_.await_all();
        for (const Block block : piece.blocks) store_->remove(block);
    }
    count();
}

}  // namespace headroom::model
