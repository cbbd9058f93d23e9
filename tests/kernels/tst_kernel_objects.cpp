// The compiled kernels of this build, AMD's most of all, which cannot be run here: each architecture has every kernel, with the structure that
// the host hands over, in registers alone.

#include <QTest>

#include <map>
#include <set>

#include "core/compute/gpu/kernels.h"
#include "tests/kernels/code_objects.h"

using namespace headroom;
using namespace headroom::test;

namespace {

// Memory of each thread's own that a kernel may use, and why.
struct Limit {
    std::string_view kernel, target;  // target: "gfx90": all that begin so
    std::size_t private_bytes;
    std::string_view reason;
};
constexpr Limit usual = {"", "", 0, "registers are what a thread has"};
constexpr Limit limits[] = {
    {"headroom_product_rows", "gfx", 96, "small arrays with a variable index"},
    {"headroom_product_row_", "sm_120", 16, "blocks of 1,024 threads leave 64 registers, which are a few too few there for Q6_K"},
    {"headroom_attention_prefill_q8_256", "sm_8", 64, "heads of 256 leave no register free there"},
    {"headroom_attention_rows_q8_tiles", "sm_120", 16, "as many threads as leave 128 registers, which are a few too few there"},
    {"headroom_attention_long_", "sm_120", 80, "blocks need more shared memory than there is: not launched there"},
    {"headroom_attention_", "sm_8", 32, "as many threads as leave 128 registers, which are a few too few there"},
    {"headroom_product_few", "sm_80", 16, "blocks of 512 threads leave 128 registers, which are one too few there"},
    {"headroom_product_tiles_", "sm_", 64, "two blocks to a multiprocessor leave 128 registers, which are a few too few on some architectures"},
    {"headroom_experts_tiles_", "sm_", 64, "the same"},
    {"headroom_experts_down", "gfx900", 32, "products of bytes take several instructions there, and their registers"},
    {"headroom_top_rows", "gfx90a", 80, "half of the registers are for matrix units there, which it has no use for"},
    {"headroom_product_tiles_", "gfx", 64, "a few values of the staging, kept while tiles are multiplied"},
    {"headroom_experts_tiles_", "gfx", 64, "the same"},
};
// Scalar registers in lanes of vector registers: two instructions where such a value is used, and no memory. Nine vector registers have room
// for so many.
constexpr std::size_t most_scalar_spills = 576;

const Limit& limit(const CompiledKernel& kernel) {
    for (const auto& one : limits) {
        if (kernel.name.starts_with(one.kernel) && kernel.target.starts_with(one.target)) return one;
    }
    return usual;
}

// Kernels on matrix units exist where the device has those that they are written for.
bool is_expected(std::string_view kernel, std::string_view target) {
    constexpr std::string_view plain = "headroom_attention_prefill_q8";
    constexpr std::string_view on_units[] = {"headroom_attention_prefill_", "headroom_attention_rows_q8_tiles", "headroom_attention_step_q8_",
                                             "headroom_attention_ahead_q8_", "headroom_attention_long_", "headroom_product_few", "headroom_few_experts_"};
    const bool units = kernel != plain && std::ranges::any_of(on_units, [&](std::string_view begin) { return kernel.starts_with(begin); });
    if (kernel.starts_with("headroom_attention_cluster_")) return target.starts_with("sm_") && target != "sm_75" && !target.starts_with("sm_8");
    return !units || (target.starts_with("sm_") && target != "sm_75");
}

// All of this build, by target.
const std::map<std::string, std::vector<CompiledKernel>>& compiled() {
    static const auto all = [] {
        std::map<std::string, std::vector<CompiledKernel>> targets;
        for (const auto& image : kernels::images().images) {
            const std::span bytes(image.data, image.bytes);
            for (auto& kernel : image.architecture == "cuda" ? read_fatbin(bytes) : read_code_object(bytes)) {
                targets[kernel.target].push_back(std::move(kernel));
            }
        }
        return targets;
    }();
    return all;
}

}  // namespace

class TestKernelObjects : public QObject {
    Q_OBJECT
private slots:
    void everyTargetIsThere() {
        std::set<std::string> expected;
        for (const auto& image : kernels::images().images) {
            if (image.architecture != "cuda") expected.insert(std::string(image.architecture));
        }
        for (const auto& number : QString::fromUtf8(kernels::images().cuda_code.data(), qsizetype(kernels::images().cuda_code.size())).split(' ', Qt::SkipEmptyParts)) {
            expected.insert("sm_" + number.toStdString());
        }
        std::set<std::string> seen;
        for (const auto& [target, kernels] : compiled()) seen.insert(target);
        QCOMPARE(seen, expected);
        if (expected.empty()) QSKIP("this build has no compiler for device code");
    }

    void everyFatbinHasPtx() {
        bool any = false;
        for (const auto& image : kernels::images().images) {
            if (image.architecture != "cuda") continue;
            any = true;
            std::string seen;
            for (const auto& architecture : ptx_architectures({image.data, image.bytes})) seen += (seen.empty() ? "" : " ") + architecture;
            QCOMPARE(seen, std::string(kernels::images().cuda_ptx));
        }
        if (!any) QSKIP("this build has no compiler for CUDA");
    }

    void kernelsAreAsTheHostLaunchesThem_data() {
        QTest::addColumn<QString>("target");
        for (const auto& [target, kernels] : compiled()) QTest::newRow(target.c_str()) << QString::fromStdString(target);
        if (compiled().empty()) QTest::newRow("none") << QString();
    }
    void kernelsAreAsTheHostLaunchesThem() {
        QFETCH(QString, target);
        if (target.isEmpty()) QSKIP("this build has no compiler for device code");
        const auto& all = compiled().at(target.toStdString());
        int problems = 0;
        const auto problem = [&](const std::string& text) {
            ++problems;
            qWarning("%s", text.c_str());
        };
        std::string missing;
        for (std::size_t i = 0; i < kernels::kKernelCount; ++i) {
            const auto kernel = static_cast<kernels::Kernel>(i);
            const std::string name = fmt::format("headroom_{}", kernels::to_string(kernel));
            const auto same = [&](const CompiledKernel& one) { return one.name == name; };
            const auto found = std::ranges::find_if(all, same);
            if (found == all.end()) {
                if (is_expected(name, target.toStdString())) missing += " " + name;
                continue;
            }
            if (std::ranges::count_if(all, same) != 1) problem(fmt::format("{} is there more than once", name));
            if (found->argument_bytes != kernels::argument_bytes(kernel)) {
                problem(fmt::format("{} takes {} bytes of arguments; the host hands over {}", name, found->argument_bytes, kernels::argument_bytes(kernel)));
            }
            const Limit& most = limit(*found);
            if (found->private_bytes > most.private_bytes || (found->spills > 0 && most.private_bytes == 0)) {
                problem(fmt::format("{} uses {} bytes of private memory and spills {} registers; allowed are {} bytes", name, found->private_bytes,
                                    found->spills, most.private_bytes));
            }
            if (found->scalar_spills > most_scalar_spills) {
                problem(fmt::format("{} spills {} scalar registers; allowed are {}", name, found->scalar_spills, most_scalar_spills));
            }
            // What every device gives a block without being asked.
            const std::size_t shared_limit = target.startsWith("sm_") ? 48 << 10 : 64 << 10;
            if (found->shared_bytes > shared_limit) problem(fmt::format("{} has {} bytes of static shared memory", name, found->shared_bytes));
        }
        if (!missing.empty()) problem("missing:" + missing);
        QCOMPARE(problems, 0);
    }
};

QTEST_GUILESS_MAIN(TestKernelObjects)
#include "tst_kernel_objects.moc"
