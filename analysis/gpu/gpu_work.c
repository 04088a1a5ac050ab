#include "analysis/gpu/gpu_work.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/event/bounded.h"

#define RING_MIN 64

static void free_device(struct rls_gpu_device *device)
{
	while (device->launched) {
		struct rls_launched *launched = device->launched;

		device->launched = launched->next;
		free(launched);
	}
	free(device);
}

void rls_gpu_work_free(struct rls_gpu_work *work)
{
	while (work->devices) {
		struct rls_gpu_device *device = work->devices;

		work->devices = device->next;
		free_device(device);
	}
	while (work->copied) {
		struct rls_gpu_copied *copied = work->copied;

		work->copied = copied->next;
		free(copied);
	}
	rls_index_map_free(&work->copied_map);
	rls_index_map_free(&work->device_map);
	rls_index_map_free(&work->launched_map);
	rls_index_map_free(&work->launch_map);
	free(work->launches);
	free(work->waiting);
	*work = (struct rls_gpu_work){0};
}

static int find_device(struct rls_gpu_work *work, uint32_t number, struct rls_gpu_device **out)
{
	struct rls_gpu_device *device = rls_index_map_get(&work->device_map, number, 0);
	int err;

	if (!device) {
		device = calloc(1, sizeof(*device));
		if (!device)
			return -ENOMEM;
		err = rls_index_map_put(&work->device_map, number, 0, device);
		if (err) {
			free(device);
			return err;
		}
		device->device = number;
		device->next = work->devices;
		work->devices = device;
	}
	*out = device;
	return 0;
}

static int find_launched(struct rls_gpu_work *work, struct rls_gpu_device *device,
			 const struct rls_launch *launch, struct rls_launched **out)
{
	uint64_t key = (uint64_t)launch->phase << 32 | launch->operation;
	struct rls_launched *launched = rls_index_map_get(&work->launched_map, device->device, key);
	int err;

	if (!launched) {
		launched = calloc(1, sizeof(*launched));
		if (!launched)
			return -ENOMEM;
		err = rls_index_map_put(&work->launched_map, device->device, key, launched);
		if (err) {
			free(launched);
			return err;
		}
		launched->phase = launch->phase;
		launched->operation = launch->operation;
		launched->next = device->launched;
		device->launched = launched;
	}
	*out = launched;
	return 0;
}

/* NULL when it is not known (any more). */
static const struct rls_launch *find_launch(const struct rls_gpu_work *work, uint64_t correlation)
{
	size_t place = (uintptr_t)rls_index_map_get(&work->launch_map, correlation, 0);

	return place ? &work->launches[place - 1] : NULL;
}

static void file_idle(struct rls_launched *launched, const struct rls_gpu_interval *interval,
		      const struct rls_launch *launch)
{
	uint64_t idle_ns = interval->start_ns - interval->idle_since_ns, late_ns = 0;

	if (!launch) {
		rls_add_bounded(&launched->idle_ns[RLS_IDLE_OTHER], idle_ns);
		return;
	}
	if (launch->time_ns > interval->idle_since_ns)
		late_ns = launch->time_ns - interval->idle_since_ns;
	if (late_ns > idle_ns)
		late_ns = idle_ns;
	rls_add_bounded(&launched->idle_ns[RLS_IDLE_HOST_LATE], late_ns);
	rls_add_bounded(&launched->idle_ns[RLS_IDLE_QUEUE], idle_ns - late_ns);
}

static int find_copied(struct rls_gpu_work *work, const struct rls_launch *launch,
		       struct rls_gpu_copied **out)
{
	struct rls_gpu_copied *copied =
		rls_index_map_get(&work->copied_map, launch->phase, launch->operation);
	int err;

	if (!copied) {
		copied = calloc(1, sizeof(*copied));
		if (!copied)
			return -ENOMEM;
		err = rls_index_map_put(&work->copied_map, launch->phase, launch->operation,
					copied);
		if (err) {
			free(copied);
			return err;
		}
		copied->phase = launch->phase;
		copied->operation = launch->operation;
		copied->next = work->copied;
		work->copied = copied;
	}
	*out = copied;
	return 0;
}

static int file_copy(struct rls_gpu_work *work, const struct rls_gpu_interval *interval,
		     const struct rls_launch *launch)
{
	struct rls_gpu_copied *copied;
	int err = find_copied(work, launch, &copied);

	if (err)
		return err;
	rls_add_bounded(&copied->copies[interval->copy], 1);
	rls_add_bounded(&copied->bytes[interval->copy], interval->copied_bytes);
	return 0;
}

static int file_interval(struct rls_gpu_work *work, const struct rls_gpu_interval *interval,
			 const struct rls_launch *launch)
{
	static const struct rls_launch nowhere;
	struct rls_launched *launched;
	int err;

	if (!interval->device)
		return file_copy(work, interval, launch ? launch : &nowhere);
	err = find_launched(work, interval->device, launch ? launch : &nowhere, &launched);
	if (err)
		return err;
	rls_gpu_busy_add(&launched->busy, interval->start_ns, interval->end_ns);
	if (interval->kind == RLS_GPU_KERNEL) {
		launched->kernels++;
		rls_add_bounded(&launched->kernel_ns, interval->end_ns - interval->start_ns);
	}
	file_idle(launched, interval, launch);
	return 0;
}

/* Files intervals from the head of the queue, as far as their launches are known, and
 * without them until at most `leave` still wait. */
static int gpu_work_drain(struct rls_gpu_work *work, size_t leave)
{
	while (work->waiting_head < work->waiting_tail) {
		const struct rls_gpu_interval *interval =
			&work->waiting[work->waiting_head & (work->waiting_capacity - 1)];
		const struct rls_launch *launch = find_launch(work, interval->correlation);
		int err;

		if (!launch && interval->correlation &&
		    work->waiting_tail - work->waiting_head <= leave)
			break;
		err = file_interval(work, interval, launch);
		if (err)
			return err;
		work->waiting_head++;
	}
	return 0;
}

static int grow_launches(struct rls_gpu_work *work)
{
	size_t capacity = work->launch_capacity ? 2 * work->launch_capacity : RING_MIN;
	struct rls_launch *launches;

	if (work->launch_count < work->launch_capacity || work->launch_capacity >= RLS_LAUNCHES_MAX)
		return 0;
	launches = realloc(work->launches, capacity * sizeof(*launches));
	if (!launches)
		return -ENOMEM;
	work->launches = launches;
	work->launch_capacity = capacity;
	return 0;
}

int rls_gpu_work_launch(struct rls_gpu_work *work, const struct rls_launch *launch)
{
	size_t place;
	int err;

	if (!launch->correlation)
		return 0;
	err = grow_launches(work);
	if (err)
		return err;
	place = work->launch_count & (work->launch_capacity - 1);
	if (work->launch_count >= work->launch_capacity) {
		uint64_t oldest = work->launches[place].correlation;

		/* Unless a later launch has taken over the id. */
		if (find_launch(work, oldest) == &work->launches[place])
			rls_index_map_remove(&work->launch_map, oldest, 0);
	}
	err = rls_index_map_put(&work->launch_map, launch->correlation, 0, (void *)(place + 1));
	if (err)
		return err;
	work->launches[place] = *launch;
	work->launch_count++;
	return gpu_work_drain(work, RLS_WAITING_MAX);
}

static int grow_waiting(struct rls_gpu_work *work)
{
	size_t capacity = work->waiting_capacity ? 2 * work->waiting_capacity : RING_MIN;
	struct rls_gpu_interval *waiting;

	if (work->waiting_tail - work->waiting_head < work->waiting_capacity)
		return 0;
	waiting = malloc(capacity * sizeof(*waiting));
	if (!waiting)
		return -ENOMEM;
	for (uint64_t i = work->waiting_head; i < work->waiting_tail; i++)
		waiting[i & (capacity - 1)] = work->waiting[i & (work->waiting_capacity - 1)];
	free(work->waiting);
	work->waiting = waiting;
	work->waiting_capacity = capacity;
	return 0;
}

static int wait_for_launch(struct rls_gpu_work *work, const struct rls_gpu_interval *interval)
{
	int err = grow_waiting(work);

	if (err)
		return err;
	work->waiting[work->waiting_tail++ & (work->waiting_capacity - 1)] = *interval;
	return gpu_work_drain(work, RLS_WAITING_MAX - 1);
}

/* Whether a kernel began in the life is open at its start: the life may end at that instant. */
static void add_to_windows(struct rls_gpu_device *device, uint64_t start_ns, uint64_t end_ns)
{
	if (start_ns > device->latest_kernel.start_ns) {
		rls_smi_windows_add(&device->windows, device->latest_kernel.start_ns,
				    device->latest_kernel.end_ns);
		device->latest_kernel.start_ns = start_ns;
		device->latest_kernel.end_ns = end_ns;
	} else if (end_ns > device->latest_kernel.end_ns) {
		device->latest_kernel.end_ns = end_ns;
	}
}

double rls_gpu_device_smi_percent(const struct rls_gpu_device *device, uint64_t life_ns)
{
	struct rls_smi_windows windows = device->windows;

	if (device->latest_kernel.start_ns < life_ns)
		rls_smi_windows_add(&windows, device->latest_kernel.start_ns,
				    device->latest_kernel.end_ns);
	return rls_smi_windows_percent(&windows, life_ns);
}

int rls_gpu_work_add(struct rls_gpu_work *work, const struct rls_event *event,
		     uint64_t life_start_ns, bool in_life)
{
	struct rls_gpu_interval interval = {
		.start_ns = event->time_ns,
		.end_ns = event->gpu.end_ns,
		.correlation = event->gpu.correlation,
		.kind = event->gpu.kind,
	};
	uint64_t length_ns = interval.end_ns - interval.start_ns;
	struct rls_gpu_device *device;
	int err = find_device(work, event->gpu.device, &device);

	if (err)
		return err;
	interval.device = device;
	interval.idle_since_ns = device->any && device->busy.run_end_ns < interval.start_ns
					 ? device->busy.run_end_ns
					 : interval.start_ns;
	device->any = true;
	rls_gpu_busy_add(&device->busy, interval.start_ns, interval.end_ns);
	if (interval.kind == RLS_GPU_KERNEL) {
		rls_add_bounded(&device->kernel_ns, length_ns);
		device->kernels++;
	} else if (interval.kind == RLS_GPU_MEMCPY) {
		rls_add_bounded(&device->memcpy_ns, length_ns);
	}
	/* A graph is kernels too, only not listed one by one. */
	if (in_life && (interval.kind == RLS_GPU_KERNEL || interval.kind == RLS_GPU_GRAPH))
		add_to_windows(device, interval.start_ns - life_start_ns,
			       interval.end_ns - life_start_ns);
	return wait_for_launch(work, &interval);
}

int rls_gpu_work_copy(struct rls_gpu_work *work, const struct rls_event *event)
{
	const struct rls_gpu_interval interval = {
		.start_ns = event->time_ns,
		.end_ns = event->time_ns,
		.correlation = event->gpu_copy.correlation,
		.kind = RLS_GPU_MEMCPY,
		.copy = event->gpu_copy.kind,
		.copied_bytes = event->gpu_copy.bytes,
	};

	return wait_for_launch(work, &interval);
}

int rls_gpu_work_finish(struct rls_gpu_work *work)
{
	return gpu_work_drain(work, 0);
}
