#include "core/vmm/create_arena.h"

#include <spdlog/spdlog.h>

#include "core/base/bytes.h"
#include "core/base/system.h"
#include "core/vmm/verdict_text.h"

namespace headroom::vmm {
namespace {

void raise_open_files(std::uint64_t needed) {
    const auto before = open_file_limit();
    if (!before || before->soft >= needed) return;
    if (const auto after = raise_open_file_limit(needed)) spdlog::info("{}", text::open_file_limit_raised(before->soft, after->soft));
}

}  // namespace

Result<std::unique_ptr<Arena>> create_arena(SegmentPool& pool, const Verdict& verdict, std::uint64_t bytes) {
    if (verdict.kind == VerdictKind::off) {
        return fail(ErrorKind::invalid_argument, "the verdict on this device is off, so its memory has to be allocated the plain way: {}", verdict.reason);
    }
    raise_open_files(verdict.open_files_needed);
    return Arena::create(pool, {.bytes = bytes,
                                .segment_bytes = verdict.kind == VerdictKind::on ? verdict.segment_bytes
                                                                                 : checked_round_up(bytes, verdict.granularity_recommended).value_or(bytes),
                                .granularity = verdict.granularity_recommended,
                                .access = verdict.access,
                                .host_access = verdict.host_access});
}

}  // namespace headroom::vmm
