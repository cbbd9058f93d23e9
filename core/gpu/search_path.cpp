#include "core/gpu/search_path.h"

#include <cstdlib>

#include "core/base/paths.h"

namespace headroom::gpu {

SearchPath SearchPath::from_environment() {
    const char* folder = std::getenv("HEADROOM_GPU_LIBRARIES");
    if (!folder || !*folder) return {};
    const auto path = from_utf8(folder);
    return {.libraries = path, .sysfs = path / "sys"};
}

Result<DynamicLibrary> open_first(const SearchPath& path, const std::vector<std::string>& names,
                                  const std::vector<std::filesystem::path>& places) {
    std::string looked_for;
    std::string broken;  // the first library that is there and does not load: that reason helps more than a list of absent names
    std::error_code code;
    const auto attempt = [&](const std::filesystem::path& name) -> Result<DynamicLibrary> {
        auto library = DynamicLibrary::open(name);
        if (!library && broken.empty() && name.is_absolute() && std::filesystem::exists(name, code)) broken = library.error().message;
        return library;
    };
    for (const auto& name : names) {
        looked_for += (looked_for.empty() ? "" : ", ") + name;
        if (!path.libraries.empty()) {
            if (auto library = attempt(path.libraries / name)) return library;
            continue;
        }
        if (auto library = attempt(name)) return library;
        for (const auto& place : places) {
            if (auto library = attempt(place / name)) return library;
        }
    }
    if (!broken.empty()) return fail(ErrorKind::not_found, "{}", broken);
    return fail(ErrorKind::not_found, "none of {} was found", looked_for);
}

}  // namespace headroom::gpu
