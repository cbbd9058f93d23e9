# What the Windows build needs besides Qt. Debian has no packages of these libraries for mingw-w64, so the header-only ones are
# taken from the build machine's packages and the others are built from Debian's source packages.

# --- header-only ---------------------------------------------------------------------------------------------------------
# Links in a folder of their own: /usr/include itself holds the build machine's C library.
set(header_folder "${CMAKE_BINARY_DIR}/include")
file(MAKE_DIRECTORY "${header_folder}")
function(headroom_header_library target folder package)
    if(NOT EXISTS "/usr/include/${folder}")
        message(FATAL_ERROR "/usr/include/${folder} is missing: install the package ${package}")
    endif()
    file(CREATE_LINK "/usr/include/${folder}" "${header_folder}/${folder}" SYMBOLIC)
    add_library(${target} INTERFACE IMPORTED)
    target_include_directories(${target} INTERFACE "${header_folder}")
endfunction()
headroom_header_library(nlohmann_json::nlohmann_json nlohmann nlohmann-json3-dev)
headroom_header_library(CLI11::CLI11 CLI libcli11-dev)

# --- built from source ---------------------------------------------------------------------------------------------------
set(source_folder "${PROJECT_SOURCE_DIR}/build/sources")
execute_process(COMMAND "${CMAKE_CURRENT_LIST_DIR}/fetch-debian-source.sh" "${source_folder}" fmtlib spdlog pcre2 highway cpp-httplib
    RESULT_VARIABLE fetch_result)
if(NOT fetch_result EQUAL 0)
    message(FATAL_ERROR "The Windows build needs the sources of fmt, spdlog, PCRE2, Highway and cpp-httplib. Make apt-get reach a mirror with "
        "source packages (and install dpkg-dev), or unpack them into ${source_folder}/fmtlib, spdlog, pcre2, highway and cpp-httplib.")
endif()

add_library(headroom_fmt STATIC "${source_folder}/fmtlib/src/format.cc")
target_include_directories(headroom_fmt SYSTEM PUBLIC "${source_folder}/fmtlib/include")
add_library(fmt::fmt ALIAS headroom_fmt)

set(spdlog_units spdlog async cfg color_sinks file_sinks stdout_sinks)
list(TRANSFORM spdlog_units REPLACE "(.+)" "${source_folder}/spdlog/src/\\1.cpp")
add_library(headroom_spdlog STATIC ${spdlog_units})
target_compile_definitions(headroom_spdlog PUBLIC SPDLOG_COMPILED_LIB SPDLOG_FMT_EXTERNAL)
target_include_directories(headroom_spdlog SYSTEM PUBLIC "${source_folder}/spdlog/include")
target_link_libraries(headroom_spdlog PUBLIC headroom_fmt Threads::Threads)
add_library(spdlog::spdlog ALIAS headroom_spdlog)

set(pcre2_source "${source_folder}/pcre2/src")
set(pcre2_folder "${CMAKE_BINARY_DIR}/pcre2")
configure_file("${pcre2_source}/pcre2.h.generic" "${pcre2_folder}/include/pcre2.h" COPYONLY)
configure_file("${pcre2_source}/config.h.generic" "${pcre2_folder}/config.h" COPYONLY)
configure_file("${pcre2_source}/pcre2_chartables.c.dist" "${pcre2_folder}/pcre2_chartables.c" COPYONLY)
set(pcre2_units auto_possess compile config context convert dfa_match error extuni find_bracket jit_compile maketables
    match match_data newline ord2utf pattern_info script_run serialize string_utils study substitute substring tables ucd
    valid_utf xclass)
list(TRANSFORM pcre2_units PREPEND "${pcre2_source}/pcre2_")
list(TRANSFORM pcre2_units APPEND ".c")
add_library(headroom_pcre2 STATIC ${pcre2_units} "${pcre2_folder}/pcre2_chartables.c")
target_compile_definitions(headroom_pcre2
    PUBLIC PCRE2_STATIC
    PRIVATE PCRE2_CODE_UNIT_WIDTH=8 HAVE_CONFIG_H SUPPORT_UNICODE SUPPORT_JIT)
target_include_directories(headroom_pcre2 SYSTEM PUBLIC "${pcre2_folder}/include" PRIVATE "${pcre2_folder}" "${pcre2_source}")

set(hwy_source "${source_folder}/highway")
add_library(headroom_hwy STATIC "${hwy_source}/hwy/aligned_allocator.cc" "${hwy_source}/hwy/per_target.cc"
    "${hwy_source}/hwy/targets.cc")
target_include_directories(headroom_hwy SYSTEM PUBLIC "${hwy_source}")

# A single header.
add_library(headroom_httplib INTERFACE)
target_include_directories(headroom_httplib SYSTEM INTERFACE "${source_folder}/cpp-httplib")
target_link_libraries(headroom_httplib INTERFACE ws2_32)
