// Sampling against a plain version of itself: everything sorted, every probability written down.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <QTest>

#include "core/compute/cpu/ops.h"
#include "core/engine/sampling.h"
#include "tests/model/synthetic_model.h"

using namespace headroom;
using namespace headroom::engine;
using headroom::test::RandomNumbers;

namespace {

struct Choice {
    TokenId id;
    double probability;  // relative to the likeliest token's
};

// What may be drawn, likeliest first.
std::vector<Choice> plain_choices(std::vector<float> logits, const std::vector<TokenId>& history, const SamplingOptions& options) {
    for (const auto& [id, bias] : options.logit_bias) {
        logits[static_cast<std::size_t>(id)] += bias <= -100 ? -std::numeric_limits<float>::infinity() : bias;
    }
    std::size_t first = 0;
    if (options.penalty_window >= 0 && history.size() > static_cast<std::size_t>(options.penalty_window)) {
        first = history.size() - static_cast<std::size_t>(options.penalty_window);
    }
    std::map<TokenId, int> seen;
    for (std::size_t i = first; i < history.size(); ++i) ++seen[history[i]];
    for (const auto& [id, count] : seen) {
        float& logit = logits[static_cast<std::size_t>(id)];
        logit = logit > 0 ? logit / options.repeat_penalty : logit * options.repeat_penalty;
        logit -= options.presence_penalty;
        logit -= options.frequency_penalty * static_cast<float>(count);
    }
    const float largest = *std::ranges::max_element(logits);
    std::vector<Choice> choices;
    for (std::size_t id = 0; id < logits.size(); ++id) {
        const float x = (logits[id] - largest) / options.temperature;
        choices.push_back({static_cast<TokenId>(id), x > -80 ? static_cast<double>(cpu::exp(x)) : 0});
    }
    std::ranges::stable_sort(choices, [&](const Choice& a, const Choice& b) {
        return logits[static_cast<std::size_t>(a.id)] > logits[static_cast<std::size_t>(b.id)];
    });
    if (options.top_k > 0 && choices.size() > static_cast<std::size_t>(options.top_k)) choices.resize(static_cast<std::size_t>(options.top_k));
    double total = 0;
    for (const Choice& choice : choices) total += choice.probability;
    double mass = 0;
    std::size_t kept = 0;
    while (kept < choices.size() && (options.top_p == 1 || mass < total * static_cast<double>(options.top_p))) {
        mass += choices[kept++].probability;
    }
    choices.resize(kept);
    std::erase_if(choices, [&](const Choice& choice) { return choice.probability < static_cast<double>(options.min_p); });
    std::erase_if(choices, [](const Choice& choice) { return choice.probability == 0; });
    return choices;
}

std::vector<float> random_logits(std::size_t count, std::uint64_t seed) {
    RandomNumbers random(seed);
    std::vector<float> logits(count);
    for (float& logit : logits) logit = std::round(random.between(-12, 12) * 64) / 64;  // with ties
    return logits;
}

TokenId draw(Sampler& sampler, std::vector<float> logits, const std::vector<TokenId>& history = {}) {
    return sampler.sample(logits, history);
}

}  // namespace

Q_DECLARE_METATYPE(SamplingOptions)

class TstSampling : public QObject {
    Q_OBJECT

private slots:
    void draws_what_the_plain_version_allows_data() {
        QTest::addColumn<SamplingOptions>("options");
        const auto row = [](const char* name, auto change) {
            SamplingOptions options{.temperature = 1, .top_k = 0, .top_p = 1, .seed = 5};
            change(options);
            QTest::newRow(name) << options;
        };
        row("all", [](auto&) {});
        row("temperature", [](auto& o) { o.temperature = 0.3f; });
        row("hot", [](auto& o) { o.temperature = 10; });
        row("top-k", [](auto& o) { o.top_k = 7; });
        row("top-k 1", [](auto& o) { o.top_k = 1; });
        row("top-k of all", [](auto& o) { o.top_k = 1000; });
        row("top-p", [](auto& o) { o.top_p = 0.8f; });
        row("top-p of a flat distribution", [](auto& o) { o.top_p = 0.9f, o.temperature = 20; });
        row("tiny top-p", [](auto& o) { o.top_p = 1e-6f; });
        row("min-p", [](auto& o) { o.min_p = 0.2f; });
        row("min-p 1", [](auto& o) { o.min_p = 1; });
        row("all three", [](auto& o) { o.top_k = 40, o.top_p = 0.9f, o.min_p = 0.05f, o.temperature = 1.5f; });
        row("repetition", [](auto& o) { o.repeat_penalty = 1.7f, o.top_k = 5; });
        row("presence", [](auto& o) { o.presence_penalty = 6, o.top_k = 5; });
        row("frequency", [](auto& o) { o.frequency_penalty = 2.5f, o.top_k = 5; });
        row("short window", [](auto& o) { o.repeat_penalty = 3, o.frequency_penalty = 1, o.penalty_window = 3, o.top_k = 4; });
        row("no window", [](auto& o) { o.repeat_penalty = 3, o.penalty_window = -1, o.top_k = 4; });
        row("window of none", [](auto& o) { o.repeat_penalty = 3, o.penalty_window = 0, o.top_k = 4; });
        row("bias", [](auto& o) { o.logit_bias = {{3, 9.0f}, {4, -100.0f}, {5, -3.5f}}, o.top_k = 6; });
    }

    // Over many draws: nothing that is not allowed, and each as often as its probability says, within 5 standard deviations.
    void draws_what_the_plain_version_allows() {
        QFETCH(SamplingOptions, options);
        constexpr int kDraws = 1500;
        const auto logits = random_logits(500, 1);
        std::vector<TokenId> history;
        for (TokenId id = 0; id < 90; ++id) history.push_back((id * 7) % 60);
        for (std::size_t best = 0; best < 12; ++best) {  // likely tokens among those seen, some of them often
            const auto order = plain_choices(logits, {}, {.temperature = 1, .top_k = 12, .top_p = 1});
            for (std::size_t times = 0; times <= best % 3; ++times) history.push_back(order[best].id);
        }
        const auto allowed = plain_choices(logits, history, options);
        QVERIFY(!allowed.empty());
        double total = 0;
        for (const Choice& choice : allowed) total += choice.probability;

        Sampler sampler(options);
        QCOMPARE(sampler.seed(), 5u);
        std::map<TokenId, int> drawn;
        for (int i = 0; i < kDraws; ++i) ++drawn[draw(sampler, logits, history)];
        int allowed_draws = 0;
        for (const Choice& choice : allowed) {
            const double p = choice.probability / total;
            const double expected = p * kDraws;
            const auto seen = drawn.find(choice.id);
            const int count = seen == drawn.end() ? 0 : seen->second;
            allowed_draws += count;
            QVERIFY2(std::abs(count - expected) <= 5 * std::sqrt(expected * (1 - p)) + 1,
                     qPrintable(QString("%1: %2 times, expected %3").arg(choice.id).arg(count).arg(expected)));
        }
        QCOMPARE(allowed_draws, kDraws);
    }

    // The likeliest tokens, as many as are said to be needed, give the draws that all logits give.
    void the_likeliest_few_give_the_same_draws_data() {
        QTest::addColumn<SamplingOptions>("options");
        const auto row = [](const char* name, auto set) {
            SamplingOptions options{.top_k = 20, .top_p = 1};
            set(options);
            QTest::newRow(name) << options;
        };
        row("top-k", [](auto&) {});
        row("top-k 1", [](auto& o) { o.top_k = 1; });
        row("usual", [](auto& o) { o.top_k = 40, o.top_p = 0.95f; });
        row("hot", [](auto& o) { o.temperature = 3, o.top_p = 0.8f, o.min_p = 0.02f; });
        row("cold", [](auto& o) { o.temperature = 0.05f, o.min_p = 0.3f; });
        row("penalties", [](auto& o) { o.repeat_penalty = 1.3f, o.presence_penalty = 0.5f, o.frequency_penalty = 0.7f, o.top_p = 0.9f; });
        row("strong penalties", [](auto& o) { o.repeat_penalty = 50, o.presence_penalty = 20; });
        row("short window", [](auto& o) { o.frequency_penalty = 2, o.penalty_window = 5; });
        row("all of the text", [](auto& o) { o.presence_penalty = 1, o.penalty_window = -1; });
        row("bias", [](auto& o) { o.logit_bias = {{3, -100.0f}, {11, -2.0f}, {12, -0.015625f}, {49, -200.0f}}; });
        row("greedy with penalties", [](auto& o) { o.temperature = 0, o.repeat_penalty = 1.5f, o.logit_bias = {{7, -100.0f}}; });
    }
    void the_likeliest_few_give_the_same_draws() {
        QFETCH(SamplingOptions, options);
        for (std::uint64_t seed = 0; seed < 40; ++seed) {
            options.seed = seed;
            Sampler from_all(options), from_few(options);
            std::vector<TokenId> history = {1, 2, 3, 2, 50};
            for (int word = 0; word < 12; ++word) {
                auto logits = random_logits(300, seed * 100 + static_cast<std::uint64_t>(word));  // with many ties
                for (std::size_t i = 0; i < logits.size(); i += seed % 7 + 2) logits[i] = -logits[i / 2];
                if (word == 3) std::ranges::fill(logits, std::numeric_limits<float>::quiet_NaN());
                if (word == 4) std::fill(logits.begin() + 9, logits.end(), -std::numeric_limits<float>::infinity());
                std::vector<model::Likely> likeliest;
                for (std::size_t id = 0; id < logits.size(); ++id) {
                    likeliest.push_back({static_cast<TokenId>(id), std::isnan(logits[id]) ? -std::numeric_limits<float>::infinity() : logits[id]});
                }
                std::ranges::stable_sort(likeliest, [](const auto& a, const auto& b) { return a.logit > b.logit; });
                const std::size_t needed = from_few.needed(history);
                QVERIFY(needed > 0 && needed < likeliest.size());
                likeliest.resize(needed + seed % 3);
                const TokenId drawn = from_all.sample(logits, history);
                QCOMPARE(from_few.sample(likeliest, history), drawn);
                history.push_back(drawn);
            }
        }
    }

    // Where any token may come to the front, or be drawn, all logits are needed.
    void all_logits_are_needed_where_few_do_not_do() {
        const std::vector<TokenId> history = {1, 2, 3};
        const auto needed = [&](const SamplingOptions& options) { return Sampler(options).needed(history); };
        QCOMPARE(needed({.top_k = 0}), std::size_t{0});
        QCOMPARE(needed({.logit_bias = {{1, -1.0f}, {2, 0.5f}}}), std::size_t{0});
        QCOMPARE(needed({.repeat_penalty = 0.9f}), std::size_t{0});
        QCOMPARE(needed({.presence_penalty = -0.1f}), std::size_t{0});
        QCOMPARE(needed({.frequency_penalty = -0.1f}), std::size_t{0});
        QCOMPARE(needed({.top_k = 40}), std::size_t{40});
        QCOMPARE(needed({.top_k = 40, .repeat_penalty = 1.1f, .penalty_window = 2, .logit_bias = {{1, -1.0f}}}), std::size_t{43});
        QCOMPARE(needed({.temperature = 0, .top_k = 0}), std::size_t{1});
    }

    void greedy_takes_the_lowest_of_the_largest() {
        Sampler sampler({.temperature = 0});
        QCOMPARE(draw(sampler, {1, 5, 2, 5}), 1);
        QCOMPARE(draw(sampler, {-3}), 0);
        Sampler biased({.temperature = 0, .logit_bias = {{1, -100.0f}, {2, 2.5f}}});
        QCOMPARE(draw(biased, {1, 5, 2, 4}), 2);
    }

    void penalties_change_the_greedy_choice_exactly() {
        // 5 / 2 = 2.5 stays above 2.4 and falls below 2.6; a negative logit moves away from zero.
        const SamplingOptions options{.temperature = 0, .repeat_penalty = 2};
        Sampler sampler(options);
        QCOMPARE(draw(sampler, {5, 2.4f}, {0}), 0);
        QCOMPARE(draw(sampler, {5, 2.6f}, {0}), 1);
        QCOMPARE(draw(sampler, {-1, -1.9f}, {0}), 1);
        QCOMPARE(draw(sampler, {-1, -2.1f}, {0}), 0);
        Sampler frequency({.temperature = 0, .presence_penalty = 0.5f, .frequency_penalty = 1});
        QCOMPARE(draw(frequency, {5, 1.6f}, {0, 0, 0}), 1);  // 5 - 0.5 - 3 = 1.5
        QCOMPARE(draw(frequency, {5, 1.4f}, {0, 0, 0}), 0);
    }

    void seeds_reproduce() {
        const auto logits = random_logits(300, 2);
        const auto words = [&](std::optional<std::uint64_t> seed) {
            Sampler sampler({.temperature = 1, .top_k = 0, .top_p = 1, .seed = seed});
            std::vector<TokenId> ids;
            for (int i = 0; i < 50; ++i) ids.push_back(draw(sampler, logits));
            return std::pair(ids, sampler.seed());
        };
        QCOMPARE(words(1).first, words(1).first);
        QVERIFY(words(1).first != words(2).first);
        const auto [ids, seed] = words(std::nullopt);
        QCOMPARE(words(seed).first, ids);
        QVERIFY(words(std::nullopt).second != seed);
        // The same ids on every system: written down once.
        Sampler sampler({.temperature = 1, .top_k = 0, .top_p = 1, .seed = 42});
        std::vector<TokenId> first;
        for (int i = 0; i < 8; ++i) first.push_back(draw(sampler, logits));
        const std::vector<TokenId> expected{101, 163, 299, 46, 118, 38, 232, 176};
        QCOMPARE(first, expected);
    }

    void survives_logits_that_are_no_numbers() {
        const float nan = std::numeric_limits<float>::quiet_NaN();
        const float infinity = std::numeric_limits<float>::infinity();
        for (const float temperature : {0.0f, 1.0f}) {
            for (const int top_k : {0, 2}) {
                Sampler sampler({.temperature = temperature, .top_k = top_k, .top_p = 0.9f, .min_p = 0.1f, .seed = 1});
                QCOMPARE(draw(sampler, {nan, 3, nan, -infinity}), 1);
                QCOMPARE(draw(sampler, {1, infinity, 2, 0}), 1);
                QVERIFY(draw(sampler, {nan, nan, nan}) < 3);
                QVERIFY(draw(sampler, {-infinity, -infinity}) < 2);
            }
        }
        Sampler cold({.temperature = 1e-30f, .top_k = 0, .seed = 1});
        QCOMPARE(draw(cold, {1, 30, 2, 0}), 1);
    }

    void options_out_of_range_are_named_data() {
        QTest::addColumn<SamplingOptions>("options");
        QTest::addColumn<QString>("name");
        const float nan = std::numeric_limits<float>::quiet_NaN();
        const auto row = [](const char* name, auto change) {
            SamplingOptions options;
            change(options);
            QTest::newRow(name) << options << name;
        };
        row("temperature", [](auto& o) { o.temperature = -0.1f; });
        row("temperature is nan", [&](auto& o) { o.temperature = nan; });
        row("top-k", [](auto& o) { o.top_k = -1; });
        row("top-p is 0", [](auto& o) { o.top_p = 0; });
        row("top-p is 1.5", [](auto& o) { o.top_p = 1.5f; });
        row("min-p", [](auto& o) { o.min_p = 1.1f; });
        row("repetition penalty is 0", [](auto& o) { o.repeat_penalty = 0; });
        row("presence penalty is nan", [&](auto& o) { o.presence_penalty = nan; });
        row("frequency penalty is inf", [](auto& o) { o.frequency_penalty = INFINITY; });
        row("window of the penalties is -2", [](auto& o) { o.penalty_window = -2; });
        row("logit bias is nan", [&](auto& o) { o.logit_bias = {{1, nan}}; });
        row("token id of the logit bias is -1", [](auto& o) { o.logit_bias = {{-1, 1.0f}}; });
    }

    void options_out_of_range_are_named() {
        QFETCH(SamplingOptions, options);
        QFETCH(QString, name);
        const auto result = check(options);
        QVERIFY(!result);
        QCOMPARE(result.error().kind, ErrorKind::invalid_argument);
        QVERIFY2(QString::fromStdString(result.error().message).contains(name, Qt::CaseInsensitive), result.error().message.c_str());
    }

    void the_defaults_are_in_range() { QVERIFY(check({})); }
};

QTEST_GUILESS_MAIN(TstSampling)
#include "tst_sampling.moc"
