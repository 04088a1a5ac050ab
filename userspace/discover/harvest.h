/* Harvest: from the shapes that the scanner noted to named boundary functions.
 *
 * Reads the names, walks the tables that types and module definitions point to, and checks
 * each function against the extents of its library's file: what points into the middle of
 * a function is no function.
 */
#ifndef RLS_HARVEST_H
#define RLS_HARVEST_H

#include "userspace/discover/roles/function_set.h"
#include "userspace/discover/roles/roles.h"
#include "userspace/discover/scan.h"
#include "userspace/elf/elf.h"
#include "userspace/process/space.h"

/* A library that functions are collected for. */
struct rls_harvest_library {
	struct rls_elf *elf;
	uint64_t load_bias;
	const struct rls_role_match *match;
	struct rls_function_set functions;
};

/* libraries is indexed by rls_scan_target.library. method_source says where space comes
 * from: RLS_SOURCE_METHOD_FILE or _LIVE. python_minor: 0 when unknown. 0 or -ENOMEM. */
int rls_harvest(const struct rls_scan *scan, const struct rls_space *space,
		struct rls_harvest_library *libraries, enum rls_boundary_source method_source,
		unsigned int python_minor);

#endif
