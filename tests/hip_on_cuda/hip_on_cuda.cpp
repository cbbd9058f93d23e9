// HIP's functions on top of the NVIDIA driver, so that the program's HIP path runs on real VRAM where there is no AMD card: a library that
// is called libamdhip64.so.7 and hands each call on to libcuda.so.1. It is given PTX or CUDA images in place of AMD code objects.
// Linux on x86-64 only; a test fixture, never part of the product.

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "core/gpu/entry_points.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

// Most functions differ in name only: each is a jump to the CUDA function of the same parameters, through a pointer filled below.
#define DECLARE(group, member, cuda, hip, parameters) __attribute__((visibility("hidden"))) void* hip_on_cuda_##member = nullptr;
#define JUMP(group, member, cuda, hip, parameters) \
    asm(".text\n.globl " hip "\n.type " hip ", @function\n" hip ":\n    jmp *hip_on_cuda_" #member "(%rip)\n.size " hip ", . - " hip "\n");
extern "C" {
HR_GPU_ENTRY_POINTS(DECLARE)
}

namespace {

constexpr int success = 0, invalid_value = 1;

struct Cuda {
    void* library = ::dlopen("libcuda.so.1", RTLD_NOW);
    template <class Function>
    Function find(const char* name) const {
        void* function = library ? ::dlsym(library, name) : nullptr;
        if (!function) {
            std::fprintf(stderr, "hip_on_cuda: libcuda.so.1 has no %s\n", name);
            std::abort();
        }
        return reinterpret_cast<Function>(function);
    }
};

const Cuda& cuda() {
    static const Cuda instance;
    return instance;
}

int attribute(int which, int device) {
    static const auto get = cuda().find<int (*)(int*, int, int)>("cuDeviceGetAttribute");
    int value = 0;
    return get(&value, which, device) == success ? value : 0;
}

// hipDeviceGetAttribute: the numbers differ.
int translate_attribute(int* value, int which, int device) {
    switch (which) {
        case 16: *value = attribute(18, device); return success;   // integrated
        case 63: *value = attribute(16, device); return success;   // multiprocessors
        case 74: *value = attribute(8, device); return success;    // shared memory of a block, without any permission
        case 87: *value = attribute(10, device); return success;   // warp size
        case 89: *value = attribute(102, device); return success;  // virtual memory management
        default: return invalid_value;
    }
}

// Fills the pointers when the library is loaded.
__attribute__((constructor)) void connect() {
    if (!cuda().library) return;  // calls crash then; loading such a library where there is no NVIDIA driver is a mistake
#define CONNECT(group, member, cuda_name, hip_name, parameters) hip_on_cuda_##member = cuda().find<void*>(cuda_name);
    HR_GPU_ENTRY_POINTS(CONNECT)
    hip_on_cuda_device_attribute = reinterpret_cast<void*>(translate_attribute);
}

}  // namespace

EXPORT int hipRuntimeGetVersion(int* version) {
    *version = 70100000;
    return success;
}

EXPORT const char* hipGetErrorName(int code) {
    static const auto get = cuda().find<int (*)(int, const char**)>("cuGetErrorName");
    const char* name = nullptr;
    return get(code, &name) == success && name ? name : "hipErrorUnknown";
}

// A device is made current by its primary context; HIP has no other.
EXPORT int hipSetDevice(int device) {
    static const auto retain = cuda().find<int (*)(void**, int)>("cuDevicePrimaryCtxRetain");
    static const auto set = cuda().find<int (*)(void*)>("cuCtxSetCurrent");
    static std::mutex mutex;
    static std::map<int, void*> contexts;
    const std::scoped_lock lock(mutex);
    void*& context = contexts[device];
    if (!context) {
        if (const int code = retain(&context, device); code != success) return code;
    }
    return set(context);
}

EXPORT int hipDeviceGetUuid(unsigned char* bytes, int device) {
    static const auto get = cuda().find<int (*)(unsigned char*, int)>("cuDeviceGetUuid_v2");
    return get(bytes, device);
}

EXPORT int hipGetDevicePropertiesR0600(void* properties, int device) {
    constexpr std::size_t architecture_at = 1160;
    std::snprintf(static_cast<char*>(properties) + architecture_at, 256, "sm_%d%d", attribute(75, device), attribute(76, device));
    return success;
}

HR_GPU_ENTRY_POINTS(JUMP)
