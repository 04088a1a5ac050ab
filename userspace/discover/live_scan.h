/* Live scan: which memory of a process is scanned, and in what order.
 *
 * Tables of methods and types are in the writable data of libraries, on the heap and in
 * small anonymous mappings; the large anonymous mappings of a training job hold tensors.
 * So small mappings come before large ones, up to a limit. Only present pages are read (pagemap),
 * so that a scan never makes the target's memory grow.
 */
#ifndef RLS_LIVE_SCAN_H
#define RLS_LIVE_SCAN_H

#include "userspace/discover/scan.h"
#include "userspace/process/space.h"

enum rls_live_scan_extent {
	RLS_LIVE_SCAN_TARGETS, /* the target libraries' own data */
	RLS_LIVE_SCAN_ALL, /* everything writable and private */
};

/* scan is initialised and has its mappings. *cut_bytes: what the limit left out. 0 or
 * -errno. */
int rls_live_scan(struct rls_scan *scan, const struct rls_live_space *space,
		  enum rls_live_scan_extent extent, uint64_t limit_bytes, uint64_t *cut_bytes);

#endif
