#include "tests/support/shared_data.h"

namespace headroom::test {
namespace {

// Under wine the build machine's root is drive Z:.
std::filesystem::path source_root() {
#ifdef _WIN32
    return std::filesystem::path("Z:" HEADROOM_SOURCE_DIR);
#else
    return std::filesystem::path(HEADROOM_SOURCE_DIR);
#endif
}

}  // namespace

std::filesystem::path shared_data(const std::string& part) {
    const auto path = source_root().parent_path() / "shared" / part;
    std::error_code code;
    return std::filesystem::exists(path, code) ? path : std::filesystem::path();
}

const char* missing_shared(const std::string& part) {
    static thread_local std::string text;
    text = "the folder shared beside the checkout has no " + part;
    return text.c_str();
}

std::filesystem::path source_file(const std::string& part) { return source_root() / part; }

}  // namespace headroom::test
