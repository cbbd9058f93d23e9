#include "core/base/paths.h"

#include <fstream>

#include "core/base/bytes.h"
#include "core/base/process.h"
#include "core/base/quote.h"

namespace headroom {

std::filesystem::path default_model_folder() { return user_data_folder() / "models"; }

std::filesystem::path program_folder() { return program_file().parent_path(); }

Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t limit) {
    std::error_code code;
    const std::uint64_t size = std::filesystem::file_size(path, code);
    if (code) {
        const bool absent = code == std::errc::no_such_file_or_directory;
        return fail(absent ? ErrorKind::not_found : ErrorKind::io, "{}: cannot be read: {}", printable(to_utf8(path)),
                    absent ? "there is no such file" : code.message());
    }
    if (size > limit) {
        return fail(ErrorKind::invalid_file, "{}: is {} large, but at most {} are expected here", printable(to_utf8(path)),
                    format_bytes(size), format_bytes(limit));
    }
    std::ifstream in(path, std::ios::binary);
    std::string text(size, '\0');
    if (!in || !in.read(text.data(), static_cast<std::streamsize>(size))) {
        return fail(ErrorKind::io, "{}: cannot be read", printable(to_utf8(path)));
    }
    return text;
}

Result<> write_file(const std::filesystem::path& path, std::string_view contents) {
    std::error_code code;
    if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), code);
    std::filesystem::path neighbour = path;
    neighbour += fmt::format(".{}.new", process_id());
    {
        std::ofstream out(neighbour, std::ios::binary);
        if (!out.write(contents.data(), static_cast<std::streamsize>(contents.size())) || !out.flush()) {
            out.close();
            std::filesystem::remove(neighbour, code);
            return fail(ErrorKind::io, "{}: cannot be written", printable(to_utf8(path)));
        }
    }
    std::filesystem::rename(neighbour, path, code);
    if (!code) return {};
    const std::string reason = code.message();
    std::filesystem::remove(neighbour, code);
    return fail(ErrorKind::io, "{}: cannot be written: {}", printable(to_utf8(path)), reason);
}

}  // namespace headroom
