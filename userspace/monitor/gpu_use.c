#include "userspace/monitor/gpu_use.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/grow.h"

void rls_gpu_use_clear(struct rls_gpu_use *use)
{
	for (size_t i = 0; i < use->count; i++)
		free(use->devices[i].waiting);
	free(use->devices);
	free(use->shown);
	*use = (struct rls_gpu_use){0};
}

static struct rls_gpu_use_device *find_device(struct rls_gpu_use *use, uint32_t number)
{
	struct rls_gpu_use_device *device;

	for (size_t i = 0; i < use->count; i++) {
		if (use->devices[i].device == number)
			return &use->devices[i];
	}
	if (use->count == RLS_GPU_USE_DEVICES)
		return &use->devices[use->count - 1];
	if (rls_grow(&use->devices, &use->room, use->count))
		return NULL;
	device = &use->devices[use->count++];
	*device = (struct rls_gpu_use_device){.device = number, .fed_ns = use->since_ns};
	return device;
}

static int by_start(const void *a, const void *b)
{
	const struct rls_gpu_use_interval *left = a, *right = b;

	return (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
}

static void feed(const struct rls_gpu_use *use, struct rls_gpu_use_device *device,
		 struct rls_gpu_use_interval interval)
{
	if (interval.start_ns < device->fed_ns)
		interval.start_ns = device->fed_ns;
	if (interval.end_ns <= interval.start_ns)
		return;
	device->fed_ns = interval.start_ns;
	rls_gpu_busy_add(&device->busy, interval.start_ns, interval.end_ns);
	if (interval.kind == RLS_GPU_KERNEL)
		rls_smi_windows_add(&device->smi, interval.start_ns - use->since_ns,
				    interval.end_ns - use->since_ns);
	if (use->fed)
		use->fed(use->context, (size_t)(device - use->devices), &interval);
}

/* Those that begin before until_ns. */
static void feed_until(const struct rls_gpu_use *use, struct rls_gpu_use_device *device,
		       uint64_t until_ns)
{
	size_t fed = 0;

	if (!device->count)
		return;
	qsort(device->waiting, device->count, sizeof(*device->waiting), by_start);
	while (fed < device->count && device->waiting[fed].start_ns < until_ns)
		feed(use, device, device->waiting[fed++]);
	memmove(device->waiting, device->waiting + fed,
		(device->count - fed) * sizeof(*device->waiting));
	device->count -= fed;
}

int rls_gpu_use_add(struct rls_gpu_use *use, const struct rls_event *event)
{
	struct rls_gpu_use_device *device;

	if (event->gpu.kind == RLS_GPU_SYNC)
		return 0;
	device = find_device(use, event->gpu.device);
	if (!device)
		return -ENOMEM;
	device->kernels += event->gpu.kind == RLS_GPU_KERNEL;
	if (device->count == RLS_GPU_USE_WAITING) /* the older half makes room */
		feed_until(use, device, device->waiting[device->count / 2].start_ns + 1);
	if (device->count == RLS_GPU_USE_WAITING)
		feed_until(use, device, UINT64_MAX);
	if (rls_grow(&device->waiting, &device->room, device->count))
		return -ENOMEM;
	device->waiting[device->count++] = (struct rls_gpu_use_interval){
		.start_ns = event->time_ns,
		.end_ns = event->gpu.end_ns,
		.correlation = event->gpu.correlation,
		.pid = event->pid,
		.kind = event->gpu.kind,
	};
	return 0;
}

void rls_gpu_use_advance(struct rls_gpu_use *use, uint64_t now_ns)
{
	uint64_t until_ns = now_ns;

	if (now_ns != UINT64_MAX)
		until_ns = now_ns > RLS_GPU_USE_HOLD_NS ? now_ns - RLS_GPU_USE_HOLD_NS : 0;
	for (size_t i = 0; i < use->count; i++)
		feed_until(use, &use->devices[i], until_ns);
}

int rls_gpu_use_show(struct rls_gpu_use *use)
{
	for (size_t i = 0; i < use->count; i++) {
		const struct rls_gpu_use_device *device = &use->devices[i];

		if (rls_grow(&use->shown, &use->shown_room, i))
			return -ENOMEM;
		use->shown[i] = (struct rls_snapshot_gpu){
			.device = device->device,
			.busy_ns = rls_gpu_busy_total(&device->busy),
			.kernels = device->kernels,
			.smi_style_ns = device->smi.busy * 1000000000ULL / 6,
		};
	}
	return 0;
}
