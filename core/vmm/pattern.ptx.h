#pragma once

#include <string>
#include <string_view>

namespace headroom::vmm {
namespace ptx {

// How both begin: %i is the thread's first word, %step the words between two of its own, %at the address of word %i, %value what belongs there.
// Parameters that only one of them has are read behind it.
inline constexpr std::string_view head = R"(
    .reg .pred %done, %differs;
    .reg .b32 %block, %threads, %thread, %blocks, %low, %seed, %value, %seen;
    .reg .b64 %words, %count, %wrong, %i, %lane, %step, %at;
    ld.param.u64 %words, [words];
    ld.param.u64 %count, [count];
    ld.param.u32 %seed, [seed];
    cvta.to.global.u64 %words, %words;
    mov.u32 %block, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    mov.u32 %thread, %tid.x;
    mov.u32 %blocks, %nctaid.x;
    mul.wide.u32 %i, %block, %threads;
    cvt.u64.u32 %lane, %thread;
    add.u64 %i, %i, %lane;
    mul.wide.u32 %step, %blocks, %threads;
)";
inline constexpr std::string_view word = R"(
next:
    setp.ge.u64 %done, %i, %count;
    @%done bra end;
    cvt.u32.u64 %low, %i;
    mad.lo.u32 %value, %low, 2654435761, %seed;
    shl.b64 %at, %i, 2;
    add.u64 %at, %words, %at;
)";
inline constexpr std::string_view next = R"(
    add.u64 %i, %i, %step;
    bra next;
end:
    ret;
}
)";

}  // namespace ptx

// The two kernels of the pattern test for NVIDIA cards, as text that the driver compiles for whatever card there is. Word i of a pattern is
// i * 2654435761 + seed, modulo 2^32. Written for the oldest target that the driver still takes.
[[nodiscard]] inline std::string pattern_ptx() {
    std::string text = R"(
.version 6.0
.target sm_52
.address_size 64

.visible .entry headroom_pattern_fill(.param .u64 words, .param .u64 count, .param .u32 seed)
{
)";
    text.append(ptx::head).append(ptx::word).append(R"(
    st.global.u32 [%at], %value;
)");
    text.append(ptx::next).append(R"(
.visible .entry headroom_pattern_check(.param .u64 words, .param .u64 count, .param .u32 seed, .param .u64 wrong)
{
)");
    text.append(ptx::head).append(R"(
    ld.param.u64 %wrong, [wrong];
    cvta.to.global.u64 %wrong, %wrong;
)");
    text.append(ptx::word).append(R"(
    ld.global.u32 %seen, [%at];
    setp.ne.u32 %differs, %seen, %value;
    @%differs red.global.add.u32 [%wrong], 1;
)");
    return text.append(ptx::next);
}

}  // namespace headroom::vmm
