#pragma once

// Shared libraries opened at run time (dlopen, LoadLibrary).

#include <filesystem>
#include <string>

#include "core/base/error.h"

namespace headroom {

// An open library. It stays in the process after the object is gone: GPU drivers start threads and do not survive being unloaded.
class DynamicLibrary {
public:
    // name: an absolute path, or a bare name that the system's loader looks for in its own folders (on Windows only in the
    // system's folder and those that were added on purpose, never in the current one).
    // Errors: not_found with the loader's words.
    [[nodiscard]] static Result<DynamicLibrary> open(const std::filesystem::path& name);

    DynamicLibrary() = default;

    // The address of an exported function, or null.
    [[nodiscard]] void* symbol(const char* name) const noexcept;
    template <class Function>
    [[nodiscard]] Function function(const char* name) const noexcept {
        return reinterpret_cast<Function>(symbol(name));
    }
    // What was opened, as given to open().
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    // The file that the loader took; empty where it does not tell.
    [[nodiscard]] std::filesystem::path file() const;
    [[nodiscard]] explicit operator bool() const noexcept { return handle_ != nullptr; }

private:
    void* handle_ = nullptr;
    std::string name_;
};

}  // namespace headroom
