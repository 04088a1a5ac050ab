#include "userspace/record/range_hearing.h"

#include <string.h>

#include "userspace/attach/kernel.h"
#include "userspace/log.h"

/* Whose ranges there are is known after so long, and so many of PyTorch's. */
#define LISTEN_NS 2000000000ULL
#define LISTEN_RANGES 50

static void hear_ends(struct rls_range_hearing *hearing, struct rls_kernel *kernel, bool heard)
{
	int r = rls_kernel_hear_range_ends(kernel, heard);

	if (r)
		rls_warning("ranges (record_function, NVTX) are not seen any more: %s", strerror(-r));
	else
		rls_debug(heard ? "somebody has ranges: their ends are probed again" :
				  "all ranges are PyTorch's own: their ends are not probed");
	hearing->ends_unheard = !heard;
}

void rls_range_hearing_tick(struct rls_range_hearing *hearing, struct rls_kernel *kernel,
			    uint64_t time_ns)
{
	uint64_t own, others;

	if (hearing->settled)
		return;
	if (!hearing->since_ns)
		hearing->since_ns = time_ns;
	rls_kernel_ranges_begun(kernel, &own, &others);
	if (others) {
		hearing->settled = true;
		if (hearing->ends_unheard)
			hear_ends(hearing, kernel, true);
	} else if (!hearing->ends_unheard && own >= LISTEN_RANGES &&
		   time_ns > hearing->since_ns + LISTEN_NS) {
		hear_ends(hearing, kernel, false);
	}
}
