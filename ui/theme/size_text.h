#pragma once

#include <QString>

#include <cstdint>

namespace headroom::ui {

// "1.5 GiB", kept on one line.
[[nodiscard]] QString size_text(std::uint64_t bytes);

}  // namespace headroom::ui
