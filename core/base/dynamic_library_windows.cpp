#include <windows.h>

#include "core/base/dynamic_library.h"
#include "core/base/paths.h"

namespace headroom {

Result<DynamicLibrary> DynamicLibrary::open(const std::filesystem::path& name) {
    DynamicLibrary library;
    library.name_ = to_utf8(name);
    const DWORD folders = name.is_absolute() ? LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS
                                             : LOAD_LIBRARY_SEARCH_SYSTEM32 | LOAD_LIBRARY_SEARCH_USER_DIRS;
    library.handle_ = static_cast<void*>(::LoadLibraryExW(name.c_str(), nullptr, folders));
    if (library.handle_) return library;
    return fail(ErrorKind::not_found, "{} cannot be loaded: Windows error {}", library.name_, ::GetLastError());
}

void* DynamicLibrary::symbol(const char* name) const noexcept {
    return handle_ ? reinterpret_cast<void*>(::GetProcAddress(static_cast<HMODULE>(handle_), name)) : nullptr;
}

std::filesystem::path DynamicLibrary::file() const {
    wchar_t name[32768];
    const DWORD length = handle_ ? ::GetModuleFileNameW(static_cast<HMODULE>(handle_), name, 32768) : 0;
    return std::wstring(name, length < 32768 ? length : 0);
}

}  // namespace headroom
