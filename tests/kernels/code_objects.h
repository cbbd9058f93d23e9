#pragma once

// What a compiled kernel says about itself, read from the images of this build.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace headroom::test {

struct CompiledKernel {
    std::string target;              // "gfx1100", "sm_90"
    std::string name;                // "headroom_argmax_rows"
    std::size_t argument_bytes = 0;  // of what the host hands over
    std::size_t private_bytes = 0;   // of memory for each thread: spilled registers, arrays that are no registers
    std::size_t spills = 0;          // vector registers that were spilled (AMD; NVIDIA's are counted in private_bytes)
    std::size_t scalar_spills = 0;   // scalar registers that went to lanes of vector registers (AMD); no memory is touched
    std::size_t shared_bytes = 0;    // static
    std::size_t registers = 0;       // of a thread
};

// A code object of version 5: the note with its metadata (LLVM's AMDGPU usage guide, "Code object V5 metadata").
[[nodiscard]] std::vector<CompiledKernel> read_code_object(std::span<const unsigned char> image);
// A fatbin: the machine code in it, which the build does not compress. The formats are NVIDIA's own; what is read here was found by
// comparing with what ptxas -v prints.
[[nodiscard]] std::vector<CompiledKernel> read_fatbin(std::span<const unsigned char> image);
// The architectures that a fatbin has PTX for: "90".
[[nodiscard]] std::vector<std::string> ptx_architectures(std::span<const unsigned char> image);

}  // namespace headroom::test
