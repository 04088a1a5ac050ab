/* What comes back from the kernel side: records through ring buffers, and what was dropped. */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "userspace/attach/kernel/kernel_rings.h"
#include "userspace/attach/kernel/kernel_state.h"
#include "userspace/base/descriptors.h"
#include "userspace/base/log.h"

/* Places in the ring_buffer. Control first: names and threads come before what refers to
 * them. */
enum { RING_CONTROL, RING_GPU, RING_STACKS };

/* What was sent together leaves as if it had not been. */
static int handle_edges(struct rls_kernel *kernel, const struct rls_wire_edges *record)
{
	struct rls_wire_edge edge = {.header = record->header};
	int r = 0;

	edge.header.size = sizeof(edge);
	edge.header.kind = RLS_WIRE_EDGE;
	for (size_t i = 0; !r && i < RLS_EDGES_SENT; i++) {
		edge.header.time_ns = record->edges[i].time_ns;
		edge.name = record->edges[i].name;
		edge.edge = record->edges[i].edge;
		edge.depth = record->edges[i].depth;
		edge.flags = record->edges[i].flags;
		r = kernel->handler(&edge.header, sizeof(edge), kernel->handler_context);
	}
	return r;
}

static int handle(struct rls_kernel *kernel, const void *data, size_t size)
{
	const struct rls_wire_header *record = data;

	if (size < sizeof(*record))
		return 0;
	if (record->kind == RLS_WIRE_EDGES && size >= sizeof(struct rls_wire_edges))
		return handle_edges(kernel, data);
	return kernel->handler(record, size, kernel->handler_context);
}

/* Whoever reads a ring until it is empty reads for ever where a target is faster: what comes
 * meanwhile is for the next time. While a record is handled, the consumer's position is where it begins. */
static bool is_last(const struct rls_kernel *kernel, size_t size)
{
	size_t bytes = (BPF_RINGBUF_HDR_SZ + size + 7) / 8 * 8;

	return ring__consumer_pos(kernel->reading) + bytes >= kernel->end_position;
}

static int handle_record(void *context, void *data, size_t size)
{
	struct rls_kernel *kernel = context;
	bool last = is_last(kernel, size);
	int r = handle(kernel, data, size);

	return r < 0 ? r : last ? -ECANCELED : 0;
}

static int handle_transition(void *context, const struct rls_wire_category *event)
{
	const struct rls_kernel *kernel = context;

	return kernel->handler(&event->header, sizeof(*event), kernel->handler_context);
}

static int map_transitions(struct rls_kernel *kernel)
{
	const struct bpf_map *map = kernel->skeleton->maps.transitions;

	return rls_transitions_map(bpf_map__fd(map), bpf_map__max_entries(map),
				   (uint64_t *)kernel->skeleton->bss->transition_ends,
				   &kernel->transitions);
}

int rls_kernel_set_handler(struct rls_kernel *kernel, rls_record_handler handler, void *context)
{
	int r;

	kernel->handler = handler;
	kernel->handler_context = context;
	if (kernel->rings)
		return 0;
	kernel->rings = ring_buffer__new(bpf_map__fd(kernel->skeleton->maps.control), handle_record,
					 kernel, NULL);
	if (!kernel->rings)
		return rls_error_r(-errno, "cannot map the ring buffers: %s", rls_reason(errno));
	r = map_transitions(kernel);
	if (!r)
		r = ring_buffer__add(kernel->rings, bpf_map__fd(kernel->skeleton->maps.gpu),
				     handle_record, kernel);
	if (!r && bpf_map__autocreate(kernel->skeleton->maps.samples))
		r = ring_buffer__add(kernel->rings, bpf_map__fd(kernel->skeleton->maps.samples),
				     handle_record, kernel);
	return r ? rls_error_r(r, "cannot map the ring buffers: %s", rls_reason(r)) : 0;
}

int rls_kernel_poll_fd(const struct rls_kernel *kernel)
{
	return ring_buffer__epoll_fd(kernel->rings);
}

/* Up to this position: 0 or -errno. A handler may have another ring read. */
static int consume_until(struct rls_kernel *kernel, struct ring *ring, unsigned long end_position)
{
	struct ring *outer = kernel->reading;
	unsigned long outer_end = kernel->end_position;
	int r;

	if (ring__consumer_pos(ring) >= end_position)
		return 0;
	kernel->reading = ring;
	kernel->end_position = end_position;
	r = ring__consume(ring);
	kernel->reading = outer;
	kernel->end_position = outer_end;
	return r < 0 && r != -ECANCELED ? r : 0;
}

/* What is in it now, where there is such a ring. */
static int consume(struct rls_kernel *kernel, unsigned int place)
{
	struct ring *ring = kernel->rings ? ring_buffer__ring(kernel->rings, place) : NULL;

	return ring ? consume_until(kernel, ring, ring__producer_pos(ring)) : 0;
}

static int consume_transitions(struct rls_kernel *kernel, uint64_t end_position)
{
	return rls_transitions_read(&kernel->transitions, end_position, handle_transition, kernel);
}

int rls_kernel_consume_transitions(struct rls_kernel *kernel)
{
	return kernel->rings
		       ? consume_transitions(kernel, rls_transitions_end(&kernel->transitions))
		       : 0;
}

/* What was sent before a transition comes before it, its thread's operations above all: all that are there now have
 * theirs on the control ring by the time that its end is looked up. One that is still being written is waited for, as
 * there may be others behind it. */
static int consume_in_order(struct rls_kernel *kernel)
{
	const struct timespec moment = {.tv_nsec = 20000};
	struct ring *control;
	unsigned long control_end;
	uint64_t transitions_end;
	int r;

	if (!kernel->rings)
		return 0;
	control = ring_buffer__ring(kernel->rings, RING_CONTROL);
	transitions_end = rls_transitions_end(&kernel->transitions);
	control_end = ring__producer_pos(control);
	r = consume_until(kernel, control, control_end);
	while (!r && ring__consumer_pos(control) < control_end) {
		nanosleep(&moment, NULL);
		r = consume_until(kernel, control, control_end);
	}
	return r ? r : consume_transitions(kernel, transitions_end);
}

static int consume_up_to(struct rls_kernel *kernel, unsigned int last)
{
	int r = consume_in_order(kernel);

	for (unsigned int place = RING_GPU; !r && place <= last; place++)
		r = consume(kernel, place);
	return r;
}

int rls_kernel_consume(struct rls_kernel *kernel)
{
	return consume_up_to(kernel, RING_STACKS);
}

int rls_kernel_consume_all_but_stacks(struct rls_kernel *kernel)
{
	return consume_up_to(kernel, RING_GPU);
}

int rls_kernel_consume_control(struct rls_kernel *kernel)
{
	return consume(kernel, RING_CONTROL);
}

int rls_kernel_consume_stacks(struct rls_kernel *kernel)
{
	return consume(kernel, RING_STACKS);
}

#define RING_BYTES_PER_CPU (32UL << 20)
#define RING_BYTES_MAX (128UL << 20) /* beyond it the reader is the limit */
#define RING_BYTES_MIN (4UL << 20)
#define MEMORY_SHARE 64

size_t rls_kernel_ring_bytes(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES);
	size_t memory_bytes = pages > 0 ? (size_t)pages * (size_t)sysconf(_SC_PAGESIZE) : 0;
	size_t wanted = RING_BYTES_PER_CPU * (size_t)(cpus > 0 ? cpus : 1);
	size_t bytes = RING_BYTES_MIN;

	if (wanted > memory_bytes / MEMORY_SHARE)
		wanted = memory_bytes / MEMORY_SHARE;
	while (bytes < RING_BYTES_MAX && 2 * bytes <= wanted)
		bytes *= 2;
	return bytes;
}

void rls_kernel_drops(const struct rls_kernel *kernel, uint64_t out[RLS_DROP_MAX])
{
	for (int i = 0; i < RLS_DROP_MAX; i++)
		out[i] = __atomic_load_n(&kernel->skeleton->bss->drops[i], __ATOMIC_RELAXED);
	out[RLS_DROP_TRANSITIONS] += kernel->transitions.overwritten;
}

void rls_kernel_forget_drops(struct rls_kernel *kernel)
{
	for (int i = 0; i < RLS_DROP_MAX; i++)
		__atomic_store_n(&kernel->skeleton->bss->drops[i], 0, __ATOMIC_RELAXED);
	kernel->transitions.overwritten = 0;
}
