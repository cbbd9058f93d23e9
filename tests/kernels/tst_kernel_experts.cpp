#include <QTest>

#include <cmath>
#include <numeric>

#include "core/compute/cpu/ops.h"
#include "tests/compute/random_data.h"
#include "tests/kernels/quantized_rows.h"
#include "tests/simgpu/simulated_images.h"

using namespace headroom;
using namespace headroom::test;
using kernels::ExpertAddresses;

namespace {

const Layout& layout(const char* name) {
    return *std::ranges::find_if(layouts(), [&](const Layout& l) { return !std::strcmp(l.name, name); });
}

// A layer of experts, here and on the device; those in `absent` have no addresses.
struct Experts {
    Experts(KernelDevice& device, const Layout& gate_type, const Layout& up_type, const Layout& down_type, std::int32_t count, std::int32_t width,
            std::int32_t hidden, const std::vector<int>& absent, Random& random)
        : table(device, static_cast<std::size_t>(count)) {
        std::vector<ExpertAddresses> addresses;
        for (std::int32_t e = 0; e < count; ++e) {
            gate.push_back(std::make_unique<Weights>(device, gate_type, hidden, width, random));
            up.push_back(std::make_unique<Weights>(device, up_type, hidden, width, random));
            down.push_back(std::make_unique<Weights>(device, down_type, width, hidden, random));
            here.push_back(std::ranges::find(absent, e) == absent.end());
            addresses.push_back(here.back() ? ExpertAddresses{gate.back()->matrix().data, up.back()->matrix().data, down.back()->matrix().data}
                                            : ExpertAddresses{});
        }
        table.write(addresses);
        shape = {.gate_type = gate[0]->matrix().type,
                 .up_type = up[0]->matrix().type,
                 .down_type = down[0]->matrix().type,
                 .gate_row_bytes = gate[0]->matrix().row_bytes,
                 .up_row_bytes = up[0]->matrix().row_bytes,
                 .down_row_bytes = down[0]->matrix().row_bytes,
                 .experts = count,
                 .used = 0,
                 .width = width,
                 .hidden = hidden};
    }
    std::vector<std::unique_ptr<Weights>> gate, up, down;
    std::vector<bool> here;
    Array<ExpertAddresses> table;
    kernels::ExpertShape shape;
};

// `used` different experts for each token.
std::vector<std::int32_t> choices(std::int64_t tokens, std::int32_t used, std::int32_t experts, Random& random) {
    std::vector<std::int32_t> all(static_cast<std::size_t>(experts)), out;
    std::iota(all.begin(), all.end(), 0);
    for (std::int64_t t = 0; t < tokens; ++t) {
        for (std::int32_t i = 0; i < used; ++i) std::swap(all[static_cast<std::size_t>(i)], all[static_cast<std::size_t>(i + random.below(experts - i))]);
        out.insert(out.end(), all.begin(), all.begin() + used);
    }
    return out;
}

std::vector<float> row(const std::vector<float>& values, std::size_t number, std::size_t n) {
    return {values.begin() + static_cast<std::ptrdiff_t>(number * n), values.begin() + static_cast<std::ptrdiff_t>((number + 1) * n)};
}

}  // namespace

class TestKernelExperts : public QObject {
    Q_OBJECT
private slots:
    void initTestCase_data() { KernelDevice::list(); }

    void theRouterChoosesAsTheCpu() {
        auto& device = KernelDevice::chosen();
        Random random(1);
        struct Case {
            const char* type;
            std::int32_t experts, used, width;
            bool normalize;
            std::int32_t tokens;
        };
        for (const Case& c : {Case{"F32", 128, 8, 512, true, 1}, Case{"F32", 20, 3, 256, true, 5}, Case{"F16", 5, 5, 256, false, 1},
                              Case{"Q8_0", 32, 4, 768, true, 3}, Case{"Q6_K", 65, 16, 256, true, 2}, Case{"BF16", 1, 1, 256, true, 1}}) {
            const auto tokens = static_cast<std::size_t>(c.tokens);
            const Weights w(device, layout(c.type), c.experts, c.width, random);
            const auto values = random.values(c.tokens * c.width), weight = random.values(c.width);
            std::vector<float> normed(values.size());
            for (std::size_t at = 0; at < normed.size(); at += std::size_t(c.width)) {
                cpu::reference::rms_norm(values.data() + at, c.width, weight.data(), 1e-5F, normed.data() + at);
            }
            Rows x(device, normed, c.tokens, c.width);
            const Array<float> there(device, values), norm(device, weight), out(device, values.size()), scores(device, tokens * std::size_t(c.experts));
            const Array<std::int8_t> codes_256(device, values.size()), codes_32(device, values.size());
            const Array<float> scales_256(device, values.size() / 256), scales_32(device, values.size() / 32);
            const Array<std::int16_t> sums_256(device, values.size() / 16), sums_32(device, values.size() / 16);
            const Array<std::int32_t> chosen(device, tokens * std::size_t(c.used)), ticket(device, std::vector<std::int32_t>(tokens));
            const Array<float> shares(device, tokens * std::size_t(c.used));
            for (int turn = 0; turn < 2; ++turn) {
                REQUIRE(kernels::router_row(device.queue(), {.w = w.matrix(),
                                                             .x = there.data(),
                                                             .norm = norm.data(),
                                                             .epsilon = 1e-5F,
                                                             .used = c.used,
                                                             .normalize = c.normalize,
                                                             .normed = out.data(),
                                                             .groups_256 = {codes_256.data(), scales_256.data(), sums_256.data()},
                                                             .groups_32 = {codes_32.data(), scales_32.data(), sums_32.data()},
                                                             .scores = scores.data(),
                                                             .chosen = chosen.data(),
                                                             .shares = shares.data(),
                                                             .ticket = ticket.data(),
                                                             .tokens = c.tokens}));
                const auto expected = x.product(w.here.matrix);
                std::vector<std::int32_t> experts(tokens * static_cast<std::size_t>(c.used));
                std::vector<float> weights(experts.size());
                cpu::route(expected.data(), c.tokens, c.experts, c.used, c.normalize, experts.data(), weights.data());
                QCOMPARE(difference(out.read(), normed), QByteArray());
                QCOMPARE(codes_256.read(), x.codes_of(256));
                QVERIFY(same_bits(scales_256.read(), x.scales_of(256)));
                QCOMPARE(sums_256.read(), x.sums_of(256));
                QCOMPARE(codes_32.read(), x.codes_of(32));
                QVERIFY(same_bits(scales_32.read(), x.scales_of(32)));
                QCOMPARE(sums_32.read(), x.sums_of(32));
                QCOMPARE(difference(scores.read(), expected), QByteArray());
                QCOMPARE(chosen.read(), experts);
                QCOMPARE(difference(shares.read(), weights), QByteArray());
                QCOMPARE(ticket.read(), std::vector<std::int32_t>(tokens));
            }
        }
    }

    void manyTokensChooseAsTheCpu() {
        auto& device = KernelDevice::chosen();
        Random random(2);
        for (const auto& [experts, used] : {std::pair{128, 8}, {3, 2}, {512, 16}, {64, 1}}) {
            const std::int32_t tokens = 5;
            auto values = random.values(tokens * experts);
            for (float& value : values) value = std::round(4 * value) / 4;  // many ties
            const Array<float> scores(device, values), shares(device, std::size_t(tokens * used));
            const Array<std::int32_t> chosen(device, std::size_t(tokens * used));
            std::vector<std::int32_t> expected(chosen.size());
            std::vector<float> weights(expected.size());
            for (const bool normalize : {false, true}) {
                cpu::route(values.data(), tokens, experts, used, normalize, expected.data(), weights.data());
                REQUIRE(kernels::choose_experts(device.queue(), {scores.data(), tokens, experts, used, normalize, chosen.data(), shares.data()}));
                QCOMPARE(chosen.read(), expected);
                QCOMPARE(difference(shares.read(), weights), QByteArray());
            }
        }
    }
    // What is no number must not lead to an expert that does not exist, or to one twice.
    void scoresThatAreNoNumbersChooseExperts() {
        auto& device = KernelDevice::chosen();
        const Array<float> scores(device, 40), shares(device, 4);  // NaNs
        const Array<std::int32_t> chosen(device, 4);
        REQUIRE(kernels::choose_experts(device.queue(), {scores.data(), 1, 40, 4, 1, chosen.data(), shares.data()}));
        QCOMPARE(chosen.read(), (std::vector<std::int32_t>{0, 1, 2, 3}));
    }

    // Gate, up and down of a few tokens against the CPU's operators, every expert on the device.
    void aFewTokensAreTheCpus() {
        auto& device = KernelDevice::chosen();
        Random random(3);
        struct Case {
            const char *gate, *up, *down;
            std::int32_t experts, used, width, hidden, tokens;
        };
        for (const Case& c : {Case{"Q4_K", "Q4_K", "Q6_K", 8, 3, 512, 256, 1}, Case{"Q4_K", "Q5_K", "Q8_0", 4, 2, 256, 96, 3},
                              Case{"Q8_0", "Q8_0", "Q5_1", 16, 16, 288, 64, 1}, Case{"F16", "F32", "BF16", 4, 2, 77, 45, 2},
                              Case{"Q4_K", "Q4_K", "Q4_K", 8, 3, 512, 512, 5}, Case{"Q5_K", "Q5_K", "Q5_K", 6, 2, 768, 256, 2},
                              Case{"IQ4_XS", "IQ4_XS", "IQ4_NL", 4, 1, 256, 32, 2}, Case{"Q2_K", "Q3_K", "Q3_K", 5, 5, 256, 768, 1}}) {
            Experts e(device, layout(c.gate), layout(c.up), layout(c.down), c.experts, c.width, c.hidden, {}, random);
            e.shape.used = c.used;
            const auto chosen = choices(c.tokens, c.used, c.experts, random);
            Rows x(device, random.values(c.tokens * c.width), c.tokens, c.width);
            const auto shares = random.values(std::int64_t(chosen.size())), before = random.values(c.tokens * c.width);
            const Array<std::int32_t> there(device, chosen);
            const Array<float> there_shares(device, shares), y(device, before), hidden(device, chosen.size() * std::size_t(c.hidden));
            REQUIRE(kernels::experts_gate_up(device.queue(), {e.table.data(), e.shape, there.data(), c.tokens, x.x(), x.groups_256(), x.groups_32(),
                                                              hidden.data(), 1}));
            REQUIRE(kernels::experts_down(device.queue(), {e.table.data(), e.shape, there.data(), there_shares.data(), c.tokens, hidden.data(),
                                                           y.data(), nullptr}));
            std::vector<float> expected_hidden;
            auto expected = before;
            for (std::size_t t = 0; t < std::size_t(c.tokens); ++t) {
                Rows own(device, row(x.values, t, std::size_t(c.width)), 1, c.width);
                std::vector<std::vector<float>> outputs;
                std::vector<const float*> pointers;
                for (std::size_t rank = 0; rank < std::size_t(c.used); ++rank) {
                    const auto expert = std::size_t(chosen[t * std::size_t(c.used) + rank]);
                    auto middle = own.product(e.gate[expert]->here.matrix);
                    cpu::reference::swiglu(middle.data(), own.product(e.up[expert]->here.matrix).data(), c.hidden, middle.data());
                    expected_hidden.insert(expected_hidden.end(), middle.begin(), middle.end());
                    Rows middle_rows(device, middle, 1, c.hidden);
                    outputs.push_back(middle_rows.product(e.down[expert]->here.matrix));
                }
                for (const auto& output : outputs) pointers.push_back(output.data());
                cpu::reference::combine_experts(expected.data() + t * std::size_t(c.width), pointers.data(), shares.data() + t * std::size_t(c.used),
                                                c.used, c.width);
            }
            QCOMPARE(difference(hidden.read(), expected_hidden), QByteArray());
            QCOMPARE(difference(y.read(), expected), QByteArray());
        }
    }

    // Several tokens whose choices are grouped by expert: experts that one token has chosen, and some that most have.
    void groupedExpertsAreTheCpus() {
        auto& device = KernelDevice::chosen();
        Random random(9);
        struct Case {
            const char *gate, *down;
            std::int32_t experts, used, width, hidden, tokens;
        };
        for (const Case& c : {Case{"Q4_K", "Q4_K", 9, 3, 256, 1280, 3}, Case{"Q4_K", "Q6_K", 2, 1, 256, 256, 16}, Case{"Q5_K", "Q5_K", 7, 2, 1280, 256, 2},
                              Case{"Q6_K", "Q4_K", 3, 2, 2048, 256, 2}, Case{"Q4_K", "Q6_K", 20, 2, 256, 768, 2}}) {
            Experts e(device, layout(c.gate), layout(c.gate), layout(c.down), c.experts, c.width, c.hidden, {}, random);
            e.shape.used = c.used;
            if (!kernels::groups_experts(device.queue(), e.shape, c.tokens)) QSKIP("this card has no kernels that group experts");
            const auto chosen = choices(c.tokens, c.used, c.experts, random);
            Rows x(device, random.values(c.tokens * c.width), c.tokens, c.width);
            const auto shares = random.values(std::int64_t(chosen.size())), before = random.values(c.tokens * c.width);
            const Array<std::int32_t> there(device, chosen);
            const Array<float> there_shares(device, shares), y(device, before), hidden(device, chosen.size() * std::size_t(c.hidden));
            const Array<float> outputs(device, chosen.size() * std::size_t(c.width));
            const Array<std::uint8_t> list(device, std::size_t(kernels::few_list_bytes(std::int64_t(chosen.size()))));
            for (int turn = 0; turn < 2; ++turn) {
                REQUIRE(kernels::few_experts(device.queue(), {e.table.data(), e.shape, there.data(), c.tokens, x.x(), x.groups_256(), x.groups_32(), hidden.data(), 1},
                                                              {e.table.data(), e.shape, there.data(), there_shares.data(), c.tokens, hidden.data(), y.data(), outputs.data()},
                                                              list.data()));
            }
            std::vector<float> expected_hidden, expected;
            for (std::size_t i = 0; i < chosen.size(); ++i) {
                const auto expert = std::size_t(chosen[i]);
                Rows own(device, row(x.values, i / std::size_t(c.used), std::size_t(c.width)), 1, c.width);
                auto middle = own.product(e.gate[expert]->here.matrix);
                cpu::reference::swiglu(middle.data(), own.product(e.up[expert]->here.matrix).data(), c.hidden, middle.data());
                expected_hidden.insert(expected_hidden.end(), middle.begin(), middle.end());
                const auto output = Rows(device, middle, 1, c.hidden).product(e.down[expert]->here.matrix);
                expected.insert(expected.end(), output.begin(), output.end());
            }
            QCOMPARE(difference(hidden.read(), expected_hidden), QByteArray());
            QCOMPARE(difference(outputs.read(), expected), QByteArray());
            QCOMPARE(difference(y.read(), before), QByteArray());
        }
    }

    // A block of AMD's cards has at most 12 warps for the down matrices of one type, and a rank needs one of its own.
    void manyExpertsOfATokenAreTheCpusOnAmd() {
        auto& device = KernelDevice::chosen();
        if (!device.emulated()) QSKIP("a card is what it is");
        gpu::DeviceInfo card = device.queue().kernels.device();
        card.architecture = "gfx1100";
        auto loaded = kernels::Kernels::load(device.driver(), card, simulated_images());
        REQUIRE(loaded);
        const kernels::Queue queue{**loaded, device.queue().stream};
        Random random(11);
        const std::int32_t experts = 16, width = 256, hidden = 256;
        for (const std::int32_t used : {12, 13, 16}) {
            Experts e(device, layout("Q4_K"), layout("Q4_K"), layout("Q6_K"), experts, width, hidden, {}, random);
            e.shape.used = used;
            const auto chosen = choices(1, used, experts, random);
            const auto middle = random.values(used * hidden), shares = random.values(used), before = random.values(width);
            const Array<std::int32_t> there(device, chosen);
            const Array<float> there_hidden(device, middle), there_shares(device, shares), y(device, before);
            REQUIRE(kernels::experts_down(queue, {e.table.data(), e.shape, there.data(), there_shares.data(), 1, there_hidden.data(), y.data(), nullptr}));
            std::vector<std::vector<float>> outputs;
            std::vector<const float*> pointers;
            for (std::size_t rank = 0; rank < std::size_t(used); ++rank) {
                outputs.push_back(Rows(device, row(middle, rank, std::size_t(hidden)), 1, hidden).product(e.down[std::size_t(chosen[rank])]->here.matrix));
            }
            for (const auto& output : outputs) pointers.push_back(output.data());
            auto expected = before;
            cpu::reference::combine_experts(expected.data(), pointers.data(), shares.data(), used, width);
            QCOMPARE(difference(y.read(), expected), QByteArray());
        }
    }

    // The kernels of single types make one token's choice themselves, from the router's scores.
    void expertsChooseThemselves() {
        auto& device = KernelDevice::chosen();
        Random random(8);
        const std::int32_t experts = 70, used = 6, width = 256, hidden = 256;
        for (const bool normalize : {true, false}) {
            Experts e(device, layout("Q4_K"), layout("Q4_K"), layout("Q6_K"), experts, width, hidden, {}, random);
            e.shape.used = used;
            QVERIFY(kernels::chooses_by_itself(device.queue(), e.shape, 1));
            const Weights router(device, layout("F32"), experts, width, random);
            const auto values = random.values(width), weight = random.values(width);
            std::vector<float> normed(values.size());
            cpu::reference::rms_norm(values.data(), width, weight.data(), 1e-5F, normed.data());
            Rows x(device, normed, 1, width);
            const Array<float> there(device, values), norm(device, weight), out(device, values.size()), scores(device, std::size_t(experts));
            const Array<float> shares(device, std::size_t(used)), there_hidden(device, std::size_t(used * hidden));
            const Array<std::int32_t> chosen(device, std::size_t(used)), counts(device, std::vector<std::int32_t>(std::size_t(experts), 5));
            REQUIRE(kernels::router_row(device.queue(), {.w = router.matrix(), .x = there.data(), .norm = norm.data(), .epsilon = 1e-5F, .used = used,
                                                         .normalize = normalize, .normed = out.data(), .groups_256 = x.groups_256(), .groups_32 = {},
                                                         .scores = scores.data(), .chosen = nullptr, .shares = nullptr, .ticket = nullptr, .tokens = 1}));
            REQUIRE(kernels::experts_gate_up(device.queue(), {e.table.data(), e.shape, chosen.data(), 1, out.data(), x.groups_256(), {},
                                                              there_hidden.data(), 1, scores.data(), normalize, shares.data(), counts.data()}));
            const auto expected = x.product(router.here.matrix);
            std::vector<std::int32_t> choice(static_cast<std::size_t>(used));
            std::vector<float> weights(choice.size()), expected_hidden;
            cpu::route(expected.data(), 1, experts, used, normalize, choice.data(), weights.data());
            QCOMPARE(chosen.read(), choice);
            std::vector<std::int32_t> counted(std::size_t(experts), 5);
            for (const std::int32_t expert : choice) ++counted[std::size_t(expert)];
            QCOMPARE(counts.read(), counted);
            QCOMPARE(difference(shares.read(), weights), QByteArray());
            for (const std::int32_t expert : choice) {
                auto middle = x.product(e.gate[std::size_t(expert)]->here.matrix);
                cpu::reference::swiglu(middle.data(), x.product(e.up[std::size_t(expert)]->here.matrix).data(), hidden, middle.data());
                expected_hidden.insert(expected_hidden.end(), middle.begin(), middle.end());
            }
            QCOMPARE(difference(there_hidden.read(), expected_hidden), QByteArray());
        }
    }

    // The kernels that group the choices of several tokens by expert make them, too.
    void groupedExpertsChooseThemselves() {
        auto& device = KernelDevice::chosen();
        Random random(10);
        const std::int32_t tokens = 3, width = 256, hidden = 256;
        for (const auto& [experts, used] : {std::pair{40, 3}, {7, 7}, {200, 2}}) {
            Experts e(device, layout("Q4_K"), layout("Q4_K"), layout("Q4_K"), experts, width, hidden, {}, random);
            e.shape.used = used;
            if (!kernels::groups_experts(device.queue(), e.shape, tokens)) QSKIP("this card has no kernels that group experts");
            const auto choices_made = static_cast<std::size_t>(tokens * used);
            auto scores = random.values(std::int64_t{tokens} * experts);
            for (float& score : scores) score = std::round(4 * score) / 4;  // many ties, -0 among them
            Rows x(device, random.values(tokens * width), tokens, width);
            const Array<float> there(device, scores), shares(device, choices_made), there_hidden(device, choices_made * hidden), outputs(device, choices_made * width);
            const Array<std::int32_t> chosen(device, choices_made), counts(device, std::vector<std::int32_t>(std::size_t(experts), 5));
            const Array<std::uint8_t> list(device, std::size_t(kernels::few_list_bytes(tokens * used)));
            REQUIRE(kernels::few_experts(device.queue(), {e.table.data(), e.shape, chosen.data(), tokens, x.x(), x.groups_256(), {}, there_hidden.data(), 1, there.data(), 1,
                                                           shares.data(), counts.data()},
                                                          {e.table.data(), e.shape, chosen.data(), shares.data(), tokens, there_hidden.data(), nullptr, outputs.data()},
                                                          list.data()));
            std::vector<std::int32_t> choice(choices_made), counted(std::size_t(experts), 5);
            std::vector<float> weights(choices_made), expected;
            cpu::route(scores.data(), tokens, experts, used, true, choice.data(), weights.data());
            QCOMPARE(chosen.read(), choice);
            QCOMPARE(difference(shares.read(), weights), QByteArray());
            for (const std::int32_t expert : choice) ++counted[std::size_t(expert)];
            QCOMPARE(counts.read(), counted);
            for (std::size_t i = 0; i < choice.size(); ++i) {
                const auto expert = std::size_t(choice[i]);
                Rows own(device, row(x.values, i / std::size_t(used), std::size_t(width)), 1, width);
                auto middle = own.product(e.gate[expert]->here.matrix);
                cpu::reference::swiglu(middle.data(), own.product(e.up[expert]->here.matrix).data(), hidden, middle.data());
                const auto output = Rows(device, middle, 1, hidden).product(e.down[expert]->here.matrix);
                expected.insert(expected.end(), output.begin(), output.end());
            }
            QCOMPARE(difference(outputs.read(), expected), QByteArray());
        }
    }

    // Absent experts are left to the host, whose outputs combine_rows takes.
    void absentExpertsAreTheHosts_data() {
        QTest::addColumn<QString>("down");
        QTest::addColumn<bool>("together");
        QTest::newRow("any types") << "Q4_0" << false;
        QTest::newRow("single types") << "Q6_K" << false;
        QTest::newRow("grouped") << "Q6_K" << true;
    }
    void absentExpertsAreTheHosts() {
        QFETCH(QString, down);
        QFETCH(bool, together);
        auto& device = KernelDevice::chosen();
        Random random(4);
        const std::int32_t width = 256, hidden = 256, tokens = 3, used = 2;
        Experts e(device, layout("Q4_K"), layout("Q4_K"), layout(down.toUtf8().constData()), 4, width, hidden, {1, 3}, random);
        e.shape.used = used;
        if (together && !kernels::groups_experts(device.queue(), e.shape, tokens)) QSKIP("this card has no kernels that group experts");
        const std::vector<std::int32_t> chosen = {0, 1, 3, 2, 2, 0};
        Rows x(device, random.values(tokens * width), tokens, width);
        const auto shares = random.values(6), before = random.values(tokens * width), from_host = random.values(6 * width);
        const Array<std::int32_t> there(device, chosen);
        const Array<float> there_shares(device, shares), y(device, before), there_hidden(device, 6 * hidden), outputs(device, 6 * width);
        const Array<float> host_outputs(device, from_host);
        const Array<std::uint8_t> list(device, std::size_t(kernels::few_list_bytes(tokens * used)));
        const kernels::ExpertsGateUpArguments gate_up{e.table.data(), e.shape, there.data(), tokens, x.x(), x.groups_256(), x.groups_32(), there_hidden.data(), 0};
        const kernels::ExpertsDownArguments down_of{e.table.data(), e.shape, there.data(), there_shares.data(), tokens, there_hidden.data(), y.data(), outputs.data()};
        if (together) {
            REQUIRE(kernels::few_experts(device.queue(), gate_up, down_of, list.data()));
        } else {
            REQUIRE(kernels::experts_gate_up(device.queue(), gate_up));
            REQUIRE(kernels::experts_down(device.queue(), down_of));
        }
        QCOMPARE(difference(y.read(), before), QByteArray());
        REQUIRE(kernels::combine_rows(device.queue(), {e.table.data(), there.data(), there_shares.data(), outputs.data(), host_outputs.data(), y.data(),
                                                       tokens, used, width}));
        const auto seen = outputs.read();
        auto expected = before;
        std::vector<const float*> pointers;
        for (std::size_t c = 0; c < chosen.size(); ++c) {
            const bool here = e.here[std::size_t(chosen[c])];
            const auto own = row(seen, c, std::size_t(width));
            QCOMPARE(std::ranges::all_of(own, [](float v) { return std::isnan(v); }), !here);  // only its own rows are written
            if (here) {
                Rows token(device, row(x.values, c / used, std::size_t(width)), 1, width);
                const auto expert = std::size_t(chosen[c]);
                auto middle = token.product(e.gate[expert]->here.matrix);
                cpu::reference::swiglu(middle.data(), token.product(e.up[expert]->here.matrix).data(), hidden, middle.data());
                QCOMPARE(difference(own, Rows(device, middle, 1, hidden).product(e.down[expert]->here.matrix)), QByteArray());
            }
            pointers.push_back((here ? seen.data() : from_host.data()) + c * std::size_t(width));
        }
        for (std::size_t t = 0; t < std::size_t(tokens); ++t) {
            cpu::reference::combine_experts(expected.data() + t * std::size_t(width), pointers.data() + t * used, shares.data() + t * used, used, width);
        }
        QCOMPARE(difference(y.read(), expected), QByteArray());
    }

    // Many tokens: the rows of x by token (gate) and by choice (down); an expert that is not there, one without choices, one with many.
    void tilesOfExpertsAreTheCpus() {
        auto& device = KernelDevice::chosen();
        Random random(7);
        for (const char* type : {"Q4_K", "Q6_K", "Q8_0", "IQ4_XS"}) {
            const std::int32_t width = 512, hidden = 256, tokens = device.emulated() ? 45 : 400, used = 2, count = 5;
            const Layout& layout_of = layout(type);
            Experts e(device, layout_of, layout_of, layout_of, count, width, hidden, {2}, random);
            auto chosen = choices(tokens, used, count, random);
            for (std::size_t i = 0; i < chosen.size(); ++i) {
                if (i % 2 == 0) chosen[i] = 0;  // most of them; nobody needs expert 4
                if (i % 2 == 1) chosen[i] = 1 + chosen[i] % 3;
            }
            const auto total = static_cast<std::int32_t>(chosen.size());
            const Array<std::int32_t> there(device, chosen), offsets(device, std::size_t(count + 1)), rows(device, chosen.size());
            REQUIRE(kernels::group_rows(device.queue(), {there.data(), total, count, offsets.data(), rows.data()}));
            for (const std::int32_t which : {0, 1, 2}) {
                const bool down = which == 2;
                const std::int32_t outputs = down ? width : hidden, inputs = down ? hidden : width;
                Rows x(device, random.values(std::int64_t(down ? total : tokens) * inputs), down ? total : tokens, inputs);
                const Array<float> y(device, std::size_t(total) * std::size_t(outputs));
                const auto& weights = which == 0 ? e.gate : which == 1 ? e.up : e.down;
                REQUIRE(kernels::experts_tiles(device.queue(), layout_of.type,
                                               {.table = e.table.data(),
                                                .which = which,
                                                .rows = outputs,
                                                .cols = inputs,
                                                .row_bytes = weights[0]->matrix().row_bytes,
                                                .experts = count,
                                                .choices = total,
                                                .divisor = down ? 1 : used,
                                                .offsets = offsets.data(),
                                                .grouped = rows.data(),
                                                .x = layout_of.elements == 256 ? x.groups_256() : x.groups_32(),
                                                .y = y.data()}));
                const auto seen = y.read();
                for (std::size_t c = 0; c < chosen.size(); ++c) {
                    const auto own = row(seen, c, std::size_t(outputs));
                    const auto expert = std::size_t(chosen[c]);
                    if (!e.here[expert]) {
                        QVERIFY(std::ranges::all_of(own, [](float v) { return std::isnan(v); }));
                        continue;
                    }
                    std::vector<float> expected;
                    const auto token = static_cast<std::int64_t>(down ? c : c / std::size_t(used));
                    for (std::int64_t r = 0; r < outputs; ++r) {
                        expected.push_back(cpu::reference::dot(weights[expert]->here.matrix, r, x.activations.storage(), token));
                    }
                    QCOMPARE(difference(own, expected), QByteArray());
                }
            }
        }
    }

    void choicesAreSorted() {
        auto& device = KernelDevice::chosen();
        Random random(5);
        for (const auto& [experts, used, tokens] : {std::tuple{4, 2, 5}, {128, 8, 40}, {3, 1, 2000}, {1, 1, 1}, {16, 4, 0}}) {
            const auto chosen = choices(tokens, used, experts, random);
            const Array<std::int32_t> there(device, chosen), offsets(device, std::size_t(experts + 1)), rows(device, chosen.size());
            REQUIRE(kernels::group_rows(device.queue(), {there.data(), static_cast<std::int32_t>(chosen.size()), experts, offsets.data(), rows.data()}));
            std::vector<std::int32_t> expected_offsets, expected_rows;
            for (std::int32_t e = 0; e < experts; ++e) {
                expected_offsets.push_back(static_cast<std::int32_t>(expected_rows.size()));
                for (std::size_t i = 0; i < chosen.size(); ++i) {
                    if (chosen[i] == e) expected_rows.push_back(static_cast<std::int32_t>(i));
                }
            }
            expected_offsets.push_back(static_cast<std::int32_t>(expected_rows.size()));
            QCOMPARE(offsets.read(), expected_offsets);
            QCOMPARE(rows.read(), expected_rows);
        }
    }

    void rowsAreHandedOver() {
        auto& device = KernelDevice::chosen();
        Random random(6);
        for (const std::int32_t width : {64, 45}) {
            const std::int32_t tokens = 3, used = 2;
            const auto values = random.values(tokens * width);
            const std::vector<std::int32_t> chosen = {5, 4, 3, 2, 1, 0};
            const Array<float> x(device, values), host_x(device, values.size());
            const Array<std::int32_t> there(device, chosen), host_chosen(device, chosen.size());
            const Array<std::uint32_t> counter(device, std::vector<std::uint32_t>{0xffffffffU}), flag(device, std::vector<std::uint32_t>{7});
            REQUIRE(kernels::hand_over(device.queue(), {x.data(), there.data(), tokens, width, used, host_x.data(), host_chosen.data(), counter.data(),
                                                        flag.data()}));
            REQUIRE(kernels::await_host(device.queue(), {counter.data(), flag.data()}));
            QCOMPARE(difference(host_x.read(), values), QByteArray());
            QCOMPARE(host_chosen.read(), chosen);
            QCOMPARE(flag.read()[0], 0U);  // the counter went round
        }
    }

    // Of six missing choices the device takes as many as the share says, as far as it knows where they lie in the host's memory.
    void missingChoicesArePlaced() {
        auto& device = KernelDevice::chosen();
        const std::int32_t experts = 6, tokens = 2, used = 4, width = 8;
        const Array<std::uint8_t> somewhere(device, std::vector<std::uint8_t>(64));
        const kernels::ExpertAddresses there{somewhere.data(), somewhere.data(), somewhere.data()}, nowhere{};
        const std::vector<kernels::ExpertAddresses> addresses = {nowhere, there, nowhere, nowhere, there, nowhere,  // 1 and 4 are on the device
                                                                 there, there, there, there, there, nowhere};       // the host's memory of 5 is not seen
        const std::vector<std::int32_t> chosen = {0, 1, 5, 2, 3, 4, 0, 2};
        constexpr std::int32_t no = kernels::kNotAsked;
        struct Case {
            double share;
            std::vector<std::int32_t> placed, asked;
        };
        const std::vector<Case> cases = {
            {0, chosen, chosen},
            {0.1, chosen, chosen},                                                  // 0.7 of one
            {0.15, {6, 1, 5, 2, 3, 4, 0, 2}, {no, 1, 5, 2, 3, 4, 0, 2}},
            {0.5, {6, 1, 5, 8, 3, 4, 0, 2}, {no, 1, 5, no, 3, 4, 0, 2}},            // three, of which 5 is the second
            {1, {6, 1, 5, 8, 9, 4, 6, 8}, {no, 1, 5, no, no, 4, no, no}},
        };
        for (const Case& one : cases) {
            const Array<kernels::ExpertAddresses> table(device, addresses);
            const Array<float> x(device, std::vector<float>(tokens * width, 1.5F)), host_x(device, std::size_t{tokens * width});
            const Array<std::int32_t> choices(device, chosen), host_chosen(device, chosen.size()), placed(device, chosen.size());
            const Array<std::uint32_t> counters(device, std::vector<std::uint32_t>{4, 2}), flags(device, std::vector<std::uint32_t>{4, 0, 5});
            const Array<std::uint32_t> share(device, std::vector<std::uint32_t>{static_cast<std::uint32_t>(one.share * kernels::kWholeShare)});
            REQUIRE(kernels::hand_over(device.queue(), {x.data(), choices.data(), tokens, width, used, host_x.data(), host_chosen.data(), counters.data(),
                                                        flags.data(), table.data(), counters.data() + 1, placed.data(), experts, share.data()}));
            REQUIRE(kernels::await_host(device.queue(), {counters.data() + 1, flags.data() + 2, flags.data() + 1}));
            QCOMPARE(placed.read(), one.placed);
            QCOMPARE(host_chosen.read(), one.asked);
            QCOMPARE(host_x.read(), x.read());
            QCOMPARE(counters.read(), (std::vector<std::uint32_t>{5, 5}));
            QCOMPARE(flags.read(), (std::vector<std::uint32_t>{5, 5, 5}));
        }
        // Where the device takes all, the host is not asked.
        const Array<kernels::ExpertAddresses> table(device, addresses);
        const Array<float> x(device, std::vector<float>(width, 1.5F)), host_x(device, std::size_t{width});
        const Array<std::int32_t> choices(device, std::vector<std::int32_t>{3, 1, 2, 0}), host_chosen(device, std::size_t{4}), placed(device, std::size_t{4});
        const Array<std::uint32_t> counters(device, std::vector<std::uint32_t>{4, 2}), flag(device, std::vector<std::uint32_t>{4});
        const Array<std::uint32_t> share(device, std::vector<std::uint32_t>{kernels::kWholeShare});
        const auto before = host_chosen.read();
        REQUIRE(kernels::hand_over(device.queue(), {x.data(), choices.data(), 1, width, used, host_x.data(), host_chosen.data(), counters.data(), flag.data(),
                                                    table.data(), counters.data() + 1, placed.data(), experts, share.data()}));
        QCOMPARE(placed.read(), (std::vector<std::int32_t>{9, 1, 8, 6}));
        QCOMPARE(counters.read(), (std::vector<std::uint32_t>{5, 2}));
        QCOMPARE(flag.read()[0], 4U);
        QCOMPARE(host_chosen.read(), before);
    }

    void wrongShapesAreRefused() {
        auto& device = KernelDevice::chosen();
        QVERIFY(!kernels::choose_experts(device.queue(), {nullptr, 1, 513, 8, 1, nullptr, nullptr}));
        QVERIFY(!kernels::choose_experts(device.queue(), {nullptr, 1, 4, 5, 1, nullptr, nullptr}));
        QVERIFY(!kernels::choose_experts(device.queue(), {nullptr, 1, 64, 17, 1, nullptr, nullptr}));
    }
};

QTEST_GUILESS_MAIN(TestKernelExperts)
#include "tst_kernel_experts.moc"
