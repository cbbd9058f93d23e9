#pragma once

// File names as UTF-8, and the folders of the user. Windows keeps names in UTF-16 and std::filesystem::path::string() there
// loses what the code page lacks: use these two functions instead wherever a name meets text.

#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/error.h"

namespace headroom {

// Neither fails. On Windows what is no text (half of a surrogate pair; bytes that are no UTF-8) becomes U+FFFD; on Linux names are
// bytes and stay as they are, so that every file can be opened: show them through printable() of quote.h.
[[nodiscard]] std::string to_utf8(const std::filesystem::path& path);
[[nodiscard]] std::filesystem::path from_utf8(std::string_view text);

// Where this program keeps conversations and settings: $XDG_DATA_HOME/headroom (~/.local/share/headroom) or
// %APPDATA%\Headroom. Not created.
[[nodiscard]] std::filesystem::path user_data_folder();

// Where models lie unless the settings say otherwise: user_data_folder()/models. Not created.
[[nodiscard]] std::filesystem::path default_model_folder();

// The running program; empty where the system does not tell.
[[nodiscard]] std::filesystem::path program_file();

// The folder of the running program; empty where the system does not tell.
[[nodiscard]] std::filesystem::path program_folder();

// The whole file as bytes. Errors: not_found, io, invalid_file for one larger than `limit` bytes.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t limit);

// Writes the whole file through a neighbour that takes its place at the end: a reader sees the old contents or the new ones,
// never half. Makes the folder where it is missing. Errors: io.
[[nodiscard]] Result<> write_file(const std::filesystem::path& path, std::string_view contents);

}  // namespace headroom
