#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "core/base/error.h"

namespace headroom {

// A whole file mapped read-only and shared (a private mapping must never be registered with a GPU driver: see the facts on
// virtual memory). The bytes stay valid, at one address, until the object is destroyed. Movable; safe to read from any thread.
// A file that another program truncates while it is mapped ends the process on access: the operating system offers no other way.
class MappedFile {
public:
    // Errors: not_found, io (with the system's words). An empty file gives an empty span.
    [[nodiscard]] static Result<MappedFile> open(const std::filesystem::path& path);

    MappedFile() = default;
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile();

    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

    // Hints to the system; never fail. offset and size in bytes, clipped to the file.
    void will_need(std::size_t offset, std::size_t size) const noexcept;  // start reading ahead
    void drop(std::size_t offset, std::size_t size) const noexcept;       // these pages may leave this process's memory

private:
    void close() noexcept;

    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
    std::filesystem::path path_;
};

}  // namespace headroom
