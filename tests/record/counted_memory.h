/* Counted memory: how many blocks the program holds. Works by the linker's --wrap. */
#ifndef RLS_TEST_COUNTED_MEMORY_H
#define RLS_TEST_COUNTED_MEMORY_H

#include <stddef.h>

long counted_memory_blocks(void);

#endif
