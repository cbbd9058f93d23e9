#include "core/model/gpu/page_pool.h"

#include <algorithm>

#include "core/compute/cpu/ops.h"

namespace headroom::model {

Result<> PagePool::take(std::vector<std::int32_t>& list, std::size_t wanted) {
    if (list.size() >= wanted) return {};
    const std::scoped_lock lock(mutex_);
    std::vector<std::int32_t> found;
    for (std::size_t page = 0; page < used_.size() && list.size() + found.size() < wanted; ++page) {
        if (!used_[page]) found.push_back(static_cast<std::int32_t>(page));
    }
    if (list.size() + found.size() < wanted) {
        return full(static_cast<std::int64_t>(used_.size()));
    }
    list.insert(list.end(), found.begin(), found.end());
    for (const std::int32_t page : found) used_[static_cast<std::size_t>(page)] = true;
    return {};
}

void PagePool::give_back(std::vector<std::int32_t>& list, std::size_t kept) noexcept {
    if (list.size() <= kept) return;
    const std::scoped_lock lock(mutex_);
    for (std::size_t i = kept; i < list.size(); ++i) used_[static_cast<std::size_t>(list[i])] = false;
    list.resize(kept);
}

std::int64_t PagePool::backed_for(std::size_t more) const {
    const std::scoped_lock lock(mutex_);
    const auto free = static_cast<std::size_t>(std::ranges::count(used_, false));
    return static_cast<std::int64_t>(used_.size() + (more > free ? more - free : 0));
}

std::int64_t PagePool::drop_unused() {
    const std::scoped_lock lock(mutex_);
    while (!used_.empty() && !used_.back()) used_.pop_back();
    return static_cast<std::int64_t>(used_.size());
}

void PagePool::set_backed(std::int64_t backed) {
    const std::scoped_lock lock(mutex_);
    used_.resize(std::max(used_.size(), static_cast<std::size_t>(std::min(backed, total_))));
}

std::unexpected<Error> PagePool::full(std::int64_t pages) {
    return fail(ErrorKind::out_of_memory, "The GPU's memory for conversations is full: it holds {} tokens in all; end another conversation, or load the model "
                "with a smaller context", pages * cpu::kPagePositions);
}

std::int64_t PagePool::backed() const {
    const std::scoped_lock lock(mutex_);
    return static_cast<std::int64_t>(used_.size());
}

}  // namespace headroom::model
