/* Scanner: reads memory once, word by word, and notes what has the shape of a table or object
 * that makes the interpreter call into one of the target libraries.
 *
 * It checks shapes only. harvest.h reads names and follows tables. Blocks may overlap, so
 * rls_scan_finish removes duplicates.
 */
#ifndef RLS_SCAN_H
#define RLS_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/base/grow.h"
#include "userspace/process/mappings.h"

/* A library to look for, at its runtime addresses. */
struct rls_scan_target {
	uint64_t begin, end; /* all of it */
	uint64_t code_begin, code_end; /* its executable part */
	size_t library; /* index for the caller */
};

/* A PyMethodDef. */
struct rls_scan_method {
	uint64_t address, function, name;
};

/* A PyTypeObject that has to do with a target, or whose objects carry a vectorcall pointer. */
struct rls_scan_type {
	uint64_t address;
	uint64_t vectorcall_offset; /* 0: none */
	bool related;
};

/* A word outside the library's own data that points to its code: an object's vectorcall
 * pointer, if the words before it are an object's. before[15] is the word just before. */
#define RLS_SCAN_BEFORE 16
struct rls_scan_callable {
	uint64_t address, function;
	uint64_t before[RLS_SCAN_BEFORE];
};

#define RLS_SCAN_GRANULES 4096
#define RLS_SCAN_GRANULE_SHIFT 21
struct rls_scan {
	/* given */
	const struct rls_scan_target *targets; /* ascending, disjoint; borrowed */
	size_t target_count;
	const struct rls_mappings *mappings; /* NULL: a file's image, types not yet readied */
	uint64_t module_def_type; /* address of PyModuleDef_Type; 0: unknown */
	bool objects; /* object headers have the known layout */
	uint64_t near_targets[RLS_SCAN_GRANULES / 64]; /* by rls_scan_init: where targets are,
	                                        * roughly: a bit per granule, modulo */

	/* found */
	RLS_LIST(struct rls_scan_method) methods;
	RLS_LIST(struct rls_scan_type) types;
	RLS_LIST(struct rls_scan_callable) callables;
	RLS_LIST(uint64_t) module_defs;
	size_t callable_limit;
	uint64_t scanned_bytes;
	int error; /* -ENOMEM: what is found is not all */
};

/* Blocks that belong together must overlap by this much for nothing to be cut in two. */
#define RLS_SCAN_OVERLAP_BYTES 1024

void rls_scan_init(struct rls_scan *scan, const struct rls_scan_target *targets,
		   size_t target_count);
void rls_scan_block(struct rls_scan *scan, uint64_t address, const uint8_t *bytes, size_t length);
/* Sorts and makes unique. 0 or -ENOMEM. */
int rls_scan_finish(struct rls_scan *scan);
void rls_scan_release(struct rls_scan *scan);

/* The target whose code holds this address, or NULL. */
const struct rls_scan_target *rls_scan_target_of_code(const struct rls_scan *scan,
						      uint64_t address);
bool rls_scan_method_flags_valid(uint32_t flags);

#endif
