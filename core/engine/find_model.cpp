#include <algorithm>
#include <array>
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

std::vector<std::string> names_in(const std::filesystem::path& folder) {
    std::vector<std::string> names;
    std::error_code code;
    for (std::filesystem::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code)) {
        if (entry->path().extension() == ".gguf" && is_file(entry->path())) names.push_back(to_utf8(entry->path().stem()));
    }
    std::ranges::sort(names);
    return names;
}

}  // namespace

Result<std::filesystem::path> find_model(std::string_view name, const std::filesystem::path& model_folder) try {
    if (name == "builtin") return find_builtin();
    const std::filesystem::path given = from_utf8(name);
    if (is_file(given)) return given;
    std::error_code code;
    if (std::filesystem::is_directory(given, code)) {
        return fail(ErrorKind::not_found, "{} is a folder: name the model's .gguf file in it", quote(name, 500));
    }
    // In the model folder a name is one file's name: nothing that could lead to another folder.
    const bool plain = !name.empty() && name.find_first_of("/\\:") == std::string_view::npos && name != "." && name != "..";
    if (plain && !model_folder.empty()) {
        for (const std::string_view ending : {"", ".gguf"}) {
            const std::filesystem::path path = model_folder / from_utf8(std::string(name).append(ending));
            if (is_file(path)) return path;
        }
    }
    std::vector<std::string> names = names_in(model_folder);
    if (names.size() > kNamesInMessage) {
        names.resize(kNamesInMessage);
        names.emplace_back("…");
    }
    if (names.empty()) {
        return fail(ErrorKind::not_found, "There is no model {}: no such file, and the model folder {} is empty", quote(name, 500),
                    to_utf8(model_folder));
    }
    return fail(ErrorKind::not_found, "There is no model {}: no such file, and the model folder {} has only: {}", quote(name, 500),
                to_utf8(model_folder), fmt::join(names, ", "));
} catch (const std::exception& error) {  // std::filesystem: names that are no UTF-8, out of memory
    return fail(ErrorKind::not_found, "There is no model {}: {}", quote(name, 500), error.what());
}

}  // namespace headroom::engine
