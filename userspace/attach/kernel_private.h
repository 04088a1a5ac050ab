/* The kernel side from inside: what the files that make it up share.
 *
 *     kernel.c           loading, processes, probes, start and stop
 *     kernel_windows.c   sites that go on and off
 *     kernel_rings.c     what comes back
 */
#ifndef RLS_KERNEL_PRIVATE_H
#define RLS_KERNEL_PRIVATE_H

#include "rlscope.skel.h"
#include "userspace/attach/arms.h"
#include "userspace/attach/groups.h"
#include "userspace/attach/kernel.h"
#include "userspace/attach/links.h"
#include "userspace/monotonic.h"

struct rls_kernel {
	struct rlscope *skeleton;
	struct rls_links links;
	struct rls_arms arms;
	enum { ARM_WAY_UNTRIED, ARM_WAY_MULTI, ARM_WAY_PERF } arm_way;
	struct rls_groups groups;       /* sites that may go on and off; else they are in links */
	struct ring_buffer *rings;
	struct rls_hit_costs costs;
	enum rls_attach_way way;
	bool windows;
	rls_record_handler handler;
	void *handler_context;
};

#endif
