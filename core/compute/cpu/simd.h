#pragma once

// Which targets of Google Highway the kernels are built for; included before hwy/highway.h by every file with kernels.
//
// AVX3_DL (AVX-512 with VNNI and VBMI: Ice Lake, Zen 4 and later) and AVX2 (with FMA and F16C: Haswell and later) have kernels. What is
// older runs the scalar reference. AVX3 without VNNI would gain little over AVX2 and is left out.
#define HWY_WANT_AVX3_DL
#define HWY_DISABLE_PCLMUL_AES
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3)

// Before a loop with a constant count, whose variables are to stay in registers.
#define HEADROOM_UNROLL _Pragma("GCC unroll 16")
