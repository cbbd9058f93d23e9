#include "core/engine/read_ahead.h"

#include <algorithm>

#include "core/base/bytes.h"

namespace headroom::engine {
namespace {

constexpr std::size_t kPage = 4096;             // the smallest there is: reading one byte of each brings all in
constexpr std::size_t kStep = 1 * MiB;          // a slow disk's 50 milliseconds hold several
constexpr std::size_t kAhead = 8 * MiB;

}  // namespace

Result<> read_ahead(const gguf::File& file, const std::function<void(std::uint64_t)>& report, const std::stop_token& stop) {
    std::uint64_t done = 0;
    for (const MappedFile& shard : file.shards()) {
        const auto bytes = shard.bytes();
        shard.will_need(0, kAhead);
        for (std::size_t begin = 0; begin < bytes.size(); begin += kStep) {
            if (stop.stop_requested()) return fail(ErrorKind::cancelled, "Loading was cancelled");
            shard.will_need(begin + kAhead, kStep);
            const std::size_t end = std::min(bytes.size(), begin + kStep);
            for (std::size_t at = begin; at < end; at += kPage) {
                [[maybe_unused]] const volatile std::byte touched = bytes[at];
            }
            done += end - begin;
            report(done);
        }
    }
    return {};
}

}  // namespace headroom::engine
