// The forward pass on a simulated GPU gives the bits of the one on the processor, wherever the weights lie; and what happens where memory
// runs out or a call fails.

#include <algorithm>
#include <cstring>
#include <numeric>

#include <QTest>

#include "core/base/bytes.h"
#include "core/model/cpu_runner.h"
#include "core/model/family.h"
#include "core/model/gpu/gpu_runner.h"
#include "tests/model/model_runner.h"
#include "tests/model/opened_model.h"
#include "tests/model/synthetic_model.h"
#include "tests/simgpu/fixture.h"

using namespace headroom;
using namespace headroom::model;
using namespace headroom::test;

namespace {

constexpr std::int64_t kContext = 512;

// llama, qwen2, qwen3 and mixtures with heads that the kernels take.
SyntheticModel dense() { return {.family = "qwen3", .layers = 3, .embedding = 64, .head_dim = 32, .feed_forward = 512, .qk_norm = true}; }
SyntheticModel mixture() {
    return {.family = "qwen3moe", .layers = 3, .embedding = 64, .head_dim = 32, .feed_forward = 64, .experts = 8, .experts_used = 3, .qk_norm = true};
}

// The two, and keys and values of 8 bits.
std::vector<std::pair<SyntheticModel, cpu::KvType>> variants() {
    return {{dense(), cpu::KvType::f16}, {mixture(), cpu::KvType::f16}, {mixture(), cpu::KvType::q8_0}};
}

using Logits = std::vector<std::vector<float>>;

// Reads the tokens in pieces; the logits behind every one.
Logits read(Runner& runner, Sequence& sequence, std::span<const std::int32_t> tokens, std::size_t piece) {
    Logits all;
    for (std::size_t begin = 0; begin < tokens.size(); begin += piece) {
        const auto part = tokens.subspan(begin, std::min(piece, tokens.size() - begin));
        std::vector<std::int32_t> rows(part.size());
        for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int32_t>(i);
        must(runner.run({.sequence = sequence, .tokens = part, .rows = rows},
                        [&](std::int32_t, std::span<float> logits) { all.emplace_back(logits.begin(), logits.end()); }));
    }
    return all;
}

// The interface, whose default arguments the implementations do not repeat.
Runner& as_runner(Runner& runner) { return runner; }

bool same_bits(const Logits& a, const Logits& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i].size() != b[i].size() || std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)) != 0) return false;
    }
    return true;
}

}  // namespace

Q_DECLARE_METATYPE(SyntheticModel)
Q_DECLARE_METATYPE(cpu::KvType)

class TstGpuRunner : public QObject {
    Q_OBJECT

private slots:
    void init() {
        simulator_.reset({{"cuda", nlohmann::json::array({nlohmann::json::object(), nlohmann::json::object()})}});
        driver_ = must(gpu::Driver::load(gpu::Backend::cuda, simulator_.path()));
    }
    void cleanup() {
        driver_.reset();
        QVERIFY2(leaks(simulator_.counters()).empty(), leaks(simulator_.counters()).c_str());
    }

    void equals_the_processor_data() {
        using enum cpu::KvType;
        QTest::addColumn<SyntheticModel>("model");
        QTest::addColumn<cpu::KvType>("kv_type");
        const SyntheticModel llama{.layers = 2, .embedding = 64, .head_dim = 32};
        const auto with = [](SyntheticModel model, auto change) {
            change(model);
            return model;
        };
        QTest::newRow("llama") << llama << f16;
        QTest::newRow("llama, tied, biases") << with(llama, [](auto& m) { m.tied = m.qkv_bias = m.other_bias = true; }) << f16;
        QTest::newRow("llama, window") << with(llama, [](auto& m) { m.window = 7; }) << f16;
        QTest::newRow("llama, part of a head rotated") << with(llama, [](auto& m) { m.rope_dimensions = 8; }) << f16;
        QTest::newRow("llama, experts") << with(llama, [](auto& m) { m.experts = 4, m.experts_used = 2; }) << f16;
        QTest::newRow("llama, BF16") << with(llama, [](auto& m) { m.type = gguf::TensorType::bf16; }) << f16;
        QTest::newRow("llama, Q8_0") << with(llama, [](auto& m) { m.type = gguf::TensorType::q8_0; }) << f16;
        QTest::newRow("qwen2") << SyntheticModel{.family = "qwen2", .embedding = 64, .head_dim = 32, .qkv_bias = true} << f16;
        QTest::newRow("qwen3") << dense() << f16;
        QTest::newRow("qwen3moe") << mixture() << f16;
        QTest::newRow("qwen3moe, Q8_0") << with(mixture(), [](auto& m) { m.type = gguf::TensorType::q8_0; }) << f16;
        QTest::newRow("llama, window, 8-bit keys") << with(llama, [](auto& m) { m.window = 7; }) << q8_0;
        QTest::newRow("qwen3, 8-bit keys") << with(dense(), [](auto& m) { m.head_dim = 64; }) << q8_0;
        QTest::newRow("qwen3moe, Q8_0, 8-bit keys") << with(mixture(), [](auto& m) { m.type = gguf::TensorType::q8_0; }) << q8_0;
    }
    void equals_the_processor() {
        QFETCH(SyntheticModel, model);
        QFETCH(const cpu::KvType, kv_type);
        const OpenedModel opened(model, kv_type);
        const auto runner = place(opened, {0});
        QVERIFY(runner->placement().complete());
        const auto tokens = random_tokens(70, 3);
        QVERIFY(same_bits(expected(opened, tokens), read(*runner, *must(runner->create_sequence()), tokens, 1)));
        // Prompts too: on the simulated device attention is the processor's.
        QVERIFY(same_bits(expected(opened, tokens), read(*runner, *must(runner->create_sequence()), tokens, 33)));
    }

    // Some layers on the processor, or some experts: nothing changes a bit.
    void equals_the_processor_where_not_all_fits() {
        for (const auto& [model, kv_type] : variants()) {
            const OpenedModel opened(model, kv_type);
            const auto tokens = random_tokens(40, 4);
            const Logits right = expected(opened, tokens);
            const std::uint64_t all = place(opened, {0})->device_bytes();
            int incomplete = 0;
            std::int64_t layers_before = -1, experts_before = -1;
            for (std::uint64_t cap = all; cap > all / 64; cap -= all / 48) {
                const auto runner = place_if(opened, {cap});
                if (!runner) break;
                const Placement& placement = runner->placement();
                QVERIFY(runner->device_bytes() <= cap);
                if (placement.cpu_layers == layers_before && placement.experts_on_device == experts_before) continue;
                layers_before = placement.cpu_layers;
                experts_before = placement.experts_on_device;
                incomplete += placement.complete() ? 0 : 1;
                QVERIFY(same_bits(right, read(*runner, *must(runner->create_sequence()), tokens, 1)));
                QVERIFY(same_bits(right, read(*runner, *must(runner->create_sequence()), tokens, 19)));
            }
            QVERIFY(incomplete >= 2);
        }
    }

    void equals_the_processor_on_two_devices() {
        for (const SyntheticModel& model : {dense(), mixture()}) {
            const OpenedModel opened(model);
            const auto tokens = random_tokens(40, 5);
            const auto runner = place(opened, {0, 0});
            QCOMPARE(runner->placement().parts.size(), std::size_t{2});
            QVERIFY(same_bits(expected(opened, tokens), read(*runner, *must(runner->create_sequence()), tokens, 1)));
            QVERIFY(same_bits(expected(opened, tokens), read(*runner, *must(runner->create_sequence()), tokens, 17)));
        }
    }

    // More logits than there is room for at once.
    void hands_out_every_row() {
        const OpenedModel opened(dense());
        const auto tokens = random_tokens(200, 6);
        const auto runner = place(opened, {0});
        QVERIFY(same_bits(expected(opened, tokens), read(*runner, *must(runner->create_sequence()), tokens, 200)));
    }

    // Sessions of different lengths in one step: each gets the bits that it gets alone.
    void sessions_step_together() {
        for (const SyntheticModel& model : {dense(), mixture()}) {
            const OpenedModel opened(model);
            const auto runner = place(opened, {0});
            std::vector<std::unique_ptr<Sequence>> sequences;
            std::vector<std::vector<std::int32_t>> texts;
            std::vector<Runner::Step> steps;
            for (std::size_t s = 0; s < 5; ++s) {
                texts.push_back(random_tokens(3 + 60 * s, 10 + s));
                sequences.push_back(must(runner->create_sequence()));
                (void)read(*runner, *sequences[s], std::span(texts[s]).first(texts[s].size() - 1), 50);
                steps.push_back({.sequence = *sequences[s], .token = texts[s].back()});
            }
            Logits together(steps.size());
            must(as_runner(*runner).run_together(steps, [&](std::int32_t i, std::span<float> logits) {
                together[static_cast<std::size_t>(i)].assign(logits.begin(), logits.end());
            }));
            for (std::size_t s = 0; s < steps.size(); ++s) {
                QCOMPARE(sequences[s]->length(), static_cast<std::int64_t>(texts[s].size()));
                QVERIFY(same_bits({expected(opened, texts[s]).back()}, {together[s]}));
                texts[s].push_back(choice_of(together[s]));
            }
            // The device's choices, of the step behind.
            steps.clear();
            for (std::size_t s = 0; s < texts.size(); ++s) steps.push_back({.sequence = *sequences[s], .token = texts[s].back()});
            std::vector<std::int32_t> chosen(steps.size());
            must(as_runner(*runner).choose_together(steps, [&](std::int32_t i, std::int32_t token) { chosen[static_cast<std::size_t>(i)] = token; }));
            for (std::size_t s = 0; s < steps.size(); ++s) {
                QCOMPARE(chosen[s], choice_of(expected(opened, texts[s]).back()));
                texts[s].push_back(chosen[s]);
            }
            // The likeliest tokens of the next one, of all together and of one alone; all logits where that many were asked for.
            for (const std::size_t count : {texts.size(), std::size_t{1}}) {
                for (const std::int32_t wanted : {64, 0, 300}) {
                    steps.clear();
                    for (std::size_t s = 0; s < count; ++s) steps.push_back({.sequence = *sequences[s], .token = texts[s].back()});
                    int handed_out = 0;
                    must(as_runner(*runner).look_together(steps, wanted, [&](std::int32_t i, const Outlook& outlook) {
                        auto& text = texts[static_cast<std::size_t>(i)];
                        const std::vector<float> logits = expected(opened, text).back();
                        text.push_back(choice_of(logits));
                        ++handed_out;
                        if (wanted != 64) {
                            QVERIFY(outlook.likeliest.empty() && same_bits({logits}, {{outlook.logits.begin(), outlook.logits.end()}}));
                            return;
                        }
                        QCOMPARE(outlook.likeliest.size(), std::size_t{64});
                        std::vector<std::int32_t> order(logits.size());
                        std::iota(order.begin(), order.end(), 0);
                        std::ranges::stable_sort(order, [&](std::int32_t a, std::int32_t b) { return logits[std::size_t(a)] > logits[std::size_t(b)]; });
                        for (std::size_t j = 0; j < 64; ++j) {
                            QCOMPARE(outlook.likeliest[j].token, order[j]);
                            QCOMPARE(outlook.likeliest[j].logit, logits[std::size_t(order[j])]);
                        }
                    }));
                    QCOMPARE(handed_out, static_cast<int>(count));
                }
            }
        }
    }

    // Pieces of several prompts in one batch, behind what each session has read: all go on with the bits that they have alone.
    void prompts_are_read_together() {
        for (const SyntheticModel& model : {dense(), mixture()}) {
            const OpenedModel opened(model);
            ThreadPool pool(1);
            CpuRunner cpu(opened.transformer, pool);
            constexpr std::size_t before[] = {0, 30, 250, 1, 7}, count[] = {90, 1, 40, 64, 20};
            const auto check = [&](Runner& runner, std::size_t sessions) {
                std::vector<std::unique_ptr<Sequence>> sequences;
                std::vector<std::vector<std::int32_t>> texts;
                std::vector<Piece> pieces;
                for (std::size_t s = 0; s < sessions; ++s) {
                    texts.push_back(random_tokens(before[s] + count[s] + 1, 20 + s));
                    sequences.push_back(must(runner.create_sequence()));
                    (void)read(runner, *sequences[s], std::span(texts[s]).first(before[s]), 50);
                    pieces.push_back({.sequence = *sequences[s], .tokens = std::span<const std::int32_t>(texts[s]).subspan(before[s], count[s]), .rows = {}});
                }
                must(runner.read_together(pieces));
                for (std::size_t s = 0; s < texts.size(); ++s) {
                    QCOMPARE(sequences[s]->length(), static_cast<std::int64_t>(before[s] + count[s]));
                    QVERIFY(same_bits({expected(opened, texts[s]).back()}, read(runner, *sequences[s], std::span(texts[s]).last(1), 1)));
                }
                // One of them has a token that there is not: none has read anything.
                const std::vector<std::int32_t> wrong{1, kSyntheticVocabulary};
                const std::vector<Piece> some{pieces[0], {.sequence = *sequences[1], .tokens = wrong, .rows = {}}};
                QVERIFY(!runner.read_together(some));
                for (std::size_t s = 0; s < 2; ++s) QCOMPARE(sequences[s]->length(), static_cast<std::int64_t>(before[s] + count[s] + 1));
            };
            check(cpu, 5);
            check(*place(opened, {0}), 5);
            check(*place(opened, {place(opened, {0})->device_bytes() / 2}), 2);  // there two conversations have room
            check(*place(opened, {0, 0}), 5);
        }
    }

    // A copy of a session's beginning goes on as if it had read that, and the session itself too; with layers on the processor as well.
    void sessions_are_copied() {
        for (const auto& [model, kv_type] : variants()) {
            const OpenedModel opened(model, kv_type);
            ThreadPool pool(1);
            CpuRunner cpu(opened.transformer, pool);
            const auto others = random_tokens(20, 9);
            // count: of the session; copied: of that.
            const auto check = [&](Runner& runner, std::size_t count, std::size_t copied) {
                const auto tokens = random_tokens(count, 8);
                std::vector<std::int32_t> other(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(copied));
                other.insert(other.end(), others.begin(), others.end());
                const Logits whole = expected(opened, tokens), right = expected(opened, other);
                const auto from = must(runner.create_sequence());
                (void)read(runner, *from, std::span(tokens).first(count - 10), 64);
                const auto to = must(runner.copy_sequence(*from, static_cast<std::int64_t>(copied)));
                QCOMPARE(to->length(), static_cast<std::int64_t>(copied));
                QVERIFY(same_bits({right.end() - 20, right.end()}, read(runner, *to, others, 7)));
                QVERIFY(same_bits({whole.end() - 10, whole.end()}, read(runner, *from, std::span(tokens).last(10), 3)));
                QCOMPARE(must(runner.copy_sequence(*from, 0))->length(), std::int64_t{0});
            };
            check(cpu, 300, 270);
            check(*place(opened, {0}), 300, 270);
            check(*place(opened, {place(opened, {0})->device_bytes() / 2}), 200, 150);  // there two conversations have room
            check(*place(opened, {0, 0}), 300, 270);
        }
    }

    // The device's own choice, step behind step, is what choosing on the host gives; and the session can go on with anything afterwards.
    void decodes_greedily() {
        for (const auto& [model, kv_type] : variants()) {
            const OpenedModel opened(model, kv_type);
            const auto prompt = random_tokens(20, 7);
            ThreadPool pool(1);
            CpuRunner cpu(opened.transformer, pool);
            const auto words = [&](Runner& runner, std::int64_t most, std::size_t stop_after, Sequence& sequence) {
                std::vector<std::int32_t> chosen;
                must(runner.decode_greedily(sequence, 65, most, [&](std::int32_t token) {
                    chosen.push_back(token);
                    return chosen.size() < stop_after;
                }));
                return chosen;
            };
            for (const std::uint64_t cap : {std::uint64_t{0}, place(opened, {0})->device_bytes() / 2}) {
                const auto runner = place(opened, {cap});
                const auto a = must(cpu.create_sequence()), b = must(runner->create_sequence());
                (void)read(cpu, *a, prompt, 20);
                (void)read(*runner, *b, prompt, 20);
                const auto right = words(cpu, 30, 1000, *a);
                QCOMPARE(right.size(), std::size_t{30});
                QCOMPARE(words(*runner, 30, 1000, *b), right);
                QCOMPARE(b->length(), a->length());
                // Ended by the receiver: what was computed ahead is forgotten.
                QCOMPARE(words(*runner, 30, 4, *b), words(cpu, 30, 4, *a));
                QCOMPARE(b->length(), a->length());
                QVERIFY(same_bits(read(cpu, *a, prompt, 20), read(*runner, *b, prompt, 20)));
            }
        }
    }

    void ends_at_the_context() {
        const OpenedModel opened(dense());
        const auto runner = place(opened, {0});
        const auto sequence = must(runner->create_sequence());
        (void)read(*runner, *sequence, random_tokens(kContext - 2, 8), 256);
        int words = 0;
        must(as_runner(*runner).decode_greedily(*sequence, 65, 2, [&](std::int32_t) { return ++words > 0; }));
        QCOMPARE(words, 2);
        const auto more = as_runner(*runner).decode_greedily(*sequence, 65, 1, [&](std::int32_t) { return ++words > 0; });
        QVERIFY(!more);
        QCOMPARE(more.error().kind, ErrorKind::context_full);
        QCOMPARE(sequence->length(), kContext);
    }

    // Conversations share the pool of pages; a full one is an error that leaves everything as it was, and giving up one makes room.
    void conversations_share_the_pool() {
        const OpenedModel opened(dense());
        const std::uint64_t one = smallest_complete(opened);
        const auto runner = place(opened, {one});
        QCOMPARE(runner->placement().kv_positions, kContext);
        auto first = must(runner->create_sequence());
        const auto second = must(runner->create_sequence());
        (void)read(*runner, *first, random_tokens(300, 9), 256);
        const auto tokens = random_tokens(10, 10);
        const auto refused = as_runner(*runner).run({.sequence = *second, .tokens = tokens, .rows = {}}, [](auto, auto) {});
        QVERIFY(!refused);
        QCOMPARE(refused.error().kind, ErrorKind::out_of_memory);
        QVERIFY(refused.error().message.find("512") != std::string::npos);
        QCOMPARE(second->length(), std::int64_t{0});
        first.reset();
        QVERIFY(same_bits(expected(opened, tokens), read(*runner, *second, tokens, 10)));
    }

    void cancelling_leaves_the_session_as_it_was() {
        const OpenedModel opened(dense());
        const auto runner = place(opened, {0});
        const auto sequence = must(runner->create_sequence());
        const auto tokens = random_tokens(60, 11);
        (void)read(*runner, *sequence, std::span(tokens).first(30), 30);
        std::stop_source source;
        source.request_stop();
        const auto cancelled = as_runner(*runner).run({.sequence = *sequence, .tokens = std::span(tokens).subspan(30), .rows = {}}, [](auto, auto) {}, source.get_token());
        QVERIFY(!cancelled && cancelled.error().kind == ErrorKind::cancelled);
        QCOMPARE(sequence->length(), std::int64_t{30});
        const Logits rest = read(*runner, *sequence, std::span(tokens).subspan(30), 30);
        QVERIFY(same_bits({expected(opened, tokens).back()}, {rest.back()}));
    }

    // Another program took memory between the look and the allocation: a smaller placement, not a failure.
    void out_of_memory_places_less() {
        const OpenedModel opened(mixture());
        const auto tokens = random_tokens(20, 12);
        const std::uint64_t complete = smallest_complete(opened);
        for (const std::uint64_t call : {2, 3, 5, 9}) {
            simulator_.clear_rules();
            simulator_.reset({{"cuda", nlohmann::json::array({nlohmann::json::object()})}});
            driver_.reset();
            driver_ = must(gpu::Driver::load(gpu::Backend::cuda, simulator_.path()));
            simulator_.fail("cuMemAlloc_v2", call, 2);
            const auto runner = place(opened, {complete});
            QVERIFY(!runner->placement().complete());
            QVERIFY(same_bits(expected(opened, tokens), read(*runner, *must(runner->create_sequence()), tokens, 7)));
        }
    }

    // Heads that the kernels cannot take are said to be so.
    void refuses_heads_it_cannot_take() {
        const OpenedModel opened(SyntheticModel{.head_dim = 16});
        const GpuTarget target{.driver = driver_.get(), .device = driver_->devices()[0]};
        ThreadPool pool(1);
        const auto runner = GpuRunner::create({.transformer = opened.transformer, .pool = pool, .targets = std::span(&target, 1), .context = kContext});
        QVERIFY(!runner && runner.error().kind == ErrorKind::unsupported);
        QVERIFY(runner.error().message.find("16") != std::string::npos);
    }

private:
    // One cap for each device; 0: none.
    std::unique_ptr<GpuRunner> place_if(const OpenedModel& opened, const std::vector<std::uint64_t>& caps) {
        std::vector<GpuTarget> targets;
        for (std::size_t i = 0; i < caps.size(); ++i) {
            targets.push_back({.driver = driver_.get(), .device = driver_->devices()[i], .reserve_bytes = 0, .cap_bytes = caps[i]});
        }
        auto runner = GpuRunner::create({.transformer = opened.transformer, .pool = pool_, .targets = targets, .context = kContext});
        if (!runner && runner.error().kind == ErrorKind::out_of_memory) return nullptr;
        return must(std::move(runner));
    }
    std::unique_ptr<GpuRunner> place(const OpenedModel& opened, const std::vector<std::uint64_t>& caps) {
        auto runner = place_if(opened, caps);
        if (!runner) qFatal("the model does not fit at all");
        return runner;
    }
    // The least with which everything still fits: one conversation, no spare room.
    std::uint64_t smallest_complete(const OpenedModel& opened) {
        std::uint64_t cap = place(opened, {0})->device_bytes();
        const auto fits = [&](std::uint64_t bytes) { return plan_placement(opened.transformer, std::span(&bytes, 1), kContext).complete(); };
        while (fits(cap - 16 * KiB)) cap -= 16 * KiB;
        return cap;
    }
    static std::int32_t choice_of(const std::vector<float>& logits) {
        return static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
    }

    Logits expected(const OpenedModel& opened, std::span<const std::int32_t> tokens) {
        CpuRunner cpu(opened.transformer, pool_);
        return read(cpu, *must(cpu.create_sequence()), tokens, 64);
    }

    SimGpu simulator_;
    std::unique_ptr<gpu::Driver> driver_;
    ThreadPool pool_{2};
};

QTEST_GUILESS_MAIN(TstGpuRunner)
#include "tst_gpu_runner.moc"
