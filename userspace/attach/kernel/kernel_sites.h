/* Probes on sites: of boundary functions, annotations, ranges and CUPTI bridges. */
#ifndef RLS_KERNEL_SITES_H
#define RLS_KERNEL_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/annotate/foreign_ranges.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/machine_code/site.h"

/* So many sites, of however many files, are about to be attached: what that needs is made beforehand. */
void rls_kernel_expect_sites(const struct rls_kernel *kernel, size_t count);

/* Puts probes on every site of one file. path must open from here (/proc/PID/root/...).
 * Site i gets id first_id + i. *attached is how many are live; a site that the kernel
 * refuses is left out with a warning, it is no failure. */
int rls_kernel_attach_sites(struct rls_kernel *kernel, const char *path,
			    const struct rls_site *sites, size_t count, uint32_t first_id,
			    size_t *attached);

/* Takes off all probes of the sites that were attached with this first_id, for good. 0 or -ENOMEM. */
int rls_kernel_detach_sites(struct rls_kernel *kernel, uint32_t first_id);

/* Takes off the return probes of the sites that were attached with this first_id; what has been
 * entered under them still returns as it should. 0 or -ENOMEM. */
int rls_kernel_detach_returns(struct rls_kernel *kernel, uint32_t first_id);

/* What a hit of the site costs about; 0 when it is not known. */
uint32_t rls_kernel_site_cost_ns(const struct rls_kernel *kernel, uint32_t site);

/* Hits of each site so far, returns included: ids 0..count - 1, RLS_SITES_COUNTED at most. */
int rls_kernel_site_hits(const struct rls_kernel *kernel, uint64_t *hits, size_t count);
/* They are not asked for any more: each hit is as cheap as where they never are. */
void rls_kernel_stop_counting(struct rls_kernel *kernel);

/* The annotation library's flush site; listeners_offset: file offset of the counter that
 * the kernel raises while the probe is live. */
int rls_kernel_attach_flush(struct rls_kernel *kernel, const char *path, uint64_t site_offset,
			    uint64_t listeners_offset);

/* Sites of other people's ranges in one file (annotate/foreign_ranges.h). */
int rls_kernel_attach_ranges(struct rls_kernel *kernel, const char *path,
			     const struct rls_range_site *sites, size_t count);
/* How many have begun: of PyTorch's own making, and others. */
void rls_kernel_ranges_begun(const struct rls_kernel *kernel, uint64_t *own, uint64_t *others);
/* Whether those of the API that PyTorch itself uses (record_function) are probed in windows alone, from the next one
 * that opens on; no longer: at once. Meanwhile ranges that begin are counted and nothing else. Nothing where it is so
 * already. 0 or -errno: then it is as before. */
int rls_kernel_window_ranges(struct rls_kernel *kernel, bool windowed);

/* Arms the CUPTI bridge in one process: a probe on its site rlscope_cupti:batch, which raises
 * its semaphore there. Offsets in the file; the process must be tracked for its batches to be
 * taken, which they are whether recording has been started or not. */
int rls_kernel_arm(struct rls_kernel *kernel, pid_t pid, const char *path, uint64_t site_offset,
		   uint64_t semaphore_offset);
/* Gives up a process that is gone or has become another program. */
void rls_kernel_disarm(struct rls_kernel *kernel, pid_t pid);

#endif
