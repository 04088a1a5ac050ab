# The CPythons to prove things on: RLS_TRUTH_PYTHONS, or the system's own, pyenv's, and the one
# that scripts/setup-python314 fetches.
set(RLS_TRUTH_PYTHONS "" CACHE STRING "Interpreters of the ground-truth tests; empty: found")

# Sets OUT to the interpreters to use, RLS_TRUTH_PYTHONS first.
function(truth_pythons_find out)
  if(RLS_TRUTH_PYTHONS)
    set(${out} ${RLS_TRUTH_PYTHONS} PARENT_SCOPE)
    return()
  endif()
  if(DEFINED ENV{PYENV_ROOT})
    set(root $ENV{PYENV_ROOT})
  else()
    set(root $ENV{HOME}/.pyenv)
  endif()
  # Building asks these again: an interpreter that comes or goes has CMake run anew.
  file(GLOB found CONFIGURE_DEPENDS
    ${root}/versions/3.[89].*/bin/python3 ${root}/versions/3.1[0-4].*/bin/python3)
  list(SORT found COMPARE NATURAL)
  file(GLOB fetched CONFIGURE_DEPENDS ${RLS_CACHE}/rlscope-bpf/python3.14/.complete)
  if(fetched)
    list(APPEND found ${RLS_CACHE}/rlscope-bpf/python3.14/usr/bin/python3)
  endif()
  if(EXISTS /usr/bin/python3)
    list(PREPEND found /usr/bin/python3)
  endif()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# Sets TAG ("3.12", "system"), INCLUDE and SUFFIX of one interpreter in the caller's scope;
# TAG is empty when it cannot build extensions.
function(truth_python_describe python)
  execute_process(COMMAND ${python} -c "
import sys, sysconfig
print(';'.join(['%d.%d' % sys.version_info[:2] + sys.abiflags, sysconfig.get_paths()['include'],
                sysconfig.get_config_var('EXT_SUFFIX')]))"
    OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
  set(TAG "" PARENT_SCOPE)
  if(failed)
    return()
  endif()
  list(GET described 0 tag)
  list(GET described 1 include)
  list(GET described 2 suffix)
  if(tag VERSION_LESS 3.8 OR NOT EXISTS ${include}/Python.h)
    return()
  endif()
  if(python STREQUAL "/usr/bin/python3")
    set(tag system)
  endif()
  set(TAG ${tag} PARENT_SCOPE)
  set(INCLUDE ${include} PARENT_SCOPE)
  set(SUFFIX ${suffix} PARENT_SCOPE)
endfunction()
