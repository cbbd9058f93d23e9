// The trained model against values computed elsewhere, and its quantized files against a plain float32 forward pass.

#include <algorithm>
#include <cmath>

#include <QTest>

#include "tests/model/guide_reference.h"
#include "tests/model/model_runner.h"
#include "tests/model/reference_forward.h"
#include "tests/support/shared_data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

constexpr double kTolerance = 0.02;

#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr std::size_t kPrompts = SIZE_MAX;  // all
#else
constexpr std::size_t kPrompts = 2;         // builds that are many times slower check the same on less
#endif

std::int32_t best(const std::vector<float>& logits) {
    return static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
}

std::vector<GuidePrompt> prompts() {
    std::vector<GuidePrompt> all = read_guide_reference(shared_data("models/reference.json"));
    std::ranges::sort(all, {}, [](const GuidePrompt& prompt) { return prompt.tokens.size(); });
    if (all.size() > kPrompts) all.resize(kPrompts);
    return all;
}

}  // namespace

class TstGuideLogits : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        if (shared_data("models/reference.json").empty()) QSKIP(missing_shared("models/reference.json"));
    }

    // Every listed logit within the tolerance, the order equal but for ties within it, the sum over the whole vocabulary too.
    void logits_equal_the_reference() {
        ModelRunner runner(must(gguf::File::open(shared_data("models/guide-f16.gguf"))));
        for (const GuidePrompt& prompt : prompts()) {
            std::vector<int> positions;
            for (const auto& expected : prompt.positions) positions.push_back(expected.position);
            const auto seen = runner.read(prompt.tokens, positions);
            QCOMPARE(seen.size(), prompt.positions.size());
            for (std::size_t i = 0; i < seen.size(); ++i) {
                const auto& expected = prompt.positions[i];
                double sum = 0;
                for (const float logit : seen[i]) sum += std::exp(static_cast<double>(logit));
                QVERIFY(std::abs(std::log(sum) - expected.log_sum_exp) <= kTolerance);
                float above = INFINITY;
                for (std::size_t k = 0; k < expected.ids.size(); ++k) {
                    const float logit = seen[i][static_cast<std::size_t>(expected.ids[k])];
                    QVERIFY(std::abs(static_cast<double>(logit) - expected.logits[k]) <= kTolerance);
                    QVERIFY(logit <= above + static_cast<float>(kTolerance));
                    above = logit;
                }
                // Nothing else has come up among them.
                const auto larger = std::ranges::count_if(
                    seen[i], [&](float logit) { return static_cast<double>(logit) > expected.logits.back() + 2 * kTolerance; });
                QVERIFY(static_cast<std::size_t>(larger) <= expected.ids.size());
            }
        }
    }

    void greedy_steps_equal_the_reference() {
        ModelRunner runner(must(gguf::File::open(shared_data("models/guide-f16.gguf"))));
        for (const GuidePrompt& prompt : prompts()) {
            const auto seen = runner.read(prompt.fed(), prompt.greedy_positions());
            for (std::size_t i = 0; i < prompt.greedy.size(); ++i) {
                if (prompt.margins[i] >= kClearMargin) QCOMPARE(best(seen[i]), prompt.greedy[i]);
            }
        }
    }

    void quantized_files_choose_as_float32_does_data() {
        QTest::addColumn<QString>("name");
        QTest::newRow("Q8_0") << "guide-q8_0.gguf";
        QTest::newRow("Q4_K_M") << "guide-q4_k_m.gguf";
        QTest::newRow("IQ4_XS") << "guide-iq4_xs.gguf";
    }

    // At least nine of ten greedy steps equal those of the same weights without quantized activations.
    void quantized_files_choose_as_float32_does() {
        QFETCH(QString, name);
        ModelRunner runner(must(gguf::File::open(shared_data("models/" + name.toStdString()))));
        const ReferenceForward reference(runner.file());
        int steps = 0;
        int equal = 0;
        for (const GuidePrompt& prompt : prompts()) {
            const auto seen = runner.read(prompt.fed(), prompt.greedy_positions());
            const auto expected = reference.logits(prompt.fed(), prompt.greedy_positions());
            for (std::size_t i = 0; i < prompt.greedy.size(); ++i) {
                if (prompt.margins[i] < kClearMargin) continue;
                ++steps;
                equal += best(seen[i]) == best(expected[i]) ? 1 : 0;
            }
        }
        qInfo("%d of %d greedy steps equal", equal, steps);
        QVERIFY(steps > 0);
        QVERIFY(equal * 10 >= steps * 9);
    }
};

QTEST_GUILESS_MAIN(TstGuideLogits)
#include "tst_guide_logits.moc"
