/* Inspection: one scan of a process, with its mappings and the open libraries that it is about. */
#ifndef RLS_INSPECTION_H
#define RLS_INSPECTION_H

#include "userspace/discover/library.h"
#include "userspace/discover/live_scan.h"
#include "userspace/discover/process_image.h"
#include "userspace/discover/roles/roles.h"
#include "userspace/discover/scan.h"

struct rls_inspection {
	struct rls_process_image *image;
	const struct rls_roles *roles;
	struct rls_mappings mappings;
	struct rls_open_library *open; /* [count] */
	struct rls_harvest_library *harvest; /* [count], the same order */
	struct rls_scan_target *targets; /* those to scan for */
	size_t count, target_count;
};

enum rls_inspection_of {
	RLS_INSPECT_NEW, /* files the image has not seen (and now has) */
	RLS_INSPECT_ALL, /* whatever is mapped */
};

/* Reads the mappings. 0 or -errno. */
int rls_inspection_begin(struct rls_inspection *inspection, struct rls_process_image *image,
			 const struct rls_roles *roles);
/* Of one mapping alone, whose path is borrowed. 0 or -ENOMEM. */
int rls_inspection_begin_mapping(struct rls_inspection *inspection, struct rls_process_image *image,
				 const struct rls_roles *roles, const struct rls_mapping *mapping);
void rls_inspection_release(struct rls_inspection *inspection);

/* Opens the libraries with a role; one that cannot be opened is a warning. 0 or -ENOMEM. */
int rls_inspection_add_libraries(struct rls_inspection *inspection, enum rls_inspection_of which);

/* What the files say: exports, calls into Python, tables as the loader will leave them. */
int rls_inspection_scan_files(struct rls_inspection *inspection);
/* The interpreter's evaluation loop, if a library of this inspection needs it probed. 0 or -ENOMEM. */
int rls_inspection_add_eval_entry(struct rls_inspection *inspection);
/* What the process's memory says. 0 or -errno. */
int rls_inspection_scan_memory(struct rls_inspection *inspection, enum rls_live_scan_extent extent);

#endif
