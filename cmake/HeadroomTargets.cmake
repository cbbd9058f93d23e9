# headroom_library(NAME SOURCES … DEPS …): one folder of core/ (or cli/, ui/) as a static library.
# Its public headers are included from the root of the tree: #include "core/gguf/file.h".
function(headroom_library name)
    cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
    add_library(${name} STATIC ${ARG_SOURCES})
    target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${name} PUBLIC headroom_flags ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
endfunction()

# headroom_test(NAME SOURCES … DEPS … [TIMEOUT s] [LABELS …]): one Qt Test executable, registered with ctest. Tests of the window have
# the label ui, those of its threads and of the server's the label threads; ./test runs these with the thread sanitizer.
function(headroom_test name)
    cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
    add_executable(${name} ${ARG_SOURCES})
    set_target_properties(${name} PROPERTIES AUTOMOC ON)
    target_link_libraries(${name} PRIVATE ${ARG_DEPS})
    headroom_test_options(${name})
    if("ui" IN_LIST ARG_LABELS)
        headroom_reuse_precompiled(${name} headroom_ui_test_headers)
        if("threads" IN_LIST ARG_LABELS)
            add_dependencies(window_thread_tests ${name})
        endif()
    else()
        headroom_reuse_precompiled(${name} headroom_test_headers)
    endif()
    add_test(NAME ${name} COMMAND ${name})
    if(NOT ARG_TIMEOUT)
        set(ARG_TIMEOUT 300)
    endif()
    set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
        # On Windows Qt Test writes to the debugger unless it is told otherwise. Its own limit of five minutes for a function with all of its
        # data is left to ctest, which knows the test. The leak checker of GCC 12 follows threads' variables of libraries that are long gone
        # (simulated drivers come and go by the dozen), and crashes, unless they are not tracked.
        ENVIRONMENT "QTEST_FUNCTION_TIMEOUT=${ARG_TIMEOUT}000;QT_QPA_PLATFORM=offscreen;QT_FORCE_STDERR_LOGGING=1;ASAN_OPTIONS=intercept_tls_get_addr=0;TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan.supp")
endfunction()

# headroom_precompiled_tests(NAME DEPS … HEADERS …): a program that does nothing; its precompiled headers are those of many tests.
function(headroom_precompiled_tests name)
    cmake_parse_arguments(ARG "" "" "DEPS;HEADERS" ${ARGN})
    file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp" CONTENT "int main() {}\n")
    add_executable(${name} "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp")
    target_link_libraries(${name} PRIVATE ${ARG_DEPS})
    headroom_test_options(${name})
    headroom_precompile(${name} ${ARG_HEADERS})
endfunction()

# What a test and its precompiled headers have in common: the compiler takes the headers only where all of it is alike.
function(headroom_test_options name)
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${name} PRIVATE headroom_flags headroom_test_support Qt6::Test)
    # What is tested is optimized in full; the test's own code need not be, and compiles in half the time.
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# headroom_precompile(TARGET HEADER…): headers that nearly every source of a target includes, compiled once. Write all as <header>, our
# own from the root of the tree: CMake would make "header" an absolute path, and ccache would find nothing in another checkout.
function(headroom_precompile target)
    target_precompile_headers(${target} PRIVATE ${ARGN})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        target_compile_options(${target} PRIVATE -fpch-preprocess)  # without it ccache does not see the headers
    endif()
endfunction()

# headroom_reuse_precompiled(TARGET OTHER): the precompiled headers of another target of the same kind, with the same options.
function(headroom_reuse_precompiled target other)
    target_precompile_headers(${target} REUSE_FROM ${other})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        target_compile_options(${target} PRIVATE -fpch-preprocess)
    endif()
endfunction()
