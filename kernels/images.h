#pragma once

// The compiled kernels inside the program. The table is written while configuring (kernels/CMakeLists.txt).

#include <cstddef>
#include <span>
#include <string_view>

namespace headroom::kernels {

// The kernels of one unit (one .cu file) as the driver loads them.
struct Image {
    std::string_view unit;          // "vectors"
    std::string_view architecture;  // "gfx1100"; "cuda": a fatbin with code for several
    const unsigned char* data;
    std::size_t bytes;
};

struct Images {
    std::span<const Image> images;
    std::string_view cuda_code;  // what the fatbins hold machine code for: "75 80 90"
    std::string_view cuda_ptx;   // and what they hold PTX for, which the driver compiles for any later architecture: "90"
};

// Those of this build; without images where it was built without the compilers.
[[nodiscard]] Images images() noexcept;

}  // namespace headroom::kernels
