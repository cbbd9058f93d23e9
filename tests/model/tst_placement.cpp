// What lies where, from sizes alone.

#include <numeric>

#include <QTest>

#include "core/base/bytes.h"
#include "core/model/family.h"
#include "core/model/gpu/placement.h"
#include "core/model/gpu/scratch.h"
#include "tests/model/model_runner.h"
#include "tests/model/opened_model.h"
#include "tests/model/synthetic_model.h"

using namespace headroom;
using namespace headroom::model;
using namespace headroom::test;

namespace {

constexpr std::int64_t kContext = 1024;
SyntheticModel dense() { return {.family = "qwen3", .layers = 6, .embedding = 64, .head_dim = 32, .feed_forward = 2048, .qk_norm = true}; }
SyntheticModel mixture() {
    return {.family = "qwen3moe", .layers = 4, .embedding = 64, .head_dim = 32, .feed_forward = 256, .experts = 16, .experts_used = 2, .qk_norm = true};
}

Placement plan(const Transformer& transformer, std::vector<std::uint64_t> budgets) { return plan_placement(transformer, budgets, kContext); }

// The whole of it on one device.
std::uint64_t everything(const Transformer& transformer) { return plan(transformer, {100 * GiB}).parts.front().bytes; }

}  // namespace

class TstPlacement : public QObject {
    Q_OBJECT

private slots:
    void everything_fits() {
        const OpenedModel model(dense());
        const Placement placement = plan(model.transformer, {100 * GiB});
        QVERIFY(placement.complete());
        QCOMPARE(placement.parts.size(), std::size_t{1});
        const DevicePart& part = placement.parts.front();
        QCOMPARE(part.first, std::int64_t{0});
        QCOMPARE(part.last, std::int64_t{6});
        QVERIFY(part.embedding && part.output);
        QCOMPARE(placement.chunk, kContext);                  // a chunk is never longer than the context
        QCOMPARE(placement.kv_positions, 8 * kContext);       // room to spare: eight conversations
    }

    void nothing_fits() {
        const OpenedModel model(dense());
        const Placement placement = plan(model.transformer, {64 * KiB});
        QVERIFY(placement.parts.empty());
        QCOMPARE(placement.cpu_layers, std::int64_t{6});
    }

    // More memory never places less, what is placed never costs more than there is, and the layers stand in one piece at the end.
    void parts_stay_within_their_budgets() {
        for (const SyntheticModel& which : {dense(), mixture()}) {
            const OpenedModel model(which);
            const std::uint64_t all = everything(model.transformer);
            std::int64_t layers = 0, experts = 0;
            for (std::uint64_t budget = all / 64; budget < all / 64 * 63; budget += all / 64) {
                const Placement placement = plan(model.transformer, {budget});
                QVERIFY(static_cast<std::int64_t>(model.transformer.layers.size()) - placement.cpu_layers >= layers);
                layers = static_cast<std::int64_t>(model.transformer.layers.size()) - placement.cpu_layers;
                if (layers == 0) continue;
                QCOMPARE(placement.parts.size(), std::size_t{1});
                const DevicePart& part = placement.parts.front();
                QVERIFY(part.bytes <= budget);
                QCOMPARE(part.first, placement.cpu_layers);
                QCOMPARE(part.last, static_cast<std::int64_t>(model.transformer.layers.size()));
                QVERIFY(part.output);
                QCOMPARE(part.embedding, part.first == 0);
                QVERIFY(placement.experts_on_device >= experts || placement.cpu_layers > 0);
                experts = placement.experts_on_device;
                QCOMPARE(std::accumulate(part.experts.begin(), part.experts.end(), std::int64_t{0}), experts);
            }
            QCOMPARE(layers, static_cast<std::int64_t>(model.transformer.layers.size()));
        }
    }

    // A mixture gives up experts before layers, and every layer has as many as the others, give or take one.
    void experts_are_dealt_evenly() {
        const OpenedModel model(mixture());
        const Placement whole = plan(model.transformer, {100 * GiB});
        QCOMPARE(whole.experts_total, std::int64_t{64});
        QCOMPARE(whole.experts_on_device, std::int64_t{64});
        const std::uint64_t one_session = [&] {
            std::uint64_t budget = everything(model.transformer);
            while (plan(model.transformer, {budget - 64 * KiB}).complete()) budget -= 64 * KiB;
            return budget;
        }();
        const Placement placement = plan(model.transformer, {one_session - 30 * expert_bytes(model.transformer.layers[0])});
        QCOMPARE(placement.cpu_layers, std::int64_t{0});
        QVERIFY(placement.experts_on_device > 20 && placement.experts_on_device < 50);
        const auto [least, most] = std::ranges::minmax(placement.parts.front().experts);
        QVERIFY(most - least <= 1);
    }

    void two_devices_share_by_room() {
        const OpenedModel model(dense());
        const std::uint64_t all = everything(model.transformer);
        const Placement placement = plan(model.transformer, {2 * all, all});
        QVERIFY(placement.complete());
        QCOMPARE(placement.parts.size(), std::size_t{2});
        QCOMPARE(placement.parts[0].device, std::size_t{0});
        QCOMPARE(placement.parts[0].last, placement.parts[1].first);
        QCOMPARE(placement.parts[0].last - placement.parts[0].first, std::int64_t{4});
        QVERIFY(placement.parts[0].embedding && !placement.parts[0].output);
        QVERIFY(!placement.parts[1].embedding && placement.parts[1].output);
    }

    // What does not fit on either fits on both.
    void two_devices_hold_more_than_one() {
        const OpenedModel model(dense());
        std::uint64_t budget = everything(model.transformer);
        while (plan(model.transformer, {budget - 64 * KiB}).complete()) budget -= 64 * KiB;
        budget -= budget / 8;
        QVERIFY(!plan(model.transformer, {budget}).complete());
        QVERIFY(plan(model.transformer, {budget, budget}).complete());
    }

    // The estimate of the scratch memory is what is allocated: the layout is computed by the same code, so check its sense instead.
    void scratch_grows_with_the_chunk() {
        const OpenedModel model(mixture());
        const auto bytes = [&](std::int64_t tokens, bool logits) { return Scratch::bytes(model.transformer, {tokens, kContext, logits}); };
        QVERIFY(bytes(256, false) < bytes(512, false));
        // Exactly the logits and the likeliest of them, each piece beginning at a multiple of 256.
        const auto piece = [](std::int64_t elements) { return (static_cast<std::uint64_t>(elements) * 4 + 255) / 256 * 256; };
        QCOMPARE(bytes(256, true) - bytes(256, false),
                 piece(kLogitRows * model.transformer.vocabulary) + piece(2 * kLogitRows * kernels::kMostTop));
    }
};

QTEST_GUILESS_MAIN(TstPlacement)
#include "tst_placement.moc"
