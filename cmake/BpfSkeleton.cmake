# rls_add_bpf_skeleton(NAME SOURCES a.bpf.c ...)
#
# Each source is compiled for the BPF target, the objects are linked into one, and
# bpftool writes NAME.skel.h. The interface library NAME_skeleton carries the include
# folder and the order of things: whoever links it builds after the header exists.
function(rls_add_bpf_skeleton name)
  cmake_parse_arguments(ARG "" "" "SOURCES" ${ARGN})
  set(out ${CMAKE_CURRENT_BINARY_DIR})

  set(vmlinux ${out}/vmlinux.h)
  get_source_file_property(is_made ${vmlinux} GENERATED)
  if(is_made)
    # By an earlier skeleton of this folder.
  elseif(RLS_VMLINUX_H)
    add_custom_command(OUTPUT ${vmlinux}
      COMMAND ${CMAKE_COMMAND} -E copy ${RLS_VMLINUX_H} ${vmlinux} DEPENDS ${RLS_VMLINUX_H})
  else()
    if(NOT EXISTS ${RLS_VMLINUX_BTF})
      message(FATAL_ERROR "No kernel BTF at ${RLS_VMLINUX_BTF}: "
        "give a ready header with -DRLS_VMLINUX_H=FILE or another BTF with -DRLS_VMLINUX_BTF=FILE")
    endif()
    add_custom_command(OUTPUT ${vmlinux}
      COMMAND ${BPFTOOL} btf dump file ${RLS_VMLINUX_BTF} format c > ${vmlinux}.tmp
      COMMAND ${CMAKE_COMMAND} -E rename ${vmlinux}.tmp ${vmlinux}
      COMMENT "Generating vmlinux.h from ${RLS_VMLINUX_BTF}")
  endif()

  get_target_property(libbpf_includes PkgConfig::LIBBPF INTERFACE_INCLUDE_DIRECTORIES)
  set(include_flags)
  foreach(dir ${libbpf_includes})
    if(dir)
      list(APPEND include_flags -I${dir})
    endif()
  endforeach()

  set(objects)
  foreach(source ${ARG_SOURCES})
    get_filename_component(stem ${source} NAME_WE)
    set(object ${out}/${stem}.bpf.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${CLANG} -g -O2 -Wall -Wextra -Wno-unused-parameter -Werror -target bpf -mcpu=v3
        -D__TARGET_ARCH_x86 -I${PROJECT_SOURCE_DIR} -I${out} ${include_flags}
        -MD -MF ${object}.d -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}
      DEPENDS ${source} ${vmlinux} DEPFILE ${object}.d
      COMMENT "Compiling ${source} for BPF")
    list(APPEND objects ${object})
  endforeach()

  set(linked ${out}/${name}.bpf.o)
  set(header ${out}/${name}.skel.h)
  add_custom_command(OUTPUT ${header}
    COMMAND ${BPFTOOL} gen object ${linked} ${objects}
    COMMAND ${BPFTOOL} gen skeleton ${linked} name ${name} > ${header}.tmp
    COMMAND ${CMAKE_COMMAND} -E rename ${header}.tmp ${header}
    DEPENDS ${objects} COMMENT "Generating ${name}.skel.h")

  add_custom_target(${name}_skeleton_header DEPENDS ${header})
  add_library(${name}_skeleton INTERFACE)
  add_dependencies(${name}_skeleton ${name}_skeleton_header)
  target_include_directories(${name}_skeleton SYSTEM INTERFACE ${out})
  target_link_libraries(${name}_skeleton INTERFACE PkgConfig::LIBBPF PkgConfig::LIBELF PkgConfig::ZLIB)
endfunction()
