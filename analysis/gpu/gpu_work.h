/* GPU work of one process: per device how long it was busy, and for which operations.
 *
 * Work belongs to the phase and operation in which it was launched. The launch on the CPU and the
 * interval on the GPU share a correlation id. A launch may arrive after its work, because the
 * clocks of two devices differ. So an interval waits for an unknown launch, in order, and each
 * operation still sees its intervals sorted by start.
 *
 * Memory: the latest RLS_LAUNCHES_MAX launches and the latest RLS_WAITING_MAX intervals. An
 * interval that waited longer goes to the empty phase and operation.
 *
 * A device is idle from the end of all that ran to the start of the next work. The launch of that
 * next work shows why:
 *
 *     end of work ──host late──▶ launch ──queue──▶ start      launched too late, or begun too late
 *     end of work ────────queue────────▶ start                launched before: it had to wait
 *     end of work ────────other────────▶ start                its launch is not known
 */
#ifndef RLS_GPU_WORK_H
#define RLS_GPU_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/base/index_map.h"
#include "analysis/event/event.h"
#include "analysis/gpu/gpu_busy.h"

#define RLS_LAUNCHES_MAX (1u << 18)
#define RLS_WAITING_MAX (1u << 16)

enum rls_idle {
	RLS_IDLE_HOST_LATE = 0, /* nothing had been launched */
	RLS_IDLE_QUEUE = 1, /* what was launched had not begun */
	RLS_IDLE_OTHER = 2,
	RLS_IDLE_MAX = 3,
};

/* What one operation launched on one device. */
struct rls_launched {
	struct rls_launched *next;
	rls_string_id phase;
	rls_string_id operation;
	struct rls_gpu_busy busy;
	uint64_t kernels;
	uint64_t kernel_ns; /* sum */
	uint64_t idle_ns[RLS_IDLE_MAX]; /* of the device, until this work began */
};

/* What one operation copied. */
struct rls_gpu_copied {
	struct rls_gpu_copied *next;
	rls_string_id phase;
	rls_string_id operation;
	uint64_t copies[RLS_COPY_KIND_MAX];
	uint64_t bytes[RLS_COPY_KIND_MAX];
};

struct rls_gpu_device {
	struct rls_gpu_device *next;
	uint32_t device;
	bool any; /* it has had work */
	struct rls_gpu_busy busy;
	struct rls_smi_windows windows; /* of all kernels but the latest */
	struct {
		uint64_t start_ns, end_ns; /* since the life's start */
	} latest_kernel;
	uint64_t kernel_ns;
	uint64_t memcpy_ns;
	uint64_t kernels;
	struct rls_launched *launched;
};

struct rls_launch {
	uint64_t correlation;
	uint64_t time_ns; /* of the call's beginning */
	rls_string_id phase;
	rls_string_id operation;
};

struct rls_gpu_interval {
	struct rls_gpu_device *device; /* NULL: no interval but what a copy moved */
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t idle_since_ns; /* the device, until start_ns; start_ns: it was busy */
	uint64_t correlation; /* 0: none */
	enum rls_gpu_kind kind;
	enum rls_copy_kind copy;
	uint64_t copied_bytes;
};

/* Zeroed: none yet. */
struct rls_gpu_work {
	struct rls_gpu_device *devices;
	struct rls_index_map device_map;
	struct rls_index_map launched_map; /* (device, phase and operation) */
	struct rls_gpu_copied *copied;
	struct rls_index_map copied_map; /* (phase, operation) */

	struct rls_launch *launches; /* ring, oldest overwritten */
	size_t launch_capacity;
	uint64_t launch_count; /* ever */
	struct rls_index_map launch_map; /* correlation -> 1 + index into launches */

	struct rls_gpu_interval *waiting; /* ring */
	size_t waiting_capacity;
	uint64_t waiting_head, waiting_tail;
};

void rls_gpu_work_free(struct rls_gpu_work *work);

/* A launch. Of two with one correlation the later holds from then on. 0, or -ENOMEM. */
int rls_gpu_work_launch(struct rls_gpu_work *work, const struct rls_launch *launch);

/* An interval of a kind that counts as busy, sorted by start; life_start_ns is the start of
 * the process's life, in_life says that its end has not been seen. 0, or -ENOMEM. */
int rls_gpu_work_add(struct rls_gpu_work *work, const struct rls_event *event,
		     uint64_t life_start_ns, bool in_life);

/* What a copy moved: a GPU_COPY event. 0, or -ENOMEM. */
int rls_gpu_work_copy(struct rls_gpu_work *work, const struct rls_event *event);

/* No more launches will come: files what still waits. 0, or -ENOMEM. */
int rls_gpu_work_finish(struct rls_gpu_work *work);

/* rls_smi_windows_percent (gpu_busy.h) of the device, for a life of this length. */
double rls_gpu_device_smi_percent(const struct rls_gpu_device *device, uint64_t life_ns);

#endif
