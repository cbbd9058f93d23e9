#include <QTest>
#include <vector>

#include "core/compute/cpu/activations_storage.h"
#include "core/compute/cpu/mixture.h"
#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/reference.h"
#include "tests/compute/random_data.h"
#include "tests/compute/targets.h"

using namespace headroom;
using namespace headroom::cpu;

class TestMixture : public QObject {
    Q_OBJECT
private slots:
    void equalsReferenceBitByBit_data() {
        QTest::addColumn<int>("index");
        for (std::size_t i = 0; i < layouts().size(); ++i) QTest::newRow(layouts()[i].name) << static_cast<int>(i);
    }
    void equalsReferenceBitByBit() {
        check(40, {{0, 3, 39}, {}, {7}, {1, 2, 3, 5, 8, 13, 21, 34, 35, 36, 37, 38}});
        check(8, {{6}, {0}, {2, 7}, {5}});
        check(1, {{0}, {0}, {0}});  // as in a decode step
        check(1, {{0}});
        check(1, {});
    }

private:
    void check(std::int64_t tokens, const std::vector<std::vector<std::int32_t>>& chosen) {
        QFETCH(int, index);
        const Layout& layout = layouts()[static_cast<std::size_t>(index)];
        Random random(static_cast<std::uint64_t>(index) + 300);
        ThreadPool pool(3);
        // As ragged as the type allows: pieces of hidden rows and of outputs end inside a tile.
        const std::int64_t cols = 512, width = 147;
        const std::int64_t hidden = layout.elements == 256 ? 512 : layout.elements == 32 ? 288 : 101;
        const RandomMatrix gates(layout, 4 * hidden, cols, random), ups(layout, 4 * hidden, cols, random), downs(layout, 4 * width, hidden, random);
        const auto expert = [](const RandomMatrix& stack, std::int64_t rows, std::size_t e) {
            Matrix first = stack.matrix;
            first.rows = rows;
            return slice(first, static_cast<std::int64_t>(e));
        };
        const std::vector<float> x = random.values(tokens * cols);
        Activations activations;
        activations.assign(x.data(), tokens, cols, cols);
        activations.require(pool, form_for(layout.type));
        std::vector<std::vector<float>> outputs;
        for (const auto& list : chosen) outputs.emplace_back(list.size() * static_cast<std::size_t>(width));
        std::vector<ChosenExpert> experts;
        for (std::size_t e = 0; e < chosen.size(); ++e) {
            experts.push_back({.gate = expert(gates, hidden, e), .up = expert(ups, hidden, e), .down = expert(downs, width, e), .tokens = chosen[e],
                               .y = outputs[e].data(), .y_stride = width});
        }
        std::vector<std::vector<float>> expected;
        for (const ChosenExpert& one : experts) expected.push_back(outputsOf(pool, one, activations));
        Mixture mixture;
        forEachTarget([&](const char* target) {
            for (int round = 0; round < 3; ++round) {
                for (auto& output : outputs) std::ranges::fill(output, -1.0F);
                mixture.compute(pool, experts, activations);
                QVERIFY2(outputs == expected, target);
            }
        });
    }

    static std::vector<float> outputsOf(ThreadPool& pool, const ChosenExpert& expert, const Activations& x) {
        const std::int64_t hidden = expert.gate.rows;
        std::vector<float> outputs;
        for (std::size_t i = 0; i < expert.tokens.size(); ++i) {
            std::vector<float> gate, up;
            for (std::int64_t r = 0; r < hidden; ++r) {
                gate.push_back(reference::dot(expert.gate, r, x.storage(), expert.tokens[i]));
                up.push_back(reference::dot(expert.up, r, x.storage(), expert.tokens[i]));
            }
            reference::swiglu(gate.data(), up.data(), hidden, gate.data());
            Activations row;
            row.assign(gate.data(), 1, hidden, hidden);
            row.require(pool, form_for(expert.down.type));
            for (std::int64_t r = 0; r < expert.down.rows; ++r) outputs.push_back(reference::dot(expert.down, r, row.storage(), 0));
        }
        return outputs;
    }
};

QTEST_GUILESS_MAIN(TestMixture)
#include "tst_mixture.moc"
