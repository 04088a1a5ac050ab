/* Code: one extent of machine code, read once from end to end.
 *
 * Linear decoding from the start of an .eh_frame extent; compilers put no data there. What
 * is kept is what choosing sites needs: who jumps where, and the ways out.
 */
#ifndef RLS_CODE_H
#define RLS_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "userspace/elf/elf.h"
#include "userspace/machine_code/decoder.h"

struct rls_addresses {
	uint64_t *items;
	size_t count, capacity;
};

/* 0, or -ENOMEM. */
int rls_addresses_add(struct rls_addresses *addresses, uint64_t address);
void rls_addresses_sort(struct rls_addresses *addresses);
/* Of sorted addresses: whether one lies in [first, last]. */
bool rls_addresses_any(const struct rls_addresses *addresses, uint64_t first, uint64_t last);
void rls_addresses_clear(struct rls_addresses *addresses);

/* Where a ret's end of the function is seen: at the ret itself, or at a cheaper check before it (epilogue.h). */
struct rls_way_out {
	uint64_t ret_vaddr, vaddr;
	uint32_t slot_bytes; /* how far above rsp the return address lies at vaddr */
};

struct rls_ways_out {
	struct rls_way_out *items;
	size_t count, capacity;
};

/* 0, or -ENOMEM. */
int rls_ways_out_add(struct rls_ways_out *ways, struct rls_way_out way);
void rls_ways_out_clear(struct rls_ways_out *ways);

struct rls_code {
	uint64_t start, end;
	bool complete; /* decoded to the end */
	bool indirect_exit; /* an indirect jump that is no jump table */
	bool calls; /* has call instructions or system calls */
	bool indirect_calls; /* some through pointers, other than to imported functions */
	bool restarts; /* jumps to its first instruction */
	struct rls_addresses targets; /* inside the extent, of direct jumps and calls; sorted */
	struct rls_ways_out returns; /* of probeable ret instructions, ascending */
	struct rls_addresses exits; /* targets of direct jumps out of the extent; sorted */
};

/* Reads [start, start + size_bytes), at most 1 MiB of it (complete is false beyond).
 * *bytes_left: what may still be read of this file, extents of a hostile one overlap.
 * 0, -EFAULT when it is not file-backed, -EFBIG when it is more than is left, or -ENOMEM; on
 * failure *out is as it was. */
int rls_code_read(const struct rls_elf *elf, uint64_t start, uint64_t size_bytes,
		  uint64_t *bytes_left, struct rls_code *out);
void rls_code_clear(struct rls_code *code);

/* Decodes one instruction of a file. 0, -EFAULT when it is not file-backed, -EILSEQ. */
int rls_code_decode(const struct rls_elf *elf, uint64_t vaddr, struct rls_instruction *out);

#endif
