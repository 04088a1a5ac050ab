/* PLT stubs: the few instructions by which a library calls a function of another. No table lists
 * them, so they are recognised by their bytes.
 */
#ifndef RLS_PLT_STUB_H
#define RLS_PLT_STUB_H

#include <stddef.h>
#include <stdint.h>

/* Of bytes, which lie at vaddr, those from at on are `jmp *word(%rip)`: where the stub begins that
 * they belong to, or SIZE_MAX when that jump is no stub's. */
size_t rls_plt_stub_start(const uint8_t *bytes, size_t at, size_t size, uint64_t vaddr);

#endif
