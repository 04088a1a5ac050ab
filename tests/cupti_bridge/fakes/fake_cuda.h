/* Stand-ins for NVIDIA's libcuda, libcudart and libcupti: what they share, and what a
 * program that uses them needs. Nothing here is NVIDIA's; entry points have the real names
 * and arguments, handles are the structures below.
 *
 * There is no GPU: each stream is a clock. Work starts when its stream is free, ends
 * `duration_ns` later, and is reported to the observer (the fake libcupti) when it is submitted.
 */
#ifndef RLS_TESTS_FAKE_CUDA_H
#define RLS_TESTS_FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_EXPORT __attribute__((visibility("default")))

/* What a launch's `func` points to, for the runtime and the driver alike. */
struct fake_kernel {
	const char *name;
	uint64_t duration_ns;
};

/* What cudaGraphLaunch and cuGraphLaunch are given. */
struct fake_graph {
	uint32_t id;
	uint32_t count;
	const struct fake_kernel *nodes;
};

struct fake_dim3 {
	unsigned int x, y, z;
};

/* CUPTI's own numbers, as in its public documentation. */
enum fake_domain {
	FAKE_DRIVER = 1,
	FAKE_RUNTIME = 2,
};

enum fake_work_kind {
	FAKE_MEMCPY = 1,
	FAKE_MEMSET = 2,
	FAKE_KERNEL = 10,
	FAKE_SYNC = 38,
	FAKE_GRAPH = 51,
};

/* One piece of work; times are CLOCK_MONOTONIC nanoseconds. */
struct fake_work {
	enum fake_work_kind kind;
	uint32_t subkind; /* copy kind, value set, synchronisation type */
	uint64_t start_ns, end_ns;
	uint32_t device, context, stream, correlation;
	uint64_t bytes;
	const char *name;
	uint64_t graph_node;
	uint32_t graph;
};

/* What the fake libcupti hooks into the fake libcuda. */
struct fake_observer {
	void (*enter)(enum fake_domain domain, uint32_t cbid, uint32_t correlation);
	void (*leave)(enum fake_domain domain, uint32_t cbid, uint32_t correlation);
	void (*work)(const struct fake_work *work);
	bool (*wants_whole_graphs)(void);
};

/* Of the fake libcuda; NULL takes the observer away. */
void fake_cuda_observe(const struct fake_observer *observer);
/* Is there a device (FAKE_CUDA_NO_DEVICE unset)? */
bool fake_cuda_has_device(void);
/* Begin and end of an API call, which the fake libcudart makes around its own. */
uint32_t fake_cuda_enter(enum fake_domain domain, uint32_t cbid);
void fake_cuda_leave(enum fake_domain domain, uint32_t cbid, uint32_t correlation);

#endif
