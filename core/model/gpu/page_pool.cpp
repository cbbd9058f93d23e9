#include "core/model/gpu/page_pool.h"

#include "core/compute/cpu/ops.h"

namespace headroom::model {

Result<> PagePool::take(std::vector<std::int32_t>& list, std::size_t wanted) {
    if (list.size() >= wanted) return {};
    const std::scoped_lock lock(mutex_);
    const std::size_t missing = wanted - list.size();
    if (missing > free_.size()) {
        return fail(ErrorKind::out_of_memory,
                    "The GPU's memory for conversations is full: it holds {} tokens in all; end another conversation, or load the model with a "
                    "smaller context",
                    total_ * cpu::kPagePositions);
    }
    list.insert(list.end(), free_.rbegin(), free_.rbegin() + static_cast<std::ptrdiff_t>(missing));
    free_.resize(free_.size() - missing);
    return {};
}

void PagePool::give_back(std::vector<std::int32_t>& list, std::size_t kept) noexcept {
    if (list.size() <= kept) return;
    const std::scoped_lock lock(mutex_);
    free_.insert(free_.end(), list.rbegin(), list.rend() - static_cast<std::ptrdiff_t>(kept));  // within its capacity
    list.resize(kept);
}

}  // namespace headroom::model
