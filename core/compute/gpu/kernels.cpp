#include "core/compute/gpu/kernels.h"

#include <charconv>

namespace headroom::kernels {
namespace {

struct Entry {
    const char* symbol;
    std::size_t argument_bytes;
};
constexpr Entry entries[kKernelCount] = {
#define HR_ENTRY(name, arguments) {"headroom_" #name, sizeof(arguments)},
    HR_KERNELS(HR_ENTRY)
#undef HR_ENTRY
};
constexpr std::string_view prefix = "headroom_";
constexpr unsigned usual_shared_limit = 48 << 10;  // what every CUDA device allows

constexpr const Entry& entry(Kernel kernel) noexcept { return entries[static_cast<std::size_t>(kernel)]; }

// Calls visit(number) for each of "75 80 90".
template <class Visit>
void for_each_number(std::string_view text, Visit visit) {
    for (const char *at = text.data(), *end = at + text.size(); at < end;) {
        int number = 0;
        const auto [next, error] = std::from_chars(at, end, number);
        if (error == std::errc()) visit(number);
        at = next + 1;
    }
}

// Machine code runs on its own generation (sm_80 on 8.0 to 8.9), PTX on its own and all later ones.
bool fatbin_runs_on(const Images& code, int capability) {
    bool runs = false;
    for_each_number(code.cuda_code, [&](int built) { runs |= built / 10 == capability / 10 && built <= capability; });
    for_each_number(code.cuda_ptx, [&](int built) { runs |= built <= capability; });
    return runs;
}

// What the build has code for, in the words of an error: "sm_75, sm_90 and later, gfx1100".
std::string built_for(const Images& code, bool cuda) {
    std::string text;
    const auto add = [&](std::string_view one) { text += fmt::format("{}{}", text.empty() ? "" : ", ", one); };
    if (cuda) {
        for_each_number(code.cuda_code, [&](int built) { add(fmt::format("sm_{}", built)); });
        for_each_number(code.cuda_ptx, [&](int built) { add(fmt::format("PTX of compute_{}", built)); });
    } else {
        std::string_view unit;
        for (const Image& image : code.images) {
            if (image.architecture == "cuda" || (!unit.empty() && image.unit != unit)) continue;
            unit = image.unit;
            add(image.architecture);
        }
    }
    return text;
}

// The images for a device: "cuda" or the name of an architecture.
Result<std::string_view> image_kind(const Images& code, const gpu::DeviceInfo& device) {
    const std::string_view full = device.architecture;
    const std::string_view architecture = full.substr(0, full.find(':'));  // "gfx90a:sramecc+:xnack-"
    // "sm_…" also behind HIP's interface, where that lies on top of NVIDIA's driver.
    const bool cuda = architecture.starts_with("sm_");
    std::string_view found;
    for (const Image& image : code.images) {
        if (cuda ? image.architecture == "cuda" : image.architecture == architecture) found = image.architecture;
    }
    if (cuda) {
        int capability = 0;
        std::from_chars(architecture.data() + 3, architecture.data() + architecture.size(), capability);
        if (!fatbin_runs_on(code, capability)) found = {};
    }
    if (!found.empty()) return found;
    const std::string built = built_for(code, cuda);
    if (built.empty()) {
        return fail(ErrorKind::unsupported, "this build has no kernels for {} cards, so {} is not used: it was built without {}",
                    cuda ? "NVIDIA" : "AMD", device.name, cuda ? "nvcc" : "clang");
    }
    return fail(ErrorKind::unsupported, "this build has no kernels for {} ({}); it was built for {}",
                architecture.empty() ? "a device of unknown architecture" : architecture, device.name, built);
}

// Whether the device runs code in which kernels wait for the one before (kernels/portable.h): compute capability 9.0 and later.
bool waits_by_itself(const gpu::DeviceInfo& device) noexcept {
    constexpr std::string_view cuda = "sm_";
    int version = 0;
    if (device.backend != gpu::Backend::cuda || !device.architecture.starts_with(cuda)) return false;
    std::from_chars(device.architecture.data() + cuda.size(), device.architecture.data() + device.architecture.size(), version);
    return version >= 90;
}

}  // namespace

std::string_view to_string(Kernel kernel) noexcept { return std::string_view(entry(kernel).symbol).substr(prefix.size()); }

std::size_t argument_bytes(Kernel kernel) noexcept { return entry(kernel).argument_bytes; }

Kernels::Kernels(gpu::Driver& driver, const gpu::DeviceInfo& device)
    : driver_(driver), device_(device), shared_limit_(device.shared_per_block ? device.shared_per_block : usual_shared_limit),
      overlapping_(waits_by_itself(device)) {}

Kernels::~Kernels() {
    for (const auto module : modules_) {
        // A second try where the first one fails: nothing else can be done here.
        if (!driver_.unload_module(module)) (void)driver_.unload_module(module);
    }
}

Result<std::unique_ptr<Kernels>> Kernels::load(gpu::Driver& driver, const gpu::DeviceInfo& device, const Images& code) {
    HR_TRY(const auto kind, image_kind(code, device));
    std::unique_ptr<Kernels> kernels(new Kernels(driver, device));
    for (const Image& image : code.images) {
        if (image.architecture != kind) continue;
        HR_TRY(const auto module, driver.load_module(image.data));
        kernels->modules_.push_back(module);
    }
    for (std::size_t i = 0; i < kKernelCount; ++i) {
        for (const auto module : kernels->modules_) {
            if (const auto function = driver.function(module, entries[i].symbol)) {
                kernels->functions_[i] = *function;
                break;
            }
        }
    }
    return kernels;
}

Result<> Kernels::launch(Kernel kernel, gpu::Grid grid, gpu::Grid block, unsigned shared_bytes, gpu::StreamHandle stream, const void* arguments,
                         std::size_t bytes) {
    const auto index = static_cast<std::size_t>(kernel);
    if (bytes != entries[index].argument_bytes) {
        return fail(ErrorKind::invalid_argument, "the kernel {} takes a structure of {} bytes; it was given {}", to_string(kernel),
                    entries[index].argument_bytes, bytes);
    }
    if (shared_bytes > shared_limit_) {
        return fail(ErrorKind::invalid_argument, "the kernel {} would need {} bytes of shared memory; a block on {} has at most {}",
                    to_string(kernel), shared_bytes, device_.name, shared_limit_);
    }
    if (!functions_[index]) return fail(ErrorKind::unsupported, "this build has no kernel {}", to_string(kernel));
    // Together with a kernel's static shared memory even less than 48 KiB may need the permission, so it is asked for whenever a launch
    // wants more than any before.
    if (auto& allowed = allowed_shared_[index]; shared_bytes > allowed.load(std::memory_order_acquire)) {
        const std::scoped_lock lock(allowing_);
        if (shared_bytes > allowed.load(std::memory_order_relaxed)) {
            HR_CHECK(driver_.allow_shared_memory(functions_[index], shared_bytes));
            allowed.store(shared_bytes, std::memory_order_release);
        }
    }
    void* parameters[] = {const_cast<void*>(arguments)};
    return overlapping_ ? driver_.launch_overlapping(functions_[index], grid, block, shared_bytes, stream, parameters)
                        : driver_.launch(functions_[index], grid, block, shared_bytes, stream, parameters);
}

}  // namespace headroom::kernels
