# One interface target carries the warnings and the include root, so that nothing
# needs CMAKE_C_FLAGS and generated code can be left out.
add_library(rls_flags INTERFACE)
target_include_directories(rls_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_definitions(rls_flags INTERFACE _GNU_SOURCE RLS_VERSION="${PROJECT_VERSION}")
target_compile_options(rls_flags INTERFACE
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2
  -Wno-unused-parameter -fno-strict-aliasing)

# A warning fails the build with the compilers whose warnings are known. Others may have new ones,
# and must be able to build all the same.
set(werror OFF)
if((CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_COMPILER_VERSION VERSION_LESS 13) OR
   (CMAKE_C_COMPILER_ID STREQUAL "Clang" AND CMAKE_C_COMPILER_VERSION VERSION_LESS 15))
  set(werror ON)
endif()
option(RLS_WERROR "Take compiler warnings for errors" ${werror})
if(RLS_WERROR)
  target_compile_options(rls_flags INTERFACE -Werror)
endif()

if(RLS_SANITIZE)
  # Without no-recover a test would print what is undefined, and pass.
  target_compile_options(rls_flags INTERFACE -fsanitize=address,undefined
    -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(rls_flags INTERFACE -fsanitize=address,undefined)
endif()
