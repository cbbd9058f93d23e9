#pragma once

// The pages of a KV pool by number: the same numbers on every device, each of which has its layers' part of every page.

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "core/base/error.h"

namespace headroom::model {

// Any thread.
class PagePool {
public:
    // pages: that may ever be there. backed: the first so many can be used now.
    PagePool(std::int64_t pages, std::int64_t backed) : total_(pages) { set_backed(backed); }

    // Adds pages to `list` until it has `wanted`, those of the lowest numbers. Error: out_of_memory; then the list is what it was.
    [[nodiscard]] Result<> take(std::vector<std::int32_t>& list, std::size_t wanted);
    // Gives back what lies behind the first `kept` pages of the list.
    void give_back(std::vector<std::int32_t>& list, std::size_t kept) noexcept;

    // How many pages have to be backed so that `more` can be taken; more than total(): that will never be.
    [[nodiscard]] std::int64_t backed_for(std::size_t more) const;
    // The pages behind the last one that is in use cannot be used from now on. Returns how many can.
    std::int64_t drop_unused();
    // The first `backed` pages can be used from now on: no fewer than before.
    void set_backed(std::int64_t backed);
    [[nodiscard]] std::int64_t backed() const;
    [[nodiscard]] std::int64_t total() const noexcept { return total_; }
    // What is said where `pages` of them are not enough for the conversations.
    [[nodiscard]] static std::unexpected<Error> full(std::int64_t pages);

private:
    mutable std::mutex mutex_;
    std::int64_t total_;
    std::vector<bool> used_;  // of those that are backed
};

}  // namespace headroom::model
