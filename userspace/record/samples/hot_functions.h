/* Hot functions: sampled addresses of one file, gathered into its functions. */
#ifndef RLS_HOT_FUNCTIONS_H
#define RLS_HOT_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "userspace/binary/elf.h"

struct rls_hot_function {
	const char *file;           /* as given */
	const char *name;           /* of the elf's symbols; NULL when it has none there */
	uint64_t vaddr;             /* of the function, or of the sample when that is unknown */
	size_t samples;
};

/* Adds the functions that hold the addresses (count of them; they are sorted) to *functions,
 * an array of *function_count that is the caller's to free. 0 or -ENOMEM. */
int rls_hot_functions_add(struct rls_elf *elf, const char *file, uint64_t *vaddrs, size_t count,
			  struct rls_hot_function **functions, size_t *function_count);

/* Most samples first. */
void rls_hot_functions_sort(struct rls_hot_function *functions, size_t count);

#endif
