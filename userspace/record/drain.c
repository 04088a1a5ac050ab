#include "userspace/record/drain.h"
#include "userspace/attach/kernel/kernel_rings.h"

#include <time.h>

#include "cupti_bridge/batch.h"

#define PATIENCE_NS (5 * RLS_CUPTI_FLUSH_NS)
#define POLL_NS 10000000ULL

int rls_drain(struct rls_kernel *kernel, struct rls_gpu *gpu, uint64_t stop_ns)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};
	int r;

	rls_gpu_stop(gpu, stop_ns);
	for (uint64_t waited_ns = 0; waited_ns <= PATIENCE_NS; waited_ns += POLL_NS) {
		r = rls_kernel_consume(kernel);
		if (r < 0 || rls_gpu_is_drained(gpu))
			return r;
		nanosleep(&pause, NULL);
	}
	return r;
}
