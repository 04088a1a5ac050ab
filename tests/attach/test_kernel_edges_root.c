/* Annotation records (userspace/annotate/annotate_wire.h), made by hand and read by the
 * kernel side at this thread's next hit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/wire/maps.h"
#include "bpf/wire/record.h"
#include "probed.h"
#include "recording.h"
#include "userspace/annotate/annotate_wire.h"
#include "userspace/attach/kernel/kernel_rings.h"

static __thread struct rls_thread_record *record;
static struct rls_thread_record own_record;
static struct rls_name names[4] = {
	{.length = 5, .text = "train"},
	{.length = 4, .text = "step"},
	{.length = RLS_NAME_BYTES + 1000, .text = "too long to be true"},
	{.length = 0, .text = ""},
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static uint64_t record_offset(void)
{
	return (uint64_t)((uintptr_t)&record - (uintptr_t)__builtin_thread_pointer());
}

static void begin_in(struct recording *recording, size_t control_bytes)
{
	memset(&own_record, 0, sizeof(own_record));
	record = &own_record;
	recording_open(recording, 0, control_bytes);
	recording_track(recording, RLS_PROCESS_FOLLOW | RLS_PROCESS_ANNOTATED, record_offset());
	recording_attach(recording);
}

static void begin_annotated(struct recording *recording)
{
	begin_in(recording, 0);
}

static void add_edge(uint16_t kind, uint16_t depth, const struct rls_name *name)
{
	struct rls_edge *edge = &own_record.edges[own_record.head % RLS_EDGE_RING];

	*edge = (struct rls_edge){
		.time_ns = now_ns(), .name = (uintptr_t)name, .kind = kind, .depth = depth};
	own_record.depth = depth;
	if (depth && depth <= RLS_STACK_MAX)
		own_record.stack[depth - 1] = (uintptr_t)name;
	own_record.head++;
}

static void assert_edge(const struct recording *recording, size_t n, uint16_t kind, uint16_t depth,
			const struct rls_name *name)
{
	const union control_record *edge = recording_control(recording, RLS_WIRE_EDGE, 0, n);

	assert_non_null(edge);
	assert_int_equal(edge->edge.edge, kind);
	assert_int_equal(edge->edge.depth, depth);
	assert_int_equal(edge->edge.name, (uintptr_t)name);
}

static void edges_are_read_at_the_next_hit(void **state)
{
	struct recording *recording = *state;
	const union control_record *name;
	uint64_t edge_ns;

	begin_annotated(recording);
	recording_start(recording);
	add_edge(RLS_EDGE_PUSH, 1, &names[0]);
	edge_ns = own_record.edges[0].time_ns;
	add_edge(RLS_EDGE_PUSH, 2, &names[1]);
	into_backend(nothing, NULL);
	add_edge(RLS_EDGE_POP, 1, &names[0]);
	add_edge(RLS_EDGE_PHASE, 1, &names[2]);
	add_edge(RLS_EDGE_POP, 0, NULL);
	into_backend(nothing, NULL);
	recording_stop(recording);

	assert_int_equal(recording_controls(recording, RLS_WIRE_EDGE, getpid()), 5);
	assert_edge(recording, 0, RLS_EDGE_PUSH, 1, &names[0]);
	assert_edge(recording, 1, RLS_EDGE_PUSH, 2, &names[1]);
	assert_edge(recording, 2, RLS_EDGE_POP, 1, &names[0]);
	assert_edge(recording, 3, RLS_EDGE_PHASE, 1, &names[2]);
	assert_edge(recording, 4, RLS_EDGE_POP, 0, NULL);
	assert_int_equal(recording_control(recording, RLS_WIRE_EDGE, 0, 0)->header.time_ns,
			 edge_ns);
	/* Each name once, ahead of its use, never longer than it can be. */
	assert_int_equal(recording_controls(recording, RLS_WIRE_NAME, 0), 3);
	name = recording_control(recording, RLS_WIRE_NAME, 0, 0);
	assert_true(name < recording_control(recording, RLS_WIRE_EDGE, 0, 0));
	assert_int_equal(name->name.address, (uintptr_t)&names[0]);
	assert_int_equal(name->name.length, 5);
	assert_memory_equal(name->name.text, "train", 5);
	name = recording_control(recording, RLS_WIRE_NAME, 0, 2);
	assert_int_equal(name->name.length, RLS_WIRE_NAME_BYTES - 1);
	assert_int_equal(recording_control(recording, RLS_WIRE_FINAL, 0, 0)->final.edges_seen, 5);
}

static void edges_before_recording_become_a_stack(void **state)
{
	struct recording *recording = *state;

	begin_annotated(recording);
	add_edge(RLS_EDGE_PUSH, 1, &names[0]);
	add_edge(RLS_EDGE_PUSH, 2, &names[1]);
	recording_start(recording);
	into_backend(nothing, NULL);
	recording_stop(recording);
	assert_int_equal(recording_controls(recording, RLS_WIRE_EDGE, 0), 2);
	assert_edge(recording, 0, RLS_WIRE_EDGE_STACK, 1, &names[0]);
	assert_edge(recording, 1, RLS_WIRE_EDGE_STACK, 2, &names[1]);
	assert_int_equal(recording_control(recording, RLS_WIRE_EDGE, 0, 0)->header.flags, 0);
	assert_int_equal(recording_control(recording, RLS_WIRE_EDGE, 0, 1)->header.flags,
			 RLS_WIRE_STACK_END);
	assert_int_equal(recording_dropped(recording, RLS_DROP_EDGES), 0);
}

static void overwritten_edges_are_counted_and_the_stack_sent(void **state)
{
	struct recording *recording = *state;

	begin_annotated(recording);
	recording_start(recording);
	add_edge(RLS_EDGE_PUSH, 1, &names[0]);
	into_backend(nothing, NULL);
	for (int i = 0; i < RLS_EDGE_RING; i++) /* as many as the ring holds: none is lost */
		add_edge(i % 2 ? RLS_EDGE_POP : RLS_EDGE_PUSH, i % 2 ? 1 : 2,
			 &names[i % 2 ? 0 : 1]);
	for (int i = 0; i < 4; i++) /* a hit does not send them all */
		into_backend(nothing, NULL);
	assert_int_equal(recording_dropped(recording, RLS_DROP_EDGES), 0);
	for (int i = 0; i < RLS_EDGE_RING + 1; i++)
		add_edge(i % 2 ? RLS_EDGE_POP : RLS_EDGE_PUSH, i % 2 ? 1 : 2,
			 &names[i % 2 ? 0 : 1]);
	into_backend(nothing, NULL);
	recording_stop(recording);
	assert_int_equal(recording_dropped(recording, RLS_DROP_EDGES), RLS_EDGE_RING + 1);
	assert_int_equal(recording_controls(recording, RLS_WIRE_EDGE, 0), 1 + RLS_EDGE_RING + 2);
	assert_edge(recording, 1 + RLS_EDGE_RING, RLS_WIRE_EDGE_STACK, 1, &names[0]);
	assert_edge(recording, 2 + RLS_EDGE_RING, RLS_WIRE_EDGE_STACK, 2, &names[1]);
}

/* Their ring has room for 85 that are sent one by one. */
static void many_edges_at_once_take_little_room(void **state)
{
	struct recording *recording = *state;
	const uint64_t many = 2 * RLS_EDGE_FLUSH;
	uint64_t first;
	size_t sent;

	begin_in(recording, 4096);
	recording_start(recording);
	for (int i = 0; i < 3; i++)
		add_edge(RLS_EDGE_PHASE, 0, &names[i]);
	into_backend(nothing, NULL);
	recording_consume(recording);
	sent = recording_controls(recording, RLS_WIRE_EDGE, 0);
	assert_int_equal(sent, 3);

	first = own_record.head;
	for (uint64_t i = 0; i < many; i++)
		add_edge(i % 2 ? RLS_EDGE_POP : RLS_EDGE_PUSH, (uint16_t)(1 - i % 2),
			 i % 2 ? NULL : &names[i % 3]);
	into_backend(nothing, NULL);
	into_backend(nothing, NULL);
	recording_stop(recording);
	assert_int_equal(recording_dropped(recording, RLS_DROP_CONTROL), 0);
	assert_int_equal(recording_controls(recording, RLS_WIRE_EDGE, 0), sent + many);
	for (uint64_t i = 0; i < many; i++) {
		const struct rls_edge *edge = &own_record.edges[(first + i) % RLS_EDGE_RING];

		assert_edge(recording, sent + i, edge->kind, edge->depth,
			    (const struct rls_name *)(uintptr_t)edge->name);
		assert_int_equal(
			recording_control(recording, RLS_WIRE_EDGE, 0, sent + i)->header.time_ns,
			edge->time_ns);
	}
	assert_int_equal(recording_controls(recording, RLS_WIRE_NAME, 0), 3);
}

static void unsent_edges_are_made_good_by_the_stack(void **state)
{
	struct recording *recording = *state;
	size_t sent;

	begin_in(recording, 4096);
	recording_start(recording);
	add_edge(RLS_EDGE_PUSH, 1, &names[0]);
	into_backend(nothing, NULL);
	for (int i = 0; i < 200; i++) { /* more than there is room for */
		add_edge(RLS_EDGE_PUSH, 2, &names[1]);
		add_edge(RLS_EDGE_POP, 1, &names[0]);
		into_backend(nothing, NULL);
	}
	add_edge(RLS_EDGE_PUSH, 2, &names[1]);
	into_backend(nothing, NULL);
	assert_true(recording_dropped(recording, RLS_DROP_CONTROL) > 0);
	assert_int_equal(recording_dropped(recording, RLS_DROP_EDGES), 0);
	recording_consume(recording);
	sent = recording_controls(recording, RLS_WIRE_EDGE, 0);

	/* There is room again: no edge is new, but the next hit says how things are. */
	into_backend(nothing, NULL);
	into_backend(nothing, NULL);
	recording_stop(recording);
	assert_int_equal(recording_controls(recording, RLS_WIRE_EDGE, 0), sent + 2);
	assert_edge(recording, sent, RLS_WIRE_EDGE_STACK, 1, &names[0]);
	assert_edge(recording, sent + 1, RLS_WIRE_EDGE_STACK, 2, &names[1]);
}

static void hostile_records_do_no_harm(void **state)
{
	struct recording *recording = *state;
	struct rls_thread_record *const hostile[] = {
		(struct rls_thread_record *)8,
		(struct rls_thread_record *)0x7fffffffff00,
		(struct rls_thread_record *)0xffff888000000000,
	};

	begin_annotated(recording);
	recording_start(recording);
	for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		pid_t child = fork();

		if (!child) {
			record = hostile[i];
			into_backend(nothing, NULL);
			_exit(0);
		}
		assert_int_equal(waitpid(child, NULL, 0), child);
	}
	recording_consume(recording);
	/* That this thread, which waits, is in no operation; nothing of the children. */
	assert_int_equal(recording_controls(recording, RLS_WIRE_EDGE, 0), 1);
	assert_int_equal(recording->transition_count, 3 * 3);

	/* Counters that jump, depths beyond any stack, names that are nowhere. */
	own_record.head = UINT64_MAX;
	own_record.depth = UINT32_MAX;
	for (int i = 0; i < RLS_STACK_MAX; i++)
		own_record.stack[i] = 0xffff888000000000 + (uint64_t)i;
	into_backend(nothing, NULL);
	recording_consume(recording);
	assert_int_equal(recording_controls(recording, RLS_WIRE_EDGE, 0), 1 + RLS_STACK_MAX);
	assert_int_equal(recording_controls(recording, RLS_WIRE_NAME, 0), 0);
	own_record.head = 1ULL << 63;
	into_backend(nothing, NULL);
	recording_stop(recording);
	assert_int_equal(recording_controls(recording, RLS_WIRE_EDGE, 0), 1 + 2 * RLS_STACK_MAX);
	assert_string_equal(recording_path(recording, own_tid()), "?>P P>B B>P P>B B>P");
}

/* Each record that is received makes more of them, up to PATIENCE. */
#define PATIENCE 1000
static int make_more(const struct rls_wire_header *header, size_t size, void *context)
{
	int *received = context;

	(void)header;
	(void)size;
	if (++*received < PATIENCE) {
		add_edge(RLS_EDGE_PHASE, 0, &names[*received % 2]);
		into_backend(nothing, NULL);
	}
	return 0;
}

static void who_makes_records_faster_than_they_are_read_is_not_read_for_ever(void **state)
{
	struct recording *recording = *state;
	int received = 0;

	begin_annotated(recording);
	recording_start(recording);
	into_backend(nothing, NULL);
	assert_int_equal(rls_kernel_set_handler(recording->kernel, make_more, &received), 0);
	assert_int_equal(rls_kernel_consume(recording->kernel), 0);
	assert_in_range(received, 1, 100);
	assert_int_equal(rls_kernel_consume(recording->kernel), 0);
	assert_in_range(received, 2, PATIENCE - 1);
	recording_stop(recording);
}

static void push_and_fork(void *pid_out)
{
	add_edge(RLS_EDGE_PUSH, 1, &names[0]);
	*(pid_t *)pid_out = fork();
}

static void a_child_sends_only_its_own_edges(void **state)
{
	struct recording *recording = *state;
	const union control_record *edge;
	pid_t child;

	begin_annotated(recording);
	recording_start(recording);
	into_backend(push_and_fork, &child);
	if (!child) {
		add_edge(RLS_EDGE_PUSH, 2, &names[1]);
		into_simulator(nothing, NULL);
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	recording_stop(recording);
	/* The parent's, after the stack that was empty, was sent before the child was reported. */
	assert_int_equal(recording_controls(recording, RLS_WIRE_EDGE, getpid()), 2);
	assert_edge(recording, 0, RLS_WIRE_EDGE_STACK, 0, NULL);
	assert_edge(recording, 1, RLS_EDGE_PUSH, 1, &names[0]);
	assert_true(recording_control(recording, RLS_WIRE_EDGE, getpid(), 1) <
		    recording_control(recording, RLS_WIRE_FORK, getpid(), 0));
	assert_int_equal(recording_controls(recording, RLS_WIRE_EDGE, child), 1);
	edge = recording_control(recording, RLS_WIRE_EDGE, child, 0);
	assert_int_equal(edge->edge.name, (uintptr_t)&names[1]);
	assert_int_equal(edge->edge.depth, 2);
	/* Names are sent again for each process. */
	assert_int_equal(recording_controls(recording, RLS_WIRE_NAME, child), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH_WAYS(edges_are_read_at_the_next_hit),
		BOTH_WAYS(edges_before_recording_become_a_stack),
		BOTH_WAYS(overwritten_edges_are_counted_and_the_stack_sent),
		BOTH_WAYS(many_edges_at_once_take_little_room),
		BOTH_WAYS(unsent_edges_are_made_good_by_the_stack),
		BOTH_WAYS(hostile_records_do_no_harm),
		BOTH_WAYS(who_makes_records_faster_than_they_are_read_is_not_read_for_ever),
		BOTH_WAYS(a_child_sends_only_its_own_edges),
	};
	int skipped = recording_possible();

	return skipped ? skipped : cmocka_run_group_tests(tests, NULL, NULL);
}
