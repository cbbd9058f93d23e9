#pragma once

#include <string>

#include "core/base/dynamic_library.h"

namespace headroom::gpu {

// Looks up the functions that a driver's library has to have, and keeps the names of those that it lacks.
class Lookup {
public:
    explicit Lookup(const DynamicLibrary& library) noexcept : library_(library) {}

    template <class Function>
    void need(Function& function, const char* name) {
        function = library_.function<Function>(name);
        if (!function) missing_ += (missing_.empty() ? "" : ", ") + std::string(name);
    }
    // Errors: unsupported, naming what is needed and not there.
    [[nodiscard]] Result<> all_found() const {
        if (missing_.empty()) return {};
        return fail(ErrorKind::unsupported, "{} lacks functions that are needed ({}): please update the GPU driver", library_.name(), missing_);
    }

private:
    const DynamicLibrary& library_;
    std::string missing_;
};

}  // namespace headroom::gpu
