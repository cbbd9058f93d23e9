#include <dlfcn.h>
#include <link.h>

#include "core/base/dynamic_library.h"
#include "core/base/paths.h"

namespace headroom {

Result<DynamicLibrary> DynamicLibrary::open(const std::filesystem::path& name) {
    DynamicLibrary library;
    library.name_ = to_utf8(name);
    library.handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library.handle_) return library;
    const char* reason = ::dlerror();
    return fail(ErrorKind::not_found, "{}", reason ? std::string(reason) : library.name_ + " cannot be loaded");
}

void* DynamicLibrary::symbol(const char* name) const noexcept { return handle_ ? ::dlsym(handle_, name) : nullptr; }

std::filesystem::path DynamicLibrary::file() const {
    link_map* entry = nullptr;
    return handle_ && ::dlinfo(handle_, RTLD_DI_LINKMAP, &entry) == 0 && entry ? std::filesystem::path(entry->l_name) : std::filesystem::path();
}

}  // namespace headroom
