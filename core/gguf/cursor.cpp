#include "core/gguf/cursor.h"

#include "core/base/quote.h"

namespace headroom::gguf {

std::string to_string(const Place& place) {
    std::string text(place.what);
    if (place.number != 0) text += fmt::format(" {}", place.number);
    if (!place.name.empty()) text += ' ' + quote(place.name);
    return text;
}

Result<std::span<const std::byte>> Cursor::take(std::uint64_t count) {
    last_ = position_;
    if (count > remaining()) {
        return refuse("the file is cut off or damaged: {} bytes are needed here, {} are left", count, remaining());
    }
    position_ += count;
    return bytes_.subspan(static_cast<std::size_t>(last_), static_cast<std::size_t>(count));
}

Result<std::string_view> Cursor::string() {
    const std::uint64_t begin = position_;
    HR_TRY(const auto length, number<std::uint64_t>());
    if (length > remaining()) {
        last_ = begin;
        return refuse("the file is cut off or damaged: a string claims {} bytes, {} are left", length, remaining());
    }
    HR_TRY(const auto bytes, take(length));
    last_ = begin;
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::unexpected<Error> Cursor::refuse_as(ErrorKind kind, const std::string& reason) const {
    return fail(kind, "{}: in {} (byte {}): {}", file_, to_string(place_), last_, reason);
}

}  // namespace headroom::gguf
