// Small models of every family and option against the plain forward pass, and what must never change a bit.

#include <algorithm>
#include <cmath>
#include <cstring>

#include <QTest>

#include "tests/model/model_runner.h"
#include "tests/model/reference_forward.h"
#include "tests/model/synthetic_model.h"

using namespace headroom;
using namespace headroom::test;

namespace {

// Logits here are of the size of 1. Keys and values are kept as halves, and Q8_0 products round activations to 8 bits.
constexpr double kTolerance = 0.01;
constexpr double kQuantizedTolerance = 0.15;
constexpr double kQuantizedKvTolerance = 0.2;

using Logits = std::vector<std::vector<float>>;

std::vector<int> all_positions(std::size_t count) {
    std::vector<int> positions(count);
    for (std::size_t i = 0; i < count; ++i) positions[i] = static_cast<int>(i);
    return positions;
}

double largest_difference(const Logits& a, const Logits& b) {
    double largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        for (std::size_t j = 0; j < a[i].size(); ++j) largest = std::max(largest, std::abs(static_cast<double>(a[i][j] - b[i][j])));
    }
    return largest;
}

bool same_bits(const Logits& a, const Logits& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i].size() != b[i].size() || std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)) != 0) return false;
    }
    return true;
}

SyntheticModel qwen2() { return {.family = "qwen2", .qkv_bias = true}; }
SyntheticModel qwen3() { return {.family = "qwen3", .qk_norm = true}; }
SyntheticModel qwen3moe() { return {.family = "qwen3moe", .feed_forward = 32, .experts = 8, .experts_used = 3, .qk_norm = true}; }

SyntheticModel with(SyntheticModel model, auto... changes) {
    (changes(model), ...);
    return model;
}

}  // namespace

Q_DECLARE_METATYPE(SyntheticModel)
Q_DECLARE_METATYPE(cpu::KvType)

class TstForward : public QObject {
    Q_OBJECT

private slots:
    void families_equal_the_plain_forward_data() {
        QTest::addColumn<SyntheticModel>("model");
        const SyntheticModel llama;
        QTest::newRow("llama") << llama;
        QTest::newRow("llama, tied output") << with(llama, [](auto& m) { m.tied = true; });
        QTest::newRow("llama, biases") << with(llama, [](auto& m) { m.qkv_bias = m.other_bias = true; });
        QTest::newRow("llama, one kv head") << with(llama, [](auto& m) { m.kv_heads = 1; });
        QTest::newRow("llama, part of a head rotated") << with(llama, [](auto& m) { m.rope_dimensions = 8; });
        QTest::newRow("llama, linear scaling") << with(llama, [](auto& m) { m.scaling = "linear"; });
        QTest::newRow("llama, yarn") << with(llama, [](auto& m) { m.scaling = "yarn"; });
        QTest::newRow("llama, frequency factors") << with(llama, [](auto& m) { m.rope_factors = true; });
        QTest::newRow("llama, sliding window") << with(llama, [](auto& m) { m.window = 7; });
        QTest::newRow("llama, experts") << with(llama, [](auto& m) { m.experts = 4, m.experts_used = 2; });
        QTest::newRow("llama, BF16") << with(llama, [](auto& m) { m.type = gguf::TensorType::bf16; });
        QTest::newRow("llama, Q8_0") << with(llama, [](auto& m) { m.type = gguf::TensorType::q8_0; });
        QTest::newRow("qwen2") << qwen2();
        QTest::newRow("qwen2, tied, yarn") << with(qwen2(), [](auto& m) { m.tied = true, m.scaling = "yarn"; });
        QTest::newRow("qwen3") << qwen3();
        QTest::newRow("qwen3, tied, Q8_0") << with(qwen3(), [](auto& m) { m.tied = true, m.type = gguf::TensorType::q8_0; });
        QTest::newRow("qwen3moe") << qwen3moe();
        QTest::newRow("qwen3moe, yarn, window") << with(qwen3moe(), [](auto& m) { m.scaling = "yarn", m.window = 20; });
        // All experts: with a choice, a near tie in the router could fall differently.
        QTest::newRow("qwen3moe, Q8_0") << with(qwen3moe(), [](auto& m) { m.experts_used = m.experts, m.type = gguf::TensorType::q8_0; });
        QTest::newRow("qwen3moe, all experts used") << with(qwen3moe(), [](auto& m) { m.experts_used = m.experts; });
    }

    void families_equal_the_plain_forward() {
        QFETCH(SyntheticModel, model);
        const auto bytes = synthetic_bytes(model);
        ModelRunner runner(must(gguf::File::parse(bytes, "synthetic.gguf")));
        const ReferenceForward reference(runner.file());
        const auto tokens = random_tokens(50, 3);
        const auto positions = all_positions(tokens.size());
        const double difference = largest_difference(runner.read(tokens, positions), reference.logits(tokens, positions));
        const double tolerance = model.type == gguf::TensorType::q8_0 ? kQuantizedTolerance : kTolerance;
        QVERIFY2(difference <= tolerance, qPrintable(QString("differs by %1").arg(difference)));
    }

    // With keys and values of 8 bits the logits are close to the plain forward pass, and they are others.
    void keys_and_values_of_8_bits_are_close() {
        const auto bytes = synthetic_bytes(with(qwen3(), [](auto& m) { m.head_dim = 32; }));
        ModelRunner runner(must(gguf::File::parse(bytes, "synthetic.gguf")), 2, cpu::KvType::q8_0);
        ModelRunner halves(must(gguf::File::parse(bytes, "synthetic.gguf")));
        const ReferenceForward reference(runner.file());
        const auto tokens = random_tokens(300, 3);
        const auto positions = all_positions(tokens.size());
        const Logits expected = reference.logits(tokens, positions), quantized = runner.read(tokens, positions);
        const double difference = largest_difference(quantized, expected);
        qInfo("8 bits differ by %g, halves by %g", difference, largest_difference(halves.read(tokens, positions), expected));
        QVERIFY(difference <= kQuantizedKvTolerance);
        QVERIFY(!same_bits(quantized, halves.read(tokens, positions)));
    }

    void keys_and_values_of_8_bits_need_wide_heads() {
        const auto bytes = synthetic_bytes({});
        const gguf::File file = must(gguf::File::parse(bytes, "synthetic.gguf"));
        auto transformer = must(model::bind_transformer(file));
        const auto refused = model::set_kv_type(transformer, cpu::KvType::q8_0);
        QVERIFY(!refused);
        QCOMPARE(refused.error().kind, ErrorKind::unsupported);
        QCOMPARE(refused.error().message, std::string("The heads of this model are 16 (keys) and 16 (values) elements wide; for keys and values of 8 bits "
                                                      "(q8_0) a width has to be a multiple of 32, at most 256: choose 16 bits (f16)"));
        QVERIFY(transformer.kv_shape().type == cpu::KvType::f16);
        QVERIFY(cpu::can_quantize_kv(256, 32));
        QVERIFY(!cpu::can_quantize_kv(288, 32) && !cpu::can_quantize_kv(128, 0) && !cpu::can_quantize_kv(128, 48));
    }

    // Each option changes the logits by far more than the tolerance above: leaving one out would be seen.
    void options_matter_data() {
        QTest::addColumn<SyntheticModel>("model");
        QTest::addColumn<SyntheticModel>("without");
        const SyntheticModel llama;
        QTest::newRow("part of a head rotated") << with(llama, [](auto& m) { m.rope_dimensions = 8; }) << llama;
        QTest::newRow("linear scaling") << with(llama, [](auto& m) { m.scaling = "linear"; }) << llama;
        QTest::newRow("yarn, not linear") << with(llama, [](auto& m) { m.scaling = "yarn"; })
                                          << with(llama, [](auto& m) { m.scaling = "linear"; });
        QTest::newRow("sliding window") << with(llama, [](auto& m) { m.window = 7; }) << llama;
        QTest::newRow("experts used") << qwen3moe() << with(qwen3moe(), [](auto& m) { m.experts_used = 2; });
    }

    void options_matter() {
        QFETCH(SyntheticModel, model);
        QFETCH(SyntheticModel, without);
        const auto tokens = random_tokens(50, 3);
        const auto positions = all_positions(tokens.size());
        const auto bytes = synthetic_bytes(model);
        const auto bytes_without = synthetic_bytes(without);
        ModelRunner runner(must(gguf::File::parse(bytes, "with.gguf")));
        ModelRunner runner_without(must(gguf::File::parse(bytes_without, "without.gguf")));
        QVERIFY(largest_difference(runner.read(tokens, positions), runner_without.read(tokens, positions)) > 5 * kTolerance);
    }

    // In one batch, in ragged ones, token by token, on other numbers of threads: the same bits, across pages of the cache.
    void batches_do_not_change_a_bit_data() {
        using enum cpu::KvType;
        QTest::addColumn<SyntheticModel>("model");
        QTest::addColumn<cpu::KvType>("kv_type");
        QTest::newRow("llama, window") << with(SyntheticModel(), [](auto& m) { m.window = 100; }) << f16;
        QTest::newRow("qwen3, Q8_0") << with(qwen3(), [](auto& m) { m.type = gguf::TensorType::q8_0; }) << f16;
        QTest::newRow("qwen3moe, Q8_0") << with(qwen3moe(), [](auto& m) { m.type = gguf::TensorType::q8_0; }) << f16;
        QTest::newRow("llama, window, 8-bit keys") << with(SyntheticModel(), [](auto& m) { m.window = 100, m.head_dim = 32; }) << q8_0;
        QTest::newRow("qwen3moe, Q8_0, 8-bit keys") << with(qwen3moe(), [](auto& m) { m.type = gguf::TensorType::q8_0, m.head_dim = 64; }) << q8_0;
    }

    void batches_do_not_change_a_bit() {
        QFETCH(SyntheticModel, model);
        QFETCH(const cpu::KvType, kv_type);
        const auto bytes = synthetic_bytes(model);
        ModelRunner runner(must(gguf::File::parse(bytes, "synthetic.gguf")), 2, kv_type);
        ModelRunner alone(must(gguf::File::parse(bytes, "synthetic.gguf")), 1, kv_type);
        const auto tokens = random_tokens(300, 4);
        const auto positions = all_positions(tokens.size());
        const Logits whole = runner.read(tokens, positions);
        QVERIFY(same_bits(whole, runner.read(tokens, positions, 1)));
        QVERIFY(same_bits(whole, runner.read(tokens, positions, 37)));
        QVERIFY(same_bits(whole, alone.read(tokens, positions, 250)));
    }

    void a_truncated_cache_goes_on_as_a_new_one() {
        const auto bytes = synthetic_bytes(qwen3moe());
        ModelRunner runner(must(gguf::File::parse(bytes, "synthetic.gguf")));
        const auto first = random_tokens(290, 5);
        auto second = random_tokens(290, 6);
        std::copy_n(first.begin(), 200, second.begin());
        const std::vector<int> last{static_cast<int>(second.size()) - 1};

        model::KvCache cache = runner.new_cache();
        runner.read(cache, first, {});
        const auto two_pages = cache.allocated_bytes();
        cache.truncate(200);
        QCOMPARE(cache.length(), 200);
        QCOMPARE(cache.allocated_bytes() * 2, two_pages);
        const std::vector<int> last_of_rest{89};
        QVERIFY(same_bits(runner.read(cache, std::span(second).subspan(200), last_of_rest), runner.read(second, last)));
    }

    void cancelling_leaves_the_cache_as_it_was() {
        const auto bytes = synthetic_bytes(qwen3());
        ModelRunner runner(must(gguf::File::parse(bytes, "synthetic.gguf")));
        const auto tokens = random_tokens(60, 7);
        const std::vector<int> last{59};
        model::KvCache cache = runner.new_cache();
        runner.read(cache, std::span(tokens).first(40), {});

        std::stop_source stop;
        stop.request_stop();
        bool called = false;
        const auto result = runner.forward().run({.cache = cache, .tokens = std::span(tokens).subspan(40), .rows = {}},
                                                 [&](std::int32_t, std::span<float>) { called = true; }, stop.get_token());
        QVERIFY(!result);
        QCOMPARE(result.error().kind, ErrorKind::cancelled);
        QVERIFY(!called);
        QCOMPARE(cache.length(), 40);
        const std::vector<int> last_of_rest{19};
        QVERIFY(same_bits(runner.read(cache, std::span(tokens).subspan(40), last_of_rest), runner.read(tokens, last)));
    }

    void refuses_tokens_outside_the_vocabulary() {
        const auto bytes = synthetic_bytes({});
        ModelRunner runner(must(gguf::File::parse(bytes, "synthetic.gguf")));
        model::KvCache cache = runner.new_cache();
        for (const std::int32_t token : {-1, kSyntheticVocabulary}) {
            const auto result = runner.forward().run({.cache = cache, .tokens = std::span(&token, 1), .rows = {}},
                                                     [](std::int32_t, std::span<float>) {});
            QVERIFY(!result);
            QCOMPARE(result.error().kind, ErrorKind::invalid_argument);
        }
        QCOMPARE(cache.length(), 0);
    }
};

QTEST_GUILESS_MAIN(TstForward)
#include "tst_forward.moc"
