#pragma once

// Copies of the simulated drivers that lack some functions, as old drivers do. Linux only: the names are taken out of the copy's table of
// exported functions.

#include <filesystem>
#include <set>
#include <string>

namespace headroom::test {

// Puts the drivers into `folder`, without the functions of these names. from: the folder of the complete ones. hip_name: the name that the HIP
// runtime has there. Each copy is a library of its own, with its own state, which it reads from SIMGPU_CONFIG when it is loaded.
// False where a function is not there in the first place, or a file cannot be written.
[[nodiscard]] bool make_reduced_drivers(const std::filesystem::path& from, const std::filesystem::path& folder, const std::set<std::string>& without,
                                        const std::string& hip_name = "libamdhip64.so.7");

}  // namespace headroom::test
