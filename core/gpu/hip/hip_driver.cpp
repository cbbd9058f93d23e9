#include "core/gpu/hip/hip_driver.h"

#include <cstring>

#include "core/gpu/amdgpu.h"
#include "core/gpu/lookup.h"

namespace headroom::gpu {
namespace {

// hipDeviceAttribute_t: the same numbers in 5.x, 6.x and 7.x; number 89 has no name in the headers of 5.2.
enum Attribute : int { integrated = 16, multiprocessors = 63, shared_per_block = 74, lanes = 87, vmm = 89 };

// Where the properties structure keeps what is read from it. HIP 6 changed the structure and renamed the function; the old name still
// fills the old structure.
constexpr std::size_t architecture_length = 256;
constexpr std::size_t architecture_at_5 = 396;    // hipDeviceProp_t of 5.x: gcnArchName
constexpr std::size_t architecture_at_6 = 1160;   // hipDeviceProp_tR0600: gcnArchName
constexpr std::size_t properties_room = 8192;     // larger than either structure (792 and 1,472 bytes), with room for later ones

#ifdef _WIN32
const std::vector<std::string> library_names = {"amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll"};
const std::vector<std::filesystem::path> places;
#else
const std::vector<std::string> library_names = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"};
const std::vector<std::filesystem::path> places = {"/opt/rocm/lib"};  // AMD's own packages do not tell the loader about it
#endif

}  // namespace

Result<std::unique_ptr<Driver>> HipDriver::load(const SearchPath& path) {
    HR_TRY(auto loaded, open(Backend::hip, path, library_names, places));
    Own own;
    const auto& library = loaded.library;
    Lookup lookup(library);
    lookup.need(own.set_device, "hipSetDevice");
    lookup.need(own.runtime_version, "hipRuntimeGetVersion");
    lookup.need(own.error_name, "hipGetErrorName");
    HR_CHECK(lookup.all_found());
    own.device_uuid = library.function<decltype(own.device_uuid)>("hipDeviceGetUuid");
    own.properties_6 = library.function<decltype(own.properties_6)>("hipGetDevicePropertiesR0600");
    own.properties_5 = library.function<decltype(own.properties_5)>("hipGetDeviceProperties");
    std::unique_ptr<HipDriver> driver(new HipDriver(std::move(loaded), own));
    HR_CHECK(driver->find_devices(path));
    return driver;
}

HipDriver::HipDriver(Loaded loaded, const Own& own) : Driver(Backend::hip, std::move(loaded)), own_(own) {}

std::string HipDriver::error_name(int code) const {
    const char* name = own_.error_name(code);
    return name ? name : "";
}

void HipDriver::read_properties(DeviceInfo& info) const {
    alignas(16) unsigned char properties[properties_room] = {};
    const auto architecture = [&](std::size_t at) {
        const char* text = reinterpret_cast<const char*>(properties + at);
        info.architecture = std::string(text, ::strnlen(text, architecture_length));
    };
    if (own_.properties_6) {
        if (own_.properties_6(properties, info.index) != abi::success) return;
        architecture(architecture_at_6);
#ifdef _WIN32
        constexpr std::size_t luid_at_6 = 272;  // luid, after name[256] and uuid[16]
        std::uint64_t luid = 0;
        std::memcpy(&luid, properties + luid_at_6, sizeof luid);
        if (luid != 0) info.luid = luid;
#endif
    } else if (own_.properties_5 && own_.properties_5(properties, info.index) == abi::success) {
        architecture(architecture_at_5);
    }
}

Result<> HipDriver::find_devices(const SearchPath& path) {
    const int started = call_.init(0);
    if (started == abi::no_device) return fail(ErrorKind::not_found, "{} is there, but it finds no device", library());
    HR_CHECK(check("hipInit", started));
    int version = 0, count = 0;
    HR_CHECK(check("hipRuntimeGetVersion", own_.runtime_version(&version)));
    const int counted = call_.device_count(&count);
    if (counted == abi::no_device || (counted == abi::success && count == 0)) {
        return fail(ErrorKind::not_found, "{} is there, but it finds no device", library());
    }
    HR_CHECK(check("hipGetDeviceCount", counted));
    const std::string kernel_driver = amdgpu_driver_version(path);
    for (int device = 0; device < count; ++device) {
        HR_TRY(auto info, describe(device));
        unsigned char uuid[16] = {};
        info.uuid = own_.device_uuid && own_.device_uuid(uuid, device) == abi::success ? format_uuid(uuid) : info.bus;
        info.driver = kernel_driver;
        info.runtime = fmt::format("HIP {}.{}.{}", version / 10'000'000, version / 100'000 % 100, version % 100'000);
        const auto attribute = [&](Attribute which) {
            int value = 0;
            return call_.device_attribute(&value, which, device) == abi::success ? value : 0;
        };
        info.multiprocessors = attribute(multiprocessors);
        info.lanes = attribute(lanes);
        info.shared_per_block = static_cast<unsigned>(attribute(shared_per_block));
        info.integrated = attribute(integrated) != 0;
        info.vmm_attribute = attribute(vmm) != 0;
        read_properties(info);
        devices_.push_back(std::move(info));
    }
    return {};
}

Result<> HipDriver::make_current(int device) {
    if (device < 0 || static_cast<std::size_t>(device) >= devices_.size()) return fail(ErrorKind::not_found, "there is no device hip:{}", device);
    return check("hipSetDevice", own_.set_device(device), device);
}

Result<> HipDriver::release_context(int device) {
    return fail(ErrorKind::unsupported, "The HIP runtime keeps its own share of hip:{} until the program ends", device);
}

Result<> HipDriver::allow_shared_memory(FunctionHandle, unsigned) { return {}; }

}  // namespace headroom::gpu
