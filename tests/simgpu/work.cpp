// Work: copies, fills, modules, kernels. streams.cpp has when it is done.

#include <algorithm>
#include <cstring>
#include <thread>

#include "tests/simgpu/simulator.h"

namespace sim {
namespace {

// How long an image is: PTX is text; an ELF file ends with its table of sections; other containers do not say.
std::string image_bytes(const void* image, bool& all) {
    const char* text = static_cast<const char*>(image);
    if (std::memcmp(text, "\x7f" "ELF", 4) == 0) {
        std::uint64_t table = 0;
        std::uint16_t entry = 0, count = 0;
        std::memcpy(&table, text + 0x28, 8);
        std::memcpy(&entry, text + 0x3A, 2);
        std::memcpy(&count, text + 0x3C, 2);
        return {text, table + std::size_t(entry) * count};
    }
    constexpr unsigned char fatbin[4] = {0x50, 0xed, 0x55, 0xba};
    if (std::memcmp(text, fatbin, 4) == 0 || std::strncmp(text, "__CLANG_OFFLOAD_BUNDLE__", 24) == 0) {
        all = true;
        return {};
    }
    return text;
}

// Word by word, each read whole, as devices do it: kernels may be counting there meanwhile.
void copy_words(void* to, const void* from, std::size_t bytes) {
    constexpr std::size_t word = sizeof(std::uint32_t);
    const std::size_t words = reinterpret_cast<std::uintptr_t>(from) % word == 0 ? bytes / word : 0;
    auto* out = static_cast<unsigned char*>(to);
    for (std::size_t i = 0; i < words; ++i) {
        const std::uint32_t value = __atomic_load_n(static_cast<const std::uint32_t*>(from) + i, __ATOMIC_RELAXED);
        std::memcpy(out + i * word, &value, word);
    }
    std::memcpy(out + words * word, static_cast<const unsigned char*>(from) + words * word, bytes - words * word);
}

}  // namespace

void Simulator::pace(std::size_t bytes) const {
    if (bandwidth_gbps > 0) std::this_thread::sleep_for(std::chrono::duration<double>(static_cast<double>(bytes) / (bandwidth_gbps * 1e9)));
}

int Simulator::copy_to_device(DevicePointer to, const void* from, std::size_t bytes) {
    if (!readable(to, bytes, false)) return invalid_value;
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    pace(bytes);
    return ok;
}

int Simulator::copy_to_host(void* to, DevicePointer from, std::size_t bytes) {
    if (!readable(from, bytes, true)) return invalid_value;
    copy_words(to, reinterpret_cast<const void*>(from), bytes);
    pace(bytes);
    return ok;
}

int Simulator::copy_on_device(DevicePointer to, DevicePointer from, std::size_t bytes) {
    if (!readable(to, bytes, false) || !readable(from, bytes, false)) return invalid_value;
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    return ok;
}

int Simulator::fill(DevicePointer to, unsigned char value, std::size_t bytes) {
    if (!readable(to, bytes, false)) return invalid_value;
    std::memset(reinterpret_cast<void*>(to), value, bytes);
    return ok;
}

bool Simulator::pinned(const void* host, std::size_t bytes) {
    const std::scoped_lock lock(mutex);
    const auto inside = [&](const auto& all) {
        auto found = all.upper_bound(const_cast<void*>(host));
        if (found == all.begin()) return false;
        --found;
        return static_cast<const char*>(host) + bytes <= static_cast<const char*>(found->first) + found->second;
    };
    return inside(host_allocations_) || inside(host_registrations_);
}

int Simulator::enqueue_copy_to_device(Stream* stream, DevicePointer to, const void* from, std::size_t bytes) {
    if (deferring(stream)) {
        if (!readable(to, bytes, false)) return invalid_value;
        if (!pinned(from, bytes)) {  // the driver takes its own copy first
            const auto* data = static_cast<const unsigned char*>(from);
            return enqueue(stream, [=, this, staged = std::vector(data, data + bytes)] { return copy_to_device(to, staged.data(), bytes); });
        }
    }
    return enqueue(stream, [=, this] { return copy_to_device(to, from, bytes); });
}

int Simulator::enqueue_copy_to_host(Stream* stream, void* to, DevicePointer from, std::size_t bytes) {
    const bool deferred = deferring(stream);
    if (deferred && !readable(from, bytes, true)) return invalid_value;
    const int code = enqueue(stream, [=, this] { return copy_to_host(to, from, bytes); });
    return code == ok && deferred && !pinned(to, bytes) ? synchronize_stream(stream) : code;
}

int Simulator::enqueue_copy_on_device(Stream* stream, DevicePointer to, DevicePointer from, std::size_t bytes) {
    if (deferring(stream) && (!readable(to, bytes, false) || !readable(from, bytes, false))) return invalid_value;
    return enqueue(stream, [=, this] { return copy_on_device(to, from, bytes); });
}

int Simulator::enqueue_fill(Stream* stream, DevicePointer to, unsigned char value, std::size_t bytes) {
    if (deferring(stream) && !readable(to, bytes, false)) return invalid_value;
    return enqueue(stream, [=, this] { return fill(to, value, bytes); });
}

int Simulator::load_module(Module** module, const void* image) {
    const std::scoped_lock lock(mutex);
    if (!image) return invalid_value;
    auto* loaded = new Module;
    loaded->names = image_bytes(image, loaded->all);
    modules_.insert(*module = loaded);
    return ok;
}

int Simulator::unload_module(Module* module) {
    const std::scoped_lock lock(mutex);
    if (modules_.erase(module) == 0) return invalid_handle;
    delete module;
    return ok;
}

int Simulator::module_function(const std::pair<std::string, const Kernel*>** function, Module* module, const char* name) {
    const std::scoped_lock lock(mutex);
    if (!modules_.contains(module)) return invalid_handle;
    const auto kernel = kernels_.find(name);
    if (kernel == kernels_.end() || (!module->all && module->names.find(name) == std::string::npos)) return not_found;
    auto& entry = module->functions[name];
    if (!entry) entry = std::make_unique<std::pair<std::string, const Kernel*>>(name, &kernel->second);
    *function = entry.get();
    return ok;
}

int Simulator::launch(const std::pair<std::string, const Kernel*>* function, const SimLaunch& how, Stream* stream, void** parameters) {
    if (!function) return invalid_handle;
    // The driver keeps the parameters, not the pointers to them.
    std::vector<std::vector<unsigned char>> values;
    for (std::size_t i = 0; i < function->second->sizes.size(); ++i) {
        const auto* bytes = static_cast<const unsigned char*>(parameters[i]);
        values.emplace_back(bytes, bytes + function->second->sizes[i]);
    }
    return enqueue(stream, [run = function->second->run, how, values = std::move(values)]() mutable {
        std::vector<void*> pointers;
        for (auto& value : values) pointers.push_back(value.data());
        run(&how, pointers.data());
        return int(ok);
    });
}

void Simulator::register_kernel(const char* name, SimKernel kernel, std::vector<std::size_t> sizes) {
    const std::scoped_lock lock(mutex);
    kernels_[name] = {kernel, std::move(sizes)};
}

}  // namespace sim
