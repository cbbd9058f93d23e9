# headroom_icons(TARGET DIRECTORY): the drawings of DIRECTORY as PNGs of several sizes inside TARGET, under :/icons. Needs rsvg-convert
# on the machine that builds. Q_INIT_RESOURCE(headroom_icons) makes them known.
function(headroom_icons target directory)
    find_program(RSVG_CONVERT rsvg-convert NO_CMAKE_FIND_ROOT_PATH)
    if(NOT RSVG_CONVERT)
        message(FATAL_ERROR "rsvg-convert was not found: install librsvg2-bin (it turns the icons' drawings into PNGs)")
    endif()
    set(out "${CMAKE_CURRENT_BINARY_DIR}/icons")
    file(GLOB drawings CONFIGURE_DEPENDS "${directory}/*.svg")
    set(entries "")
    set(images "")
    foreach(drawing IN LISTS drawings)
        get_filename_component(name "${drawing}" NAME_WE)
        set(sizes 20 40 80)
        if(name STREQUAL "headroom")
            set(sizes 16 32 48 64 128 256)
        endif()
        foreach(size IN LISTS sizes)
            set(image "${out}/${size}/${name}.png")
            add_custom_command(OUTPUT "${image}"
                COMMAND ${CMAKE_COMMAND} -E make_directory "${out}/${size}"
                COMMAND "${RSVG_CONVERT}" -w ${size} -h ${size} "${drawing}" -o "${image}"
                DEPENDS "${drawing}" VERBATIM)
            list(APPEND images "${image}")
            string(APPEND entries "  <file alias=\"${size}/${name}.png\">${image}</file>\n")
        endforeach()
    endforeach()
    set(qrc "${CMAKE_CURRENT_BINARY_DIR}/headroom_icons.qrc")
    file(CONFIGURE OUTPUT "${qrc}" CONTENT "<RCC><qresource prefix=\"/icons\">\n${entries}</qresource></RCC>\n" @ONLY)
    set(source "${CMAKE_CURRENT_BINARY_DIR}/qrc_headroom_icons.cpp")
    add_custom_command(OUTPUT "${source}" COMMAND Qt6::rcc --name headroom_icons "${qrc}" -o "${source}"
        DEPENDS "${qrc}" ${images} VERBATIM)
    target_sources(${target} PRIVATE "${source}")
endfunction()
