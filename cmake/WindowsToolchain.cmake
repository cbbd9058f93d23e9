# Toolchain file: 64-bit Windows programs, built on Debian with mingw-w64 (GCC 12, posix threads).
#
# QT_MINGW_DIR (variable or environment) is the folder of a Qt 6 for Windows: bin/, include/, lib/, plugins/ and wine-run.sh.
# Without it, the archive shared/qt6-mingw/qt6-mingw64-*.tar.xz beside the checkout is unpacked into build/. Where there is
# neither, only core and headroom-cli are built.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR AMD64)

if(NOT QT_MINGW_DIR AND DEFINED ENV{QT_MINGW_DIR})
    set(QT_MINGW_DIR "$ENV{QT_MINGW_DIR}")
endif()
if(NOT QT_MINGW_DIR)
    get_filename_component(_source "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
    file(GLOB _archive "${_source}/../shared/qt6-mingw/qt6-mingw64-*.tar.xz")
    if(_archive)
        list(GET _archive -1 _archive)
        get_filename_component(_name "${_archive}" NAME)
        string(REGEX REPLACE "\\.tar\\.xz$" "" _name "${_name}")
        if(NOT EXISTS "${_source}/build/${_name}")
            # Under another name first: an unpacking that was interrupted is never taken for a whole one.
            message(STATUS "Unpacking ${_name} into build/")
            set(_partial "${_source}/build/${_name}.partial")
            file(REMOVE_RECURSE "${_partial}")
            file(ARCHIVE_EXTRACT INPUT "${_archive}" DESTINATION "${_partial}")
            file(RENAME "${_partial}/${_name}" "${_source}/build/${_name}")
            file(REMOVE_RECURSE "${_partial}")
        endif()
        set(QT_MINGW_DIR "${_source}/build/${_name}")
    endif()
endif()
if(QT_MINGW_DIR)
    get_filename_component(QT_MINGW_DIR "${QT_MINGW_DIR}" ABSOLUTE)
    set(QT_MINGW_DIR "${QT_MINGW_DIR}" CACHE PATH "Qt 6 for Windows (mingw-w64)")
endif()
# CMake reads this file again for each of its own test compilations: hand the folder on.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES QT_MINGW_DIR)

set(_triple x86_64-w64-mingw32)
set(CMAKE_C_COMPILER ${_triple}-gcc-posix)
set(CMAKE_CXX_COMPILER ${_triple}-g++-posix)
set(CMAKE_RC_COMPILER ${_triple}-windres)

# The stack of 64-bit Windows is aligned to 16 bytes, and GCC may still store 32-byte AVX values there with aligned moves
# (GCC bug 54412), which crash. This makes the assembler write unaligned moves; they cost nothing where memory is aligned.
set(CMAKE_C_FLAGS_INIT "-Wa,-muse-unaligned-vector-move")
set(CMAKE_CXX_FLAGS_INIT "-Wa,-muse-unaligned-vector-move")

# Headers, libraries and packages come from the Windows folders only; programs (moc, ninja) are the build machine's.
set(CMAKE_FIND_ROOT_PATH /usr/${_triple})
if(QT_MINGW_DIR)
    list(PREPEND CMAKE_FIND_ROOT_PATH "${QT_MINGW_DIR}")
    list(PREPEND CMAKE_PREFIX_PATH "${QT_MINGW_DIR}")
    # ctest runs the tests through it, under wine.
    set(CMAKE_CROSSCOMPILING_EMULATOR "${QT_MINGW_DIR}/wine-run.sh")
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# moc, uic, rcc and lrelease: the build machine's Qt, which must have the same version.
set(QT_HOST_PATH /usr CACHE PATH "Qt of the build machine")
if(NOT QT_HOST_PATH_CMAKE_DIR)
    file(GLOB _host_info "${QT_HOST_PATH}/lib/*-linux-gnu/cmake/Qt6HostInfo" "${QT_HOST_PATH}/lib/cmake/Qt6HostInfo")
    if(_host_info)
        list(GET _host_info 0 _host_info)
        get_filename_component(_host_info "${_host_info}" DIRECTORY)
        set(QT_HOST_PATH_CMAKE_DIR "${_host_info}" CACHE PATH "CMake packages of the build machine's Qt")
    endif()
endif()
