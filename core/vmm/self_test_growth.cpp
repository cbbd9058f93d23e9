// Steps of the self-test: what changes while the program runs. Several ranges that grow, a segment that is replaced, data beside both.

#include "core/vmm/self_test_steps.h"
#include "core/vmm/verdict_text.h"

namespace headroom::vmm {

// Several ranges of unequal size, each growing at its tail, again and again.
Result<Outcome> SelfTest::ranges() {
    const std::array<std::uint64_t, 3> slots = {4, 3, 5};
    std::vector<std::unique_ptr<Arena>> arenas;
    for (const auto count : slots) {
        HR_TRY(auto one, arena(count * unit(), unit()));
        arenas.push_back(std::move(one));
    }
    for (int round = 0; round < options_.rounds; ++round) {
        for (std::size_t slot = 0; slot < 5; ++slot) {
            for (auto& one : arenas) {
                if (slot < one->slot_count()) HR_CHECK(grow(*one, slot));
            }
        }
        std::vector<Piece> last;
        for (auto& one : arenas) {
            const std::size_t slot = one->slot_count() - 1;
            last.push_back({one->address(slot), one->slot_bytes(slot), static_cast<std::uint32_t>(round * 31) + static_cast<std::uint32_t>(last.size()) * 65537u});
            HR_CHECK(write(last.back(), kernel_.has_value()));
        }
        HR_TRY(auto wrong, look_at(last, kernel_.has_value()));
        if (!wrong.empty()) return failed(std::move(wrong));
        for (auto& one : arenas) {
            for (std::size_t slot = one->slot_count(); slot-- > 0;) HR_CHECK(one->unmap(slot));
        }
        HR_CHECK(pool_.trim());
    }
    for (auto& one : arenas) HR_CHECK(one->close());
    return passed(text::saw_ranges(slots.size(), options_.rounds));
}

// A segment in the middle moves to the end, a new one takes its place, and nothing else changes.
Result<Outcome> SelfTest::replacement() {
    HR_TRY(auto memory, arena(5 * unit(), unit()));
    std::vector<Piece> pieces;
    for (std::size_t slot = 0; slot < 4; ++slot) {
        HR_CHECK(grow(*memory, slot));
        pieces.push_back({memory->address(slot), memory->slot_bytes(slot), 0xC0FFEEu + static_cast<std::uint32_t>(slot)});
        HR_CHECK(write(pieces.back(), kernel_.has_value()));
    }
    HR_CHECK(memory->move(1, 4));
    HR_CHECK(grow(*memory, 1));
    pieces.push_back({memory->address(4), memory->slot_bytes(4), pieces[1].seed});  // the moved one keeps its contents
    pieces[1].seed = 0xBADCABu;
    HR_CHECK(write(pieces[1], kernel_.has_value()));
    for (std::size_t slot = 0; slot < pieces.size(); ++slot) {
        for (const bool by_kernel : {false, true}) {
            if (by_kernel && !kernel_) continue;
            HR_TRY(const auto wrong, differing(pieces[slot], by_kernel));
            if (wrong != 0) return failed(text::replacement_lost(slot));
        }
    }
    HR_CHECK(memory->close());
    return passed(text::saw_replacement());
}

Result<Outcome> SelfTest::canary() {
    HR_TRY(auto kept, arena(2 * unit(), 2 * unit()));
    HR_TRY(auto busy, arena(4 * unit(), unit()));
    HR_CHECK(grow(*kept, 0));
    const Piece bird{kept->address(0), kept->slot_bytes(0), 0xB12Du};
    HR_CHECK(write(bird, kernel_.has_value()));
    for (int cycle = 0; cycle < options_.cycles; ++cycle) {
        const std::array<std::size_t, 2> slots = {0, 1};
        HR_CHECK(grow(*busy, slots));
        HR_CHECK(driver_.fill(busy->address(0), 0xEE, busy->slot_bytes(0) + busy->slot_bytes(1)));
        HR_CHECK(driver_.synchronize());
        HR_CHECK(busy->unmap(slots));
        HR_CHECK(pool_.trim());
    }
    for (const bool by_kernel : {false, true}) {
        if (by_kernel && !kernel_) continue;
        HR_TRY(const auto wrong, differing(bird, by_kernel));
        if (wrong != 0) return failed(text::canary_lost(options_.cycles));
    }
    HR_CHECK(busy->close());
    HR_CHECK(kept->close());
    return passed(text::saw_canary(options_.cycles));
}

}  // namespace headroom::vmm
