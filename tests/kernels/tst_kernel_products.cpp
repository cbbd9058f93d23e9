#include <QTest>

#include "core/compute/cpu/ops.h"
#include "tests/compute/random_data.h"
#include "tests/kernels/quantized_rows.h"
#include "tests/simgpu/simulated_images.h"

using namespace headroom;
using namespace headroom::test;
using kernels::ProductArguments;
using kernels::Target;

class TestKernelProducts : public QObject {
    Q_OBJECT

    // cols: of a few blocks, and of several steps of a warp with an end that does not fill it.
    static std::vector<std::int64_t> widths(const Layout& layout, bool emulated) {
        std::vector<std::int64_t> widths = layout.elements == 256   ? std::vector<std::int64_t>{256, 768, 1280}
                                           : layout.elements == 32 ? std::vector<std::int64_t>{32, 160, 1184}
                                                                   : std::vector<std::int64_t>{1, 45, 320};
        if (!emulated) widths.push_back(layout.elements == 1 ? 2051 : 12288 + layout.elements);
        return widths;
    }

private slots:
    void initTestCase_data() { KernelDevice::list(); }

    void aRowIsTheCpus_data() {
        QTest::addColumn<int>("layout");
        for (std::size_t i = 0; i < layouts().size(); ++i) QTest::newRow(layouts()[i].name) << static_cast<int>(i);
    }
    // Every type by itself: bias and sum, an odd number of rows.
    void aRowIsTheCpus() {
        QFETCH(int, layout);
        auto& device = KernelDevice::chosen();
        const Layout& type = layouts()[static_cast<std::size_t>(layout)];
        Random random(static_cast<std::uint64_t>(layout) + 10);
        for (const std::int64_t cols : widths(type, device.emulated())) {
            const std::int64_t rows = device.emulated() ? 37 : 1501;
            const Weights w(device, type, rows, cols, random);
            Rows x(device, random.values(cols), 1, cols);
            const auto bias = random.values(rows), before = random.values(rows);
            const Array<float> there_bias(device, bias), y(device, before);
            ProductArguments arguments = {.targets = {{w.matrix(), there_bias.data(), y.data(), static_cast<std::int32_t>(rows), 1}},
                                          .target_count = 1,
                                          .swiglu = 0,
                                          .tokens = 1,
                                          .forms = x.forms(),
                                          .x = x.x(),
                                          .norm = nullptr,
                                          .epsilon = 0,
                                          .groups_256 = {},
                                          .groups_32 = {}};
            REQUIRE(kernels::product_row(device.queue(), arguments));
            auto expected = x.product(w.here.matrix);
            for (std::size_t r = 0; r < expected.size(); ++r) expected[r] = before[r] + (expected[r] + bias[r]);
            QCOMPARE(difference(y.read(), expected), QByteArray());
        }
    }

    void severalTokensAreTheCpus_data() { aRowIsTheCpus_data(); }
    void severalTokensAreTheCpus() {
        QFETCH(int, layout);
        auto& device = KernelDevice::chosen();
        const Layout& type = layouts()[static_cast<std::size_t>(layout)];
        Random random(static_cast<std::uint64_t>(layout) + 100);
        const auto all = widths(type, device.emulated());
        for (const std::int64_t tokens : device.emulated() ? std::vector<std::int64_t>{1, 2, 3, 5, 8, 19} : std::vector<std::int64_t>{1, 2, 4, 7, 8, 9, 64}) {
            const std::int64_t cols = all[static_cast<std::size_t>(tokens) % all.size()];
            const std::int64_t rows = device.emulated() ? 11 : 333;
            const Weights w(device, type, rows, cols, random);
            Rows x(device, random.values(tokens * cols), tokens, cols);
            const std::int64_t stride = rows + 3;
            const Array<float> y(device, static_cast<std::size_t>(tokens * stride));
            REQUIRE(kernels::product_rows(device.queue(), {.targets = {{w.matrix(), nullptr, y.data(), static_cast<std::int32_t>(stride), 0}},
                                                           .target_count = 1,
                                                           .swiglu = 0,
                                                           .tokens = static_cast<std::int32_t>(tokens),
                                                           .forms = x.forms(),
                                                           .x = x.x(),
                                                           .norm = nullptr,
                                                           .epsilon = 0,
                                                           .groups_256 = x.groups_256(),
                                                           .groups_32 = x.groups_32()}));
            const auto seen = y.read();
            std::vector<float> products;
            for (std::int64_t t = 0; t < tokens; ++t) products.insert(products.end(), seen.begin() + t * stride, seen.begin() + t * stride + rows);
            QCOMPARE(difference(products, x.product(w.here.matrix)), QByteArray());
            // Nothing between the rows was touched.
            for (std::int64_t t = 0; t < tokens; ++t) QVERIFY(std::isnan(seen[static_cast<std::size_t>(t * stride + rows)]));
        }
    }

    // Long rows of Q6_K have a kernel of their own for a few tokens: several pieces of a row, several tiles of four warps, a last tile that is not full.
    void longRowsOfQ6KAreTheCpus() {
        auto& device = KernelDevice::chosen();
        Random random(300);
        for (const std::int64_t tokens : {2, 8, 11}) {
            const std::int64_t cols = tokens == 8 ? 4096 : 2048, rows = device.emulated() ? 37 : 20011;
            const Weights w(device, *std::ranges::find_if(layouts(), [](const Layout& l) { return !std::strcmp(l.name, "Q6_K"); }), rows, cols, random);
            Rows x(device, random.values(tokens * cols), tokens, cols);
            const auto bias = random.values(rows), before = random.values(tokens * rows);
            const Array<float> there_bias(device, bias), y(device, before);
            REQUIRE(kernels::product_rows(device.queue(), {.targets = {{w.matrix(), there_bias.data(), y.data(), static_cast<std::int32_t>(rows), 1}},
                                                           .target_count = 1,
                                                           .swiglu = 0,
                                                           .tokens = static_cast<std::int32_t>(tokens),
                                                           .forms = x.forms(),
                                                           .x = x.x(),
                                                           .norm = nullptr,
                                                           .epsilon = 0,
                                                           .groups_256 = x.groups_256(),
                                                           .groups_32 = x.groups_32()}));
            auto expected = x.product(w.here.matrix);
            for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = before[i] + (expected[i] + bias[i % std::size_t(rows)]);
            QCOMPARE(difference(y.read(), expected), QByteArray());
        }
    }

    // Few rows have a warp for each superblock: one tile to a group of warps, two, groups of several sizes, matrices of all types. 17 superblocks: four warps to a tile.
    void fewRowsAreTheCpus() {
        auto& device = KernelDevice::chosen();
        // As many multiprocessors as give a group two tiles of these.
        gpu::DeviceInfo small = device.queue().kernels.device();
        small.multiprocessors = 3;
        std::unique_ptr<kernels::Kernels> of_small;
        if (device.emulated()) {
            auto loaded = kernels::Kernels::load(device.driver(), small, simulated_images());
            REQUIRE(loaded);
            of_small = std::move(*loaded);
        }
        const kernels::Queue queue = of_small ? kernels::Queue{*of_small, device.queue().stream} : device.queue();
        Random random(301);
        struct Case {
            std::int64_t cols, tokens;
            std::vector<std::pair<const char*, std::int64_t>> matrices;
        };
        std::vector<Case> cases = {{4096, 8, {{"Q4_K", 70}}}, {4352, 3, {{"Q4_K", 70}}}, {1280, 11, {{"Q5_K", 37}}}, {2048, 8, {{"Q4_K", 40}, {"Q5_K", 20}, {"Q6_K", 33}}}};
        if (!device.emulated()) cases.insert(cases.end(), {{4096, 8, {{"Q4_K", 2048}}}, {4096, 8, {{"Q4_K", 4090}}}, {2048, 8, {{"Q4_K", 4096}, {"Q4_K", 512}, {"Q6_K", 512}}}});
        for (const Case& c : cases) {
            Rows x(device, random.values(c.tokens * c.cols), c.tokens, c.cols);
            std::vector<std::unique_ptr<Weights>> weights;
            std::vector<std::unique_ptr<Array<float>>> biases, outputs;
            std::vector<std::vector<float>> expected;
            kernels::ProductArguments arguments{};
            for (const auto& [type, rows] : c.matrices) {
                const char* name = type;
                weights.push_back(std::make_unique<Weights>(device, *std::ranges::find_if(layouts(), [&](const Layout& l) { return !std::strcmp(l.name, name); }), rows, c.cols, random));
                const auto bias = random.values(rows), before = random.values(c.tokens * rows);
                biases.push_back(std::make_unique<Array<float>>(device, bias));
                outputs.push_back(std::make_unique<Array<float>>(device, before));
                const bool add = arguments.target_count != 1;
                expected.push_back(x.product(weights.back()->here.matrix));
                for (std::size_t i = 0; i < before.size(); ++i) {
                    const float product = expected.back()[i] + bias[i % static_cast<std::size_t>(rows)];
                    expected.back()[i] = add ? before[i] + product : product;
                }
                arguments.targets[arguments.target_count++] = {weights.back()->matrix(), biases.back()->data(), outputs.back()->data(), static_cast<std::int32_t>(rows), add ? 1 : 0};
            }
            arguments.tokens = static_cast<std::int32_t>(c.tokens);
            arguments.forms = x.forms();
            arguments.x = x.x();
            arguments.groups_256 = x.groups_256();
            REQUIRE(kernels::product_rows(queue, arguments));
            for (std::size_t i = 0; i < outputs.size(); ++i) QCOMPARE(difference(outputs[i]->read(), expected[i]), QByteArray());
        }
    }

    void tilesAreTheCpus_data() { aRowIsTheCpus_data(); }
    void tilesAreTheCpus() {
        QFETCH(int, layout);
        auto& device = KernelDevice::chosen();
        const Layout& type = layouts()[static_cast<std::size_t>(layout)];
        QCOMPARE(kernels::has_tiles(type.type), type.elements > 1);
        if (type.elements == 1) return;
        Random random(static_cast<std::uint64_t>(layout) + 200);
        auto all = widths(type, device.emulated());
        all.push_back(2048 + type.elements);
        for (const std::int64_t tokens : device.emulated() ? std::vector<std::int64_t>{70} : std::vector<std::int64_t>{1, 31, 64, 65, 500}) {
            for (const std::int64_t cols : all) {
                const std::int64_t rows = device.emulated() ? 67 : 259, stride = rows + 3;
                const Weights w(device, type, rows, cols, random);
                Rows x(device, random.values(tokens * cols), tokens, cols);
                const auto bias = random.values(rows), before = random.values(tokens * stride);
                const Array<float> there_bias(device, bias), y(device, before);
                REQUIRE(kernels::product_tiles(device.queue(), {{w.matrix(), there_bias.data(), y.data(), static_cast<std::int32_t>(stride), 1},
                                                                type.elements == 256 ? x.groups_256() : x.groups_32(),
                                                                static_cast<std::int32_t>(tokens)}));
                const auto products = x.product(w.here.matrix);
                auto expected = before;
                for (std::int64_t t = 0; t < tokens; ++t) {
                    for (std::int64_t r = 0; r < rows; ++r) {
                        float& value = expected[static_cast<std::size_t>(t * stride + r)];
                        value = value + (products[static_cast<std::size_t>(t * rows + r)] + bias[static_cast<std::size_t>(r)]);
                    }
                }
                QCOMPARE(difference(y.read(), expected), QByteArray());
            }
        }
    }

    // q, k and v: three types in one launch, after a norm.
    void typesMixBehindANorm() {
        auto& device = KernelDevice::chosen();
        Random random(5);
        const std::vector<std::array<const char*, 3>> mixes = {{"Q4_K", "Q6_K", "Q8_0"}, {"F32", "Q4_0", "Q5_K"}, {"BF16", "F16", "F32"}};
        const auto layout = [](const char* name) { return *std::ranges::find_if(layouts(), [&](const Layout& l) { return !std::strcmp(l.name, name); }); };
        for (const auto& mix : mixes) {
            const std::int64_t cols = 768, rows[3] = {20, 5, 6};
            const Weights w[3] = {{device, layout(mix[0]), rows[0], cols, random},
                                  {device, layout(mix[1]), rows[1], cols, random},
                                  {device, layout(mix[2]), rows[2], cols, random}};
            const auto values = random.values(cols), weight = random.values(cols);
            const float epsilon = 1e-6F;
            std::vector<float> normed(values.size());
            cpu::reference::rms_norm(values.data(), cols, weight.data(), epsilon, normed.data());
            Rows x(device, normed, 1, cols);
            const Array<float> there_x(device, values), there_weight(device, weight);
            const Array<float> y[3] = {{device, 20}, {device, 5}, {device, 6}};
            ProductArguments arguments = {.targets = {},
                                          .target_count = 3,
                                          .swiglu = 0,
                                          .tokens = 1,
                                          .forms = kAllForms,
                                          .x = there_x.data(),
                                          .norm = there_weight.data(),
                                          .epsilon = epsilon,
                                          .groups_256 = {},
                                          .groups_32 = {}};
            for (int i = 0; i < 3; ++i) arguments.targets[i] = {w[i].matrix(), nullptr, y[i].data(), static_cast<std::int32_t>(rows[i]), 0};
            REQUIRE(kernels::product_row(device.queue(), arguments));
            for (int i = 0; i < 3; ++i) QCOMPARE(difference(y[i].read(), x.product(w[i].here.matrix)), QByteArray());
        }
    }

    // The same for several tokens, in types that go to the matrix units: tiles with an end that does not fill them.
    void typesMixForSeveralTokens() {
        auto& device = KernelDevice::chosen();
        Random random(9);
        const auto layout = [](const char* name) { return *std::ranges::find_if(layouts(), [&](const Layout& l) { return !std::strcmp(l.name, name); }); };
        for (const std::int64_t tokens : {2, 8, 11}) {
            const std::int64_t cols = 1280, rows[3] = {70, 5, 33};
            const Weights w[3] = {{device, layout("Q4_K"), rows[0], cols, random},
                                  {device, layout("Q6_K"), rows[1], cols, random},
                                  {device, layout("Q5_K"), rows[2], cols, random}};
            Rows x(device, random.values(tokens * cols), tokens, cols);
            const Array<float> y[3] = {{device, std::size_t(tokens * 70)}, {device, std::size_t(tokens * 5)}, {device, std::size_t(tokens * 33)}};
            ProductArguments arguments = {.targets = {}, .target_count = 3, .swiglu = 0, .tokens = static_cast<std::int32_t>(tokens), .forms = kAllForms,
                                          .x = x.x(), .norm = nullptr, .epsilon = 0, .groups_256 = x.groups_256(), .groups_32 = x.groups_32()};
            for (int i = 0; i < 3; ++i) arguments.targets[i] = {w[i].matrix(), nullptr, y[i].data(), static_cast<std::int32_t>(rows[i]), 0};
            REQUIRE(kernels::product_rows(device.queue(), arguments));
            for (int i = 0; i < 3; ++i) QCOMPARE(difference(y[i].read(), x.product(w[i].here.matrix)), QByteArray());
        }
    }

    // Gate and up in one launch, of one type or of two, for one token and for several.
    void gateAndUpAreMultiplied() {
        auto& device = KernelDevice::chosen();
        Random random(6);
        const auto& all = layouts();
        for (const auto& [gate_type, up_type] : {std::pair{10, 10}, {12, 12}, {10, 12}, {7, 10}, {0, 7}}) {
            for (const std::int64_t tokens : {1, 2, 3, 6}) {
                const std::int64_t cols = 512, rows = 13;
                const Weights gate(device, all[static_cast<std::size_t>(gate_type)], rows, cols, random);
                const Weights up(device, all[static_cast<std::size_t>(up_type)], rows, cols, random);
                Rows x(device, random.values(tokens * cols), tokens, cols);
                const Array<float> y(device, static_cast<std::size_t>(tokens * rows));
                const ProductArguments arguments = {
                    .targets = {{gate.matrix(), nullptr, y.data(), static_cast<std::int32_t>(rows), 0}, {up.matrix(), nullptr, nullptr, 0, 0}},
                    .target_count = 2,
                    .swiglu = 1,
                    .tokens = static_cast<std::int32_t>(tokens),
                    .forms = x.forms(),
                    .x = x.x(),
                    .norm = nullptr,
                    .epsilon = 0,
                    .groups_256 = x.groups_256(),
                    .groups_32 = x.groups_32()};
                if (tokens == 1) {
                    REQUIRE(kernels::product_row(device.queue(), arguments));
                } else {
                    REQUIRE(kernels::product_rows(device.queue(), arguments));
                }
                auto expected = x.product(gate.here.matrix);
                cpu::reference::swiglu(expected.data(), x.product(up.here.matrix).data(), tokens * rows, expected.data());
                QCOMPARE(difference(y.read(), expected), QByteArray());
            }
        }
    }

    void wrongShapesAreRefused() {
        auto& device = KernelDevice::chosen();
        Random random(7);
        const Weights w(device, layouts()[10], 4, 256, random);
        ProductArguments arguments = {};
        arguments.targets[0].w = w.matrix();
        arguments.target_count = 1;
        arguments.tokens = 1;
        arguments.forms = kernels::kForm32;
        QVERIFY(!kernels::product_row(device.queue(), arguments));  // the type needs the other form
        arguments.forms = kernels::kForm256;
        arguments.tokens = 2;
        QVERIFY(!kernels::product_row(device.queue(), arguments));
        arguments.tokens = 1;
        arguments.targets[0].w.cols = 250;
        QVERIFY(!kernels::product_row(device.queue(), arguments));
        QVERIFY(!kernels::product_rows(device.queue(), arguments));
        arguments.targets[0].w.cols = 256;
        arguments.swiglu = 1;
        QVERIFY(!kernels::product_rows(device.queue(), arguments));
    }
};

QTEST_GUILESS_MAIN(TestKernelProducts)
#include "tst_kernel_products.moc"
