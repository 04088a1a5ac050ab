/* Layer sites: where an interpreter begins and ends to call objects whose class has a __call__ of its own.
 *
 * The function is slot_tp_call of CPython, which is not exported: its address is in the classes themselves. A
 * return probe sees its end: it is C code of the interpreter, which must return. Where stacks are switched a return
 * probe would harm, and its rets are probed instead. That costs several times as much, as they are single-stepped.
 */
#ifndef RLS_LAYER_SITES_H
#define RLS_LAYER_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "userspace/elf/elf.h"
#include "userspace/machine_code/site.h"

#define RLS_LAYER_SITES_MAX 16

struct rls_layer_site {
	uint64_t file_offset;
	enum rls_site_class site_class;
	bool ends; /* a call ends there; else it begins, and the object is the first argument */
	uint32_t slot_bytes; /* how far above the stack pointer the return address lies */
};

struct rls_layer_sites {
	struct rls_layer_site items[RLS_LAYER_SITES_MAX]; /* the begin first */
	size_t count;
	bool all_ends; /* every way out is among them */
};

/* Of the function at vaddr. 0; -ENOENT: it cannot be probed; -ENOMEM. */
int rls_layer_sites_find(struct rls_elf *elf, uint64_t vaddr, struct rls_layer_sites *out);

#endif
