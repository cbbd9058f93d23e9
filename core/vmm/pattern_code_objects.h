#pragma once

#include <span>
#include <string_view>

namespace headroom::vmm {

struct CodeObject {
    std::string_view architecture;  // "gfx1100"
    const void* image;
};
// pattern.hip, compiled while building; empty where the build had no clang for it.
[[nodiscard]] std::span<const CodeObject> pattern_code_objects() noexcept;

}  // namespace headroom::vmm
