/* PLT: the function that a stub of a file jumps to, by the relocation of the word that it jumps
 * through. No symbol table has stubs.
 */
#ifndef RLS_PLT_H
#define RLS_PLT_H

#include <stdint.h>

#include "userspace/elf/elf.h"

struct rls_plt;

/* Of a file, which must stay open as long. 0 or -ENOMEM. */
int rls_plt_read(struct rls_elf *elf, struct rls_plt **out);
void rls_plt_free(struct rls_plt *plt);

/* "free@plt", plt's own, where vaddr is in a stub, which begins at *start; NULL where it is in none
 * or memory runs out. */
const char *rls_plt_name(struct rls_plt *plt, uint64_t vaddr, uint64_t *start);

#endif
