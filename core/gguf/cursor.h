#pragma once

// Reading a hostile file from front to back: every read is checked against the bytes that are left.

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/base/quote.h"

namespace headroom::gguf {

static_assert(std::endian::native == std::endian::little, "numbers of a file are copied as they are");

// Where in a file something is, for messages: {"metadata", "general.name"} or {"tensor entry", {}, 3}.
struct Place {
    std::string_view what;
    std::string_view name = {};   // written in quotes if not empty
    std::uint64_t number = 0;     // written if not 0 (entries are counted from 1)
};
[[nodiscard]] std::string to_string(const Place& place);

class Cursor {
public:
    // file: the name for messages. Both must outlive the cursor.
    Cursor(std::span<const std::byte> bytes, std::string_view file) : bytes_(bytes), file_(file) {}

    // What the reads that follow belong to; errors name it.
    void enter(const Place& place) noexcept { place_ = place; }
    // Errors speak of an earlier place again, which began at byte `position`.
    void enter_again(const Place& place, std::uint64_t position) noexcept {
        place_ = place;
        last_ = position;
    }

    [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
    [[nodiscard]] std::uint64_t remaining() const noexcept { return bytes_.size() - position_; }
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

    // The next `count` bytes.
    [[nodiscard]] Result<std::span<const std::byte>> take(std::uint64_t count);

    template <class T>
    [[nodiscard]] Result<T> number() {
        HR_TRY(const auto bytes, take(sizeof(T)));
        T value;
        std::memcpy(&value, bytes.data(), sizeof(T));
        return value;
    }

    // A 64-bit length and that many bytes. The view points into the file.
    [[nodiscard]] Result<std::string_view> string();

    // refuse("the reason, {}", …): an invalid_file error "FILE: in PLACE (byte N): reason", N being where the last read (or the place entered again) began.
    template <class... Args>
    [[nodiscard]] std::unexpected<Error> refuse(fmt::format_string<Args...> text, Args&&... args) const {
        return refuse_as(ErrorKind::invalid_file, fmt::format(text, std::forward<Args>(args)...));
    }
    [[nodiscard]] std::unexpected<Error> refuse_as(ErrorKind kind, const std::string& reason) const;

private:
    std::span<const std::byte> bytes_;
    std::string_view file_;
    std::uint64_t position_ = 0;
    std::uint64_t last_ = 0;  // the position for messages
    Place place_{"the header"};
};

}  // namespace headroom::gguf
