# HEADROOM_HIP_COMPILER: a clang that makes code objects for AMD cards, and the options that all of them are made with; empty where there is
# none. No header or library of ROCm is needed.
set(HEADROOM_HIP_OPTIONS -x hip --cuda-device-only -O3 -std=c++20 -nogpuinc -nogpulib --no-gpu-bundle-output -mcode-object-version=5)
set(HEADROOM_HIP_COMPILER "")
find_program(HEADROOM_HIP_CLANG NAMES clang++-19 DOC "clang for AMD device code")
if(HEADROOM_HIP_CLANG)
    # It links with lld, which is a package of its own.
    set(trial "${CMAKE_BINARY_DIR}/CMakeFiles/hip_trial")
    file(WRITE "${trial}.hip" "extern \"C\" __attribute__((global)) void nothing() {}\n")
    execute_process(COMMAND "${HEADROOM_HIP_CLANG}" ${HEADROOM_HIP_OPTIONS} --offload-arch=gfx1100 "${trial}.hip" -o "${trial}.co"
        RESULT_VARIABLE trial_result OUTPUT_VARIABLE trial_output ERROR_VARIABLE trial_output)
    if(trial_result EQUAL 0)
        set(HEADROOM_HIP_COMPILER "${HEADROOM_HIP_CLANG}")
    else()
        message(STATUS "${HEADROOM_HIP_CLANG} makes no code for AMD cards (is lld-19 installed?):\n${trial_output}")
    endif()
else()
    message(STATUS "clang++-19 was not found: it makes the code for AMD cards")
endif()
