#include <windows.h>

#include <memoryapi.h>

#include "core/base/mapped_file.h"
#include "core/base/paths.h"
#include "core/base/quote.h"

namespace headroom {
namespace {

std::unexpected<Error> system_failure(const std::filesystem::path& path, const char* what, DWORD code) {
    const bool absent = code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND;
    return fail(absent ? ErrorKind::not_found : ErrorKind::io, "{}: {}: {}", printable(to_utf8(path)), what,
                absent ? std::string("there is no such file") : fmt::format("Windows error {}", code));
}

std::unexpected<Error> not_a_file(const std::filesystem::path& path) {
    return fail(ErrorKind::invalid_argument, "{}: is not a regular file", printable(to_utf8(path)));
}

// Windows opens folders only for those who ask for folders; the error it gives otherwise is the one for a file of other people.
bool is_folder(const std::filesystem::path& path) noexcept {
    const DWORD attributes = ::GetFileAttributesW(path.c_str());
    return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
    const HANDLE handle = ::CreateFileW(path.c_str(), GENERIC_READ, FILE_SHARE_READ, nullptr, OPEN_EXISTING,
                                        FILE_ATTRIBUTE_NORMAL, nullptr);
    if (handle == INVALID_HANDLE_VALUE) {
        const DWORD code = ::GetLastError();
        return is_folder(path) ? not_a_file(path) : system_failure(path, "cannot be opened", code);
    }
    if (::GetFileType(handle) != FILE_TYPE_DISK) {  // a pipe, or a device such as NUL
        ::CloseHandle(handle);
        return not_a_file(path);
    }
    LARGE_INTEGER size{};
    if (!::GetFileSizeEx(handle, &size)) {
        const DWORD code = ::GetLastError();
        ::CloseHandle(handle);
        return system_failure(path, "its size cannot be read", code);
    }
    MappedFile file;
    file.path_ = path;
    if (size.QuadPart > 0) {
        const HANDLE mapping = ::CreateFileMappingW(handle, nullptr, PAGE_READONLY, 0, 0, nullptr);
        void* address = mapping ? ::MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0) : nullptr;
        const DWORD code = ::GetLastError();
        if (mapping) ::CloseHandle(mapping);  // the view keeps it alive
        if (!address) {
            ::CloseHandle(handle);
            return system_failure(path, "cannot be mapped into memory", code);
        }
        file.data_ = static_cast<const std::byte*>(address);
        file.size_ = static_cast<std::size_t>(size.QuadPart);
    }
    ::CloseHandle(handle);
    return file;
}

void MappedFile::close() noexcept {
    if (data_) ::UnmapViewOfFile(data_);
    data_ = nullptr;
    size_ = 0;
}

void MappedFile::will_need(std::size_t offset, std::size_t size) const noexcept {
    if (offset >= size_) return;
    WIN32_MEMORY_RANGE_ENTRY range{const_cast<std::byte*>(data_) + offset, std::min(size, size_ - offset)};
    ::PrefetchVirtualMemory(::GetCurrentProcess(), 1, &range, 0);
}

void MappedFile::drop(std::size_t offset, std::size_t size) const noexcept {
    // Unlocking pages that are not locked takes them out of the working set: documented for VirtualUnlock.
    if (offset < size_) ::VirtualUnlock(const_cast<std::byte*>(data_) + offset, std::min(size, size_ - offset));
}

}  // namespace headroom
