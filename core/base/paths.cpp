#include "core/base/paths.h"

#include <fstream>

#include "core/base/bytes.h"

namespace headroom {

std::string to_utf8(const std::filesystem::path& path) {
    const std::u8string text = path.u8string();
    return {text.begin(), text.end()};
}

std::filesystem::path from_utf8(std::string_view text) { return std::filesystem::path(std::u8string(text.begin(), text.end())); }

std::filesystem::path default_model_folder() { return user_data_folder() / "models"; }

Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t limit) {
    std::error_code code;
    const std::uint64_t size = std::filesystem::file_size(path, code);
    if (code) return fail(ErrorKind::io, "{}: cannot be read: {}", to_utf8(path), code.message());
    if (size > limit) {
        return fail(ErrorKind::invalid_file, "{}: is {} large, but at most {} are expected here", to_utf8(path),
                    format_bytes(size), format_bytes(limit));
    }
    std::ifstream in(path, std::ios::binary);
    std::string text(size, '\0');
    if (!in || !in.read(text.data(), static_cast<std::streamsize>(size))) {
        return fail(ErrorKind::io, "{}: cannot be read", to_utf8(path));
    }
    return text;
}

}  // namespace headroom
