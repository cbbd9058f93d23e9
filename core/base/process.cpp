#include "core/base/process.h"

namespace headroom {

std::string describe_end(const ChildResult& result, std::chrono::milliseconds time_limit) {
    switch (result.end) {
        case ChildResult::End::timed_out:
            return fmt::format("did not finish in {:g} s", static_cast<double>(time_limit.count()) / 1000);
        case ChildResult::End::crashed: return fmt::format("crashed ({})", result.crash);
        case ChildResult::End::stopped: return "was stopped";
        case ChildResult::End::exited: break;
    }
    return fmt::format("ended with code {}", result.code);
}

}  // namespace headroom
