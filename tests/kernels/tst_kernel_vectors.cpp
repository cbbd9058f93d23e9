#include <QTest>

#include "core/compute/cpu/reference.h"
#include "tests/compute/random_data.h"
#include "tests/kernels/kernel_device.h"

using namespace headroom;
using namespace headroom::test;

namespace {

// The quantized forms of rows on the device, where wanted.
struct Forms {
    Forms(KernelDevice& device, std::int64_t rows, std::int64_t n, int group, bool want)
        : codes(device, want ? static_cast<std::size_t>(rows * n) : 0), scales(device, static_cast<std::size_t>(rows * (n / group))),
          sums(device, static_cast<std::size_t>(rows * (n / 16))), wanted(want) {}
    kernels::Quantized get() const {
        return wanted ? kernels::Quantized{codes.data(), scales.data(), sums.data()} : kernels::Quantized{};
    }
    Array<std::int8_t> codes;
    Array<float> scales;
    Array<std::int16_t> sums;
    bool wanted;
};

// Compares both forms with those of the rows x.
QByteArray forms_difference(const std::vector<float>& x, std::int64_t rows, std::int64_t n, const Forms& groups_256, const Forms& groups_32) {
    std::vector<std::int8_t> codes;
    std::vector<float> scales;
    std::vector<std::int16_t> sums;
    const auto sum_up = [&](const std::int8_t* q, int count) {
        for (int i = 0; i < count; i += 16) {
            int sum = 0;
            for (int k = 0; k < 16; ++k) sum += q[i + k];
            sums.push_back(static_cast<std::int16_t>(sum));
        }
        codes.insert(codes.end(), q, q + count);
    };
    const auto compare = [&](const Forms& forms) -> QByteArray {
        if (!same_bits(forms.codes.read(), codes)) return "codes";
        if (!same_bits(forms.sums.read(), sums)) return "sums";
        return difference(forms.scales.read(), scales);
    };
    if (groups_256.wanted) {
        for (std::int64_t i = 0; i < rows * n; i += 256) {
            cpu::Group256 group;
            cpu::reference::quantize(x.data() + i, group);
            sum_up(group.q, 256);
            scales.push_back(group.scale);
        }
        if (const auto problem = compare(groups_256); !problem.isEmpty()) return "groups of 256: " + problem;
    }
    codes.clear();
    scales.clear();
    sums.clear();
    if (groups_32.wanted) {
        for (std::int64_t i = 0; i < rows * n; i += 32) {
            cpu::Groups32 groups;
            cpu::reference::quantize(x.data() + i, 32, groups);
            sum_up(groups.q, 32);
            scales.push_back(groups.scales[0]);
        }
        if (const auto problem = compare(groups_32); !problem.isEmpty()) return "groups of 32: " + problem;
    }
    return {};
}

// Values of many sizes, with groups of nothing and of next to nothing.
std::vector<float> activations(std::int64_t rows, std::int64_t n, Random& random) {
    auto x = random.values(rows * n);
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (i / 32 % 7 == 3) x[i] = 0;
        if (i / 32 % 11 == 5) x[i] *= 0x1p-110F;
        if (i % 97 == 0) x[i] *= 50;
    }
    return x;
}

}  // namespace

class TestKernelVectors : public QObject {
    Q_OBJECT
private slots:
    void initTestCase_data() { KernelDevice::list(); }

    void embeddingsAreDequantized() {
        auto& device = KernelDevice::chosen();
        Random random(1);
        for (const Layout& layout : layouts()) {
            for (const std::int64_t cols : {32, 96, 256, 768, 2048}) {
                if (cols % layout.elements != 0) continue;
                const RandomMatrix table(layout, 9, cols, random);
                const std::vector<std::int32_t> tokens = {3, 8, 0, 3};
                std::vector<float> expected(tokens.size() * static_cast<std::size_t>(cols));
                for (std::size_t t = 0; t < tokens.size(); ++t) {
                    cpu::reference::dequantize_row(table.matrix, tokens[t], expected.data() + t * static_cast<std::size_t>(cols));
                }
                const Array<std::byte> bytes(device, table.bytes);
                const Array<std::int32_t> ids(device, tokens);
                const Array<float> x(device, expected.size());
                REQUIRE(kernels::embed_rows(device.queue(), {.table = {reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                                       static_cast<std::uint32_t>(layout.type), 9, static_cast<std::int32_t>(cols),
                                                                       static_cast<std::uint32_t>(table.matrix.row_bytes)},
                                                             .tokens = ids.data(), .x = x.data(), .count = 4}));
                const auto problem = difference(x.read(), expected);
                QVERIFY2(problem.isEmpty(), QByteArray(layout.name) + ", " + QByteArray::number(cols) + " columns: " + problem);
            }
        }
    }

    void normIsTheCpus() {
        auto& device = KernelDevice::chosen();
        Random random(2);
        std::vector<int> widths = {64, 96, 100, 256, 288, 1000, 2048, 3072, 5120};
        if (!device.emulated()) widths.insert(widths.end(), {8192, 12288, 32768});
        for (const int n : widths) {
            for (const int count : {1, 5, device.emulated() ? 2 : 300}) {
                const auto values = activations(count + 3, n, random);
                const auto weights = random.values(n);
                std::vector<std::int32_t> chosen(static_cast<std::size_t>(count));
                for (auto& row : chosen) row = random.below(count + 3);
                for (int variant = 0; variant < 8; ++variant) {
                    const bool norm = variant & 1, pick = variant & 2, in_place = variant == 5;
                    std::vector<float> expected;
                    for (int i = 0; i < count; ++i) {
                        const float* row = values.data() + std::int64_t(pick ? chosen[static_cast<std::size_t>(i)] : i) * n;
                        std::vector<float> out(row, row + n);
                        if (norm) cpu::reference::rms_norm(row, n, weights.data(), 1e-6F, out.data());
                        expected.insert(expected.end(), out.begin(), out.end());
                    }
                    const Array<float> x(device, values), weight(device, weights), separate(device, expected.size());
                    const Array<std::int32_t> rows(device, chosen);
                    const Forms groups_256(device, count, n, 256, n % 256 == 0 && variant != 3), groups_32(device, count, n, 32, n % 32 == 0 && variant != 4);
                    const bool floats = variant != 6;
                    float* out = !floats ? nullptr : in_place ? x.data() : separate.data();
                    REQUIRE(kernels::norm_rows(device.queue(), {.x = x.data(), .rows = pick ? rows.data() : nullptr,
                                                                .weight = norm ? weight.data() : nullptr, .epsilon = 1e-6F, .count = count, .n = n,
                                                                .out = out, .groups_256 = groups_256.get(), .groups_32 = groups_32.get()}));
                    auto seen = in_place ? x.read() : separate.read();
                    seen.resize(expected.size());
                    auto problem = floats ? difference(seen, expected) : QByteArray();
                    if (problem.isEmpty()) problem = forms_difference(expected, count, n, groups_256, groups_32);
                    QVERIFY2(problem.isEmpty(), qPrintable(QString("%1 rows of %2, variant %3: ").arg(count).arg(n).arg(variant) + problem));
                }
            }
        }
    }

    // What experts have left is added before the norm.
    void combinedAndNormedIsTheCpus() {
        auto& device = KernelDevice::chosen();
        Random random(6);
        for (const auto& [n, used, tokens] : {std::tuple{256, 1, 3}, {2048, 8, 8}, {1280, 3, 1}, {5120, 2, 2}}) {
            const auto before = activations(tokens, n, random), outputs = random.values(std::int64_t{tokens} * used * n);
            const auto shares = random.values(tokens * used), weights = random.values(n);
            auto expected = before;
            std::vector<float> normed(before.size());
            for (int t = 0; t < tokens; ++t) {
                std::vector<const float*> rows;
                for (int rank = 0; rank < used; ++rank) rows.push_back(outputs.data() + (std::int64_t{t} * used + rank) * n);
                float* row = expected.data() + std::int64_t{t} * n;
                cpu::reference::combine_experts(row, rows.data(), shares.data() + std::int64_t{t} * used, used, n);
                cpu::reference::rms_norm(row, n, weights.data(), 1e-6F, normed.data() + std::int64_t{t} * n);
            }
            const Array<float> x(device, before), there_outputs(device, outputs), there_shares(device, shares), weight(device, weights), out(device, before.size());
            const Forms groups_256(device, tokens, n, 256, true), groups_32(device, tokens, n, 32, n != 256);
            REQUIRE(kernels::combine_norm_rows(
                device.queue(), {.combine = {.table = nullptr, .chosen = nullptr, .shares = there_shares.data(), .outputs = there_outputs.data(),
                                             .host_outputs = nullptr, .x = x.data(), .tokens = tokens, .used = used, .n = n},
                                 .norm = {.x = x.data(), .rows = nullptr, .weight = weight.data(), .epsilon = 1e-6F, .count = tokens, .n = n,
                                          .out = out.data(), .groups_256 = groups_256.get(), .groups_32 = groups_32.get()}}));
            QCOMPARE(difference(x.read(), expected), QByteArray());
            QCOMPARE(difference(out.read(), normed), QByteArray());
            QCOMPARE(forms_difference(normed, tokens, n, groups_256, groups_32), QByteArray());
        }
    }

    void widthsThatHaveNoGroupsAreRefused() {
        auto& device = KernelDevice::chosen();
        const Array<float> x(device, 2 * 288);
        const Forms groups(device, 2, 288, 256, true);
        kernels::NormArguments arguments{};
        arguments.x = x.data();
        arguments.count = 2;
        arguments.n = 288;
        arguments.groups_256 = groups.get();
        const auto result = kernels::norm_rows(device.queue(), arguments);
        QVERIFY(!result && result.error().kind == ErrorKind::invalid_argument);
        QCOMPARE(result.error().message, std::string("norm_rows: rows of 288 elements cannot be quantized in groups of 256"));
    }

    // Words are copied bit by bit, whatever they would be as floats, and not one more.
    void wordsAreCopied() {
        auto& device = KernelDevice::chosen();
        for (const int count : {1, 3, 64, 250, 256, 5000}) {
            std::vector<std::uint32_t> words(static_cast<std::size_t>(count));
            for (std::size_t i = 0; i < words.size(); ++i) words[i] = i % 3 == 0 ? 0x7fa00000U + static_cast<std::uint32_t>(i) : static_cast<std::uint32_t>(i);
            const Array<std::uint32_t> from(device, words), to(device, std::vector<std::uint32_t>(words.size() + 1, 7));
            REQUIRE(kernels::copy_words(device.queue(), reinterpret_cast<gpu::DevicePointer>(to.data()), from.data(), words.size() * sizeof(std::uint32_t)));
            auto seen = to.read();
            QCOMPARE(seen.back(), 7U);
            seen.pop_back();
            QVERIFY(seen == words);
        }
        const Array<float> x(device, 4);
        QVERIFY(!kernels::copy_words(device.queue(), reinterpret_cast<gpu::DevicePointer>(x.data()), x.data(), 6));
    }

    void swigluIsTheCpus() {
        auto& device = KernelDevice::chosen();
        Random random(3);
        for (const int n : {64, 100, 768, 1376, 2048}) {
            for (const int rows : {1, 8, device.emulated() ? 11 : 1000}) {
                auto gates = activations(rows, n, random);
                for (auto& gate : gates) gate *= 8;
                const auto ups = activations(rows, n, random);
                std::vector<float> expected(gates.size());
                cpu::reference::swiglu(gates.data(), ups.data(), rows * n, expected.data());
                const Array<float> gate(device, gates), up(device, ups);
                const Forms groups_256(device, rows, n, 256, n % 256 == 0), groups_32(device, rows, n, 32, n % 32 == 0);
                REQUIRE(kernels::swiglu_rows(device.queue(), {.gate = gate.data(), .up = up.data(), .rows = rows, .n = n, .out = gate.data(),
                                                              .groups_256 = groups_256.get(), .groups_32 = groups_32.get()}));
                auto problem = difference(gate.read(), expected);
                if (problem.isEmpty()) problem = forms_difference(expected, rows, n, groups_256, groups_32);
                QVERIFY2(problem.isEmpty(), qPrintable(QString("%1 rows of %2: ").arg(rows).arg(n) + problem));
            }
        }
    }
};

QTEST_GUILESS_MAIN(TestKernelVectors)
#include "tst_kernel_vectors.moc"
