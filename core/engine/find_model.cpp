#include <algorithm>
#include <array>
#include <optional>
#include <system_error>

#include <fmt/ranges.h>

#include "core/base/paths.h"
#include "core/base/quote.h"
#include "core/engine/engine.h"

namespace headroom::engine {
namespace {

constexpr std::string_view kBuiltinFile = "guide-q4_k_m.gguf";
constexpr std::size_t kNamesInMessage = 20;

bool is_file(const std::filesystem::path& path) {
    std::error_code code;
    return std::filesystem::is_regular_file(path, code);
}

Result<std::filesystem::path> find_builtin() {
    const std::filesystem::path folder = program_folder();
    const std::array places{folder / "model" / kBuiltinFile, folder.parent_path() / "share" / "headroom" / "model" / kBuiltinFile};
    for (const auto& place : places) {
        if (is_file(place)) return place;
    }
    return fail(ErrorKind::not_found, "The built-in model is missing: neither {} nor {} is there; install the program again",
                to_utf8(places[0]), to_utf8(places[1]));
}

// "x-00002-of-00005", but not the first part.
bool is_later_part(std::string_view stem) {
    constexpr std::size_t kTail = std::string_view("-00001-of-00005").size();
    if (stem.size() <= kTail) return false;
    const std::string_view tail = stem.substr(stem.size() - kTail);
    const auto digits = [](std::string_view text) { return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; }); };
    return tail[0] == '-' && digits(tail.substr(1, 5)) && tail.substr(6, 4) == "-of-" && digits(tail.substr(10)) && tail.substr(1, 5) != "00001";
}

std::optional<std::filesystem::path> find_in_folder(std::string_view name, const std::filesystem::path& folder) {
    // In the model folder a name is one file's name: nothing that could lead to another folder.
    const bool plain = !name.empty() && name.find_first_of(std::string_view("/\\:\0", 4)) == std::string_view::npos && name != "." && name != "..";
    if (!plain || folder.empty()) return std::nullopt;
    for (const std::string_view ending : {"", ".gguf"}) {
        std::filesystem::path path = folder / from_utf8(std::string(name).append(ending));
        if (is_file(path)) return path;
    }
    return std::nullopt;
}

// looked: "no such file, and " where a path was possible too.
std::unexpected<Error> no_model(std::string_view name, std::string_view looked, const std::filesystem::path& folder) {
    std::vector<std::string> names = model_names(folder);
    if (names.size() > kNamesInMessage) {
        names.resize(kNamesInMessage);
        names.emplace_back("…");
    }
    if (names.empty()) {
        return fail(ErrorKind::not_found, "There is no model {}: {}the model folder {} is empty", quote(name, 500), looked, to_utf8(folder));
    }
    return fail(ErrorKind::not_found, "There is no model {}: {}the model folder {} has only: {}", quote(name, 500), looked, to_utf8(folder),
                fmt::join(names, ", "));
}

}  // namespace

std::vector<std::string> model_names(const std::filesystem::path& folder) try {
    std::vector<std::string> names;
    std::error_code code;
    for (std::filesystem::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code)) {
        if (entry->path().extension() != ".gguf" || !is_file(entry->path())) continue;
        std::string name = to_utf8(entry->path().stem());
        if (!is_later_part(name)) names.push_back(std::move(name));
    }
    std::ranges::sort(names);
    return names;
} catch (const std::exception&) {  // std::filesystem: out of memory
    return {};
}

Result<std::filesystem::path> find_model_by_name(std::string_view name, const std::filesystem::path& model_folder) try {
    if (name == "builtin") return find_builtin();
    if (auto path = find_in_folder(name, model_folder)) return *path;
    return no_model(name, "", model_folder);
} catch (const std::exception& error) {
    return fail(ErrorKind::not_found, "There is no model {}: {}", quote(name, 500), error.what());
}

Result<std::filesystem::path> find_model(std::string_view name, const std::filesystem::path& model_folder) try {
    if (name == "builtin") return find_builtin();
    const std::filesystem::path given = from_utf8(name);
    if (is_file(given)) return given;
    std::error_code code;
    if (std::filesystem::is_directory(given, code)) {
        return fail(ErrorKind::not_found, "{} is a folder: name the model's .gguf file in it", quote(name, 500));
    }
    if (auto path = find_in_folder(name, model_folder)) return *path;
    return no_model(name, "no such file, and ", model_folder);
} catch (const std::exception& error) {  // std::filesystem: names that are no UTF-8, out of memory
    return fail(ErrorKind::not_found, "There is no model {}: {}", quote(name, 500), error.what());
}

}  // namespace headroom::engine
