/* The boundary functions of one library while they are being found: any number of finds
 * for one address, each with the name it was found under, merged at the end.
 */
#ifndef RLS_FUNCTION_SET_H
#define RLS_FUNCTION_SET_H

#include "analysis/base/grow.h"
#include "userspace/discover/roles/boundary.h"

/* What is kept of one library, whatever its file says: many symbols may share one long name. */
#define RLS_FIND_NAME_BYTES 1023 /* longer names are cut, at a character's start */
#define RLS_FINDS_MAX 262144
#define RLS_FIND_NAMES_BYTES (64UL << 20)

/* Which of several names a function is shown under: the lowest. */
enum rls_name_rank {
	RLS_NAME_QUALIFIED, /* "torch._C.TensorBase.add" */
	RLS_NAME_METHOD, /* "add" */
	RLS_NAME_SYMBOL,
	RLS_NAME_GETTER,
	RLS_NAME_SLOT,
};

struct rls_find {
	uint64_t vaddr;
	uint64_t size_bytes;
	char *name;
	enum rls_name_rank rank;
	unsigned int sources;
	enum rls_boundary_kind kind;
};

struct rls_function_set {
	RLS_LIST(struct rls_find) finds;
	size_t name_bytes;
	bool full; /* something was left out */
};

/* Takes a copy of name, which is the find's; the rest of find is copied. What a full set is given it
 * leaves out. 0 or -ENOMEM. */
int rls_function_set_add(struct rls_function_set *set, const struct rls_find *find);

/* Merges all finds into functions, sorted by address and unique; the set is empty after
 * that. A function with several names of its best rank is "name and N more". */
int rls_function_set_finish(struct rls_function_set *set, struct rls_boundary_function **out,
			    size_t *count);
void rls_function_set_release(struct rls_function_set *set);

#endif
