#pragma once

// Some ROCm versions on Linux keep one open file per segment, and say "out of memory" when the process has no more.

#include <cstdint>
#include <string>

#include "core/base/system.h"

namespace headroom::vmm {

struct OpenFilePlan {
    std::uint64_t needed = 0;         // open files at the chosen segment size
    std::uint64_t segment_bytes = 0;  // the wanted size, or a larger one where only that fits the limit
    bool fits = false;
};

// card_bytes: of VRAM, as if all of it were segments. in_use: files the process has open without them; some more are kept free for the
// rest of the program. Doubles segment_bytes, up to 1 GiB, until the files fit under `hard`.
[[nodiscard]] OpenFilePlan plan_open_files(std::uint64_t card_bytes, std::uint64_t segment_bytes, std::uint64_t files_per_segment,
                                           std::uint64_t in_use, std::uint64_t hard) noexcept;

}  // namespace headroom::vmm
