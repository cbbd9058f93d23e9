# cmake -DOUTPUT=FILE.cpp "-DOBJECTS=gfx1100=FILE;…" -P embed_code_objects.cmake: writes code objects as arrays of a C++ file.
set(arrays "")
set(entries "")
foreach(object IN LISTS OBJECTS)
    string(REGEX MATCH "^([^=]+)=(.*)$" matched "${object}")
    set(architecture "${CMAKE_MATCH_1}")
    file(READ "${CMAKE_MATCH_2}" bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "((0x..,){24})" "\\1\n" bytes "${bytes}")
    string(APPEND arrays "alignas(4096) constexpr unsigned char ${architecture}[] = {\n${bytes}};\n")
    string(APPEND entries "    {\"${architecture}\", ${architecture}},\n")
endforeach()
set(table "")
set(result "return {};")
if(entries)
    set(table "constexpr CodeObject objects[] = {\n${entries}};\n")
    set(result "return objects;")
endif()
file(WRITE "${OUTPUT}" "// Made while building from pattern.hip: do not edit.
#include \"core/vmm/pattern_code_objects.h\"

namespace headroom::vmm {
namespace {

${arrays}${table}
}  // namespace

std::span<const CodeObject> pattern_code_objects() noexcept { ${result} }

}  // namespace headroom::vmm
")
