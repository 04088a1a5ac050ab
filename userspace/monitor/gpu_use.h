/* GPU use: how long a job's devices were busy, from its intervals as they come.
 *
 * Batches of several processes and streams overlap in time, and a union of intervals needs them
 * in the order of their start. So each waits for RLS_GPU_USE_HOLD_NS, longer than a bridge keeps
 * records. One that is later still, or finds no room, counts from the union's end. One thread. */
#ifndef RLS_MONITOR_GPU_USE_H
#define RLS_MONITOR_GPU_USE_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/event/event.h"
#include "analysis/gpu/gpu_busy.h"
#include "userspace/monitor/snapshot.h"

#define RLS_GPU_USE_HOLD_NS 5000000000ULL
#define RLS_GPU_USE_WAITING 65536 /* intervals of a device */
#define RLS_GPU_USE_DEVICES 64 /* of a job; more count as the last */

struct rls_gpu_use_interval {
	uint64_t start_ns, end_ns;
	uint64_t correlation;
	uint32_t pid;
	enum rls_gpu_kind kind;
};

struct rls_gpu_use_device {
	uint32_t device;
	uint64_t kernels;
	uint64_t fed_ns; /* no interval that begins before then can be fed any more */
	struct rls_gpu_busy busy;
	struct rls_smi_windows smi;
	struct rls_gpu_use_interval *waiting;
	size_t count, room;
};

struct rls_gpu_use {
	uint64_t since_ns; /* the job began: what its windows are counted from */
	/* Called with each interval that counts and the place of its device, in the order of their
	 * start, once it has waited; NULL: not called. */
	void (*fed)(void *context, size_t place, const struct rls_gpu_use_interval *interval);
	void *context;
	struct rls_gpu_use_device *devices;
	size_t count, room;
	struct rls_snapshot_gpu *shown; /* for whoever reads */
	size_t shown_room;
};

void rls_gpu_use_clear(struct rls_gpu_use *use);

/* An event of kind GPU. 0 or -ENOMEM. */
int rls_gpu_use_add(struct rls_gpu_use *use, const struct rls_event *event);

/* Feeds what has waited long enough by now_ns; UINT64_MAX: everything. */
void rls_gpu_use_advance(struct rls_gpu_use *use, uint64_t now_ns);

/* One entry for each device, in shown. 0 or -ENOMEM. */
int rls_gpu_use_show(struct rls_gpu_use *use);

#endif
