# Language level, warnings and sanitizers: the same for every target of the tree.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

option(HEADROOM_TESTS "Build the tests" ON)
option(HEADROOM_FUZZERS "Build the libFuzzer targets (clang only)" OFF)
set(HEADROOM_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize= (address,undefined or thread)")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # Precompiled headers are cached only where ccache may trust their contents.
    set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros "${CCACHE_PROGRAM}")
    set(CMAKE_C_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()

# Every target links this one. -ffp-contract=off is part of the arithmetic (docs/arithmetic.md): a fused
# multiply-add happens only where the source says fma.
add_library(headroom_flags INTERFACE)
target_compile_options(headroom_flags INTERFACE
    -ffp-contract=off
    -Wall -Wextra -Werror -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-qual -Wimplicit-fallthrough
    # Off: with optimization GCC 12 sees overlaps and overflows in its own std::string and std::vector that are none
    # (GCC bugs 105651, 105329 and 107852).
    $<$<CXX_COMPILER_ID:GNU>:-Wlogical-op -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds>
    # Clang sees a deprecated function in libstdc++ 12's own std::stable_sort.
    $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
if(WIN32)
    target_compile_definitions(headroom_flags INTERFACE UNICODE _UNICODE NOMINMAX WIN32_LEAN_AND_MEAN _WIN32_WINNT=0x0A00)
    # GCC 12's own semaphores lose wake-ups on Windows (core/base/address_wait_windows.cpp), and std::stop_callback waits with one: winpthreads' do not.
    target_compile_definitions(headroom_flags INTERFACE _GLIBCXX_USE_POSIX_SEMAPHORE=1)
endif()
if(HEADROOM_SANITIZE)
    target_compile_options(headroom_flags INTERFACE -fsanitize=${HEADROOM_SANITIZE} -fno-omit-frame-pointer
        -fno-sanitize-recover=all)
    target_link_options(headroom_flags INTERFACE -fsanitize=${HEADROOM_SANITIZE})
    # GCC's guesses about uninitialized values go wrong in instrumented code; the other builds keep them.
    target_compile_options(headroom_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    if(HEADROOM_SANITIZE MATCHES "thread")
        # GCC warns that its own std::atomic_thread_fence is not understood by TSan; we use none across threads.
        target_compile_options(headroom_flags INTERFACE -Wno-tsan)
    endif()
endif()
