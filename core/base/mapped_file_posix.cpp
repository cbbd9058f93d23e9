#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "core/base/mapped_file.h"
#include "core/base/paths.h"
#include "core/base/quote.h"

namespace headroom {
namespace {

std::unexpected<Error> system_failure(const std::filesystem::path& path, const char* what, int code) {
    return fail(code == ENOENT ? ErrorKind::not_found : ErrorKind::io, "{}: {}: {}", printable(to_utf8(path)), what,
                std::generic_category().message(code));
}

// The page-aligned part of [offset, offset + size) clipped to the file.
std::span<std::byte> pages(std::span<const std::byte> file, std::size_t offset, std::size_t size) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    if (offset >= file.size()) return {};
    const std::size_t end = std::min(file.size(), size > file.size() - offset ? file.size() : offset + size);
    const std::size_t begin = offset / page * page;
    return {const_cast<std::byte*>(file.data()) + begin, end - begin};  // madvise takes void*, it does not write
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
    // O_NONBLOCK: opening a pipe that nobody writes to must not hang. It means nothing to a regular file.
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return system_failure(path, "cannot be opened", errno);
    struct stat status {};
    if (::fstat(descriptor, &status) != 0) {
        const int code = errno;
        ::close(descriptor);
        return system_failure(path, "its size cannot be read", code);
    }
    if (!S_ISREG(status.st_mode)) {
        ::close(descriptor);
        return fail(ErrorKind::invalid_argument, "{}: is not a regular file", printable(to_utf8(path)));
    }
    MappedFile file;
    file.path_ = path;
    file.size_ = static_cast<std::size_t>(status.st_size);
    if (file.size_ > 0) {
        void* address = ::mmap(nullptr, file.size_, PROT_READ, MAP_SHARED, descriptor, 0);
        if (address == MAP_FAILED) {
            const int code = errno;
            ::close(descriptor);
            file.size_ = 0;
            return system_failure(path, "cannot be mapped into memory", code);
        }
        file.data_ = static_cast<const std::byte*>(address);
    }
    ::close(descriptor);
    return file;
}

void MappedFile::close() noexcept {
    if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
    data_ = nullptr;
    size_ = 0;
}

void MappedFile::will_need(std::size_t offset, std::size_t size) const noexcept {
    if (const auto part = pages(bytes(), offset, size); !part.empty()) ::madvise(part.data(), part.size(), MADV_WILLNEED);
}

void MappedFile::drop(std::size_t offset, std::size_t size) const noexcept {
    if (const auto part = pages(bytes(), offset, size); !part.empty()) ::madvise(part.data(), part.size(), MADV_DONTNEED);
}

}  // namespace headroom
