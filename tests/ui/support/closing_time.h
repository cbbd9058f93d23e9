#pragma once

namespace headroom::test {

// How long closing may take while the engine or a test of a device is at work, in milliseconds. The thread sanitizer looks for the
// names of functions before it drops a report that tsan.supp speaks of, and takes a second for it.
#ifdef __SANITIZE_THREAD__
inline constexpr int kClosingTime = 10'000;
#else
inline constexpr int kClosingTime = 1'000;
#endif

}  // namespace headroom::test
