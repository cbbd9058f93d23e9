#pragma once

#include <stop_token>

#include "core/engine/engine.h"

namespace headroom::engine {

// Brings the mapped file into memory, page by page, so that the first answer does not wait for the disk. report: bytes done, after every
// step. Error: cancelled.
[[nodiscard]] Result<> read_ahead(const gguf::File& file, const std::function<void(std::uint64_t bytes_done)>& report,
                                  const std::stop_token& stop);

}  // namespace headroom::engine
