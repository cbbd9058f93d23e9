#pragma once

#include "core/gpu/driver.h"

namespace headroom::gpu {

// AMD: libamdhip64.so.7, .6, .5 or plain; amdhip64_7.dll, amdhip64_6.dll or plain.
class HipDriver final : public Driver {
public:
    [[nodiscard]] static Result<std::unique_ptr<Driver>> load(const SearchPath& path);

    [[nodiscard]] Result<> make_current(int device) override;
    [[nodiscard]] Result<> release_context(int device) override;
    [[nodiscard]] bool unmaps_beside_work() const noexcept override { return false; }
    [[nodiscard]] Result<> allow_shared_memory(FunctionHandle function, unsigned bytes) override;

private:
    struct Own {  // what CUDA does not have, or has in another form
        int (*set_device)(int device) = nullptr;
        int (*runtime_version)(int* version) = nullptr;
        const char* (*error_name)(int code) = nullptr;
        int (*device_uuid)(unsigned char* bytes, int device) = nullptr;   // from 5.2 on
        int (*properties_6)(void* properties, int device) = nullptr;      // hipGetDevicePropertiesR0600: from 6.0 on
        int (*properties_5)(void* properties, int device) = nullptr;      // hipGetDeviceProperties: the structure of 5.x
    };

    HipDriver(Loaded loaded, const Own& own);
    [[nodiscard]] std::string error_name(int code) const override;
    [[nodiscard]] Result<> find_devices(const SearchPath& path);
    void read_properties(DeviceInfo& info) const;

    Own own_;
};

}  // namespace headroom::gpu
