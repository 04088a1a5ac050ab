# rls_add_test(NAME SOURCES file... [LIBRARIES lib...] [LABELS label...] [ROOT] [TIMEOUT s])
#
# A cmocka program as one ctest case. -Werror=unused-function makes a test that was
# written but not registered a build failure. ROOT tests share the kernel's probes, so
# they run one at a time; exit status 77 is a visible skip.
function(rls_add_test name)
  cmake_parse_arguments(ARG "ROOT" "TIMEOUT" "SOURCES;LIBRARIES;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE rls_flags ${ARG_LIBRARIES} cmocka)
  target_compile_options(${name} PRIVATE -Werror=unused-function)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" SKIP_RETURN_CODE 77
    TIMEOUT ${ARG_TIMEOUT})
  if(ARG_ROOT)
    set_tests_properties(${name} PROPERTIES LABELS "root" RESOURCE_LOCK bpf)
  endif()
endfunction()

# A C++ compiler is optional. One that was not there the last time is looked for again.
macro(rls_find_cxx)
  if(NOT CMAKE_CXX_COMPILER)
    unset(CMAKE_CXX_COMPILER CACHE)
  endif()
  include(CheckLanguage)
  check_language(CXX)
  if(CMAKE_CXX_COMPILER)
    enable_language(CXX)
  endif()
endmacro()
