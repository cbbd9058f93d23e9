#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headroom::model {

// Makes a scratch buffer at least so long; it never becomes shorter. Allocates.
template <class T>
void grow(std::vector<T>& buffer, std::int64_t count) {
    if (buffer.size() < static_cast<std::size_t>(count)) buffer.resize(static_cast<std::size_t>(count));
}

}  // namespace headroom::model
