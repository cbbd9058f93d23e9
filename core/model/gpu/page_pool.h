#pragma once

// The pages of a KV pool by number: the same numbers on every device, each of which has its layers' part of every page.

#include <cstdint>
#include <mutex>
#include <numeric>
#include <span>
#include <vector>

#include "core/base/error.h"

namespace headroom::model {

// Any thread.
class PagePool {
public:
    explicit PagePool(std::int64_t pages) : total_(pages), free_(static_cast<std::size_t>(pages)) {
        std::iota(free_.rbegin(), free_.rend(), 0);
    }

    // Adds pages to `list` until it has `wanted`. Error: out_of_memory; then the list is what it was.
    [[nodiscard]] Result<> take(std::vector<std::int32_t>& list, std::size_t wanted);
    // Gives back what lies behind the first `kept` pages of the list.
    void give_back(std::vector<std::int32_t>& list, std::size_t kept) noexcept;

private:
    std::mutex mutex_;
    std::int64_t total_;
    std::vector<std::int32_t> free_;
};

}  // namespace headroom::model
