#include "tests/simgpu/reduced_drivers.h"

#include <fstream>
#include <sstream>

#include <fmt/format.h>

namespace headroom::test {
namespace {

std::string read(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

// Replaces a string of an ELF file's tables by one of the same length.
bool replace(std::string& bytes, const std::string& from, const std::string& to) {
    const std::string whole = std::string(1, '\0') + from + '\0';
    std::size_t count = 0;
    for (auto at = bytes.find(whole); at != std::string::npos; at = bytes.find(whole, at + 1), ++count) bytes.replace(at + 1, to.size(), to);
    return count > 0;
}

}  // namespace

bool make_reduced_drivers(const std::filesystem::path& from, const std::filesystem::path& folder, const std::set<std::string>& without,
                          const std::string& hip_name) {
    static int copies = 0;
    const std::string name = "libsimgpu.so", copy = fmt::format("libsim{:03}.so", copies++);  // the loader knows libraries by their names
    std::filesystem::create_directories(folder);
    const auto write = [&](const std::string& file, const std::string& bytes) {
        std::ofstream out(folder / file, std::ios::binary);
        return static_cast<bool>(out.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush());
    };
    std::string simulator = read(from / name);
    bool done = replace(simulator, name, copy);
    for (const auto& function : without) done = replace(simulator, function, "-" + function.substr(1)) && done;
    done = write(copy, simulator) && done;
    for (const auto& [driver, as] : {std::pair<std::string, std::string>{"libcuda.so.1", "libcuda.so.1"},
                                     {"libamdhip64.so.7", hip_name},
                                     {"libnvidia-ml.so.1", "libnvidia-ml.so.1"}}) {
        std::string bytes = read(from / driver);
        done = replace(bytes, name, copy) && write(as, bytes) && done;
    }
    return done;
}

}  // namespace headroom::test
