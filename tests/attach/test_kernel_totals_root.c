/* What the kernel side sums up in totals_mode, by real probes on this program's own functions. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/event/category.h"
#include "bpf/wire/maps.h"
#include "bpf/wire/record.h"
#include "bpf/wire/totals.h"
#include "probed.h"
#include "recording.h"
#include "userspace/annotate/annotate_wire.h"
#include "userspace/attach/hit_costs.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/attach/kernel/kernel_totals.h"
#include "userspace/attach/kernel/kernel_windows.h"
#include "userspace/base/clock.h"

#define CELLS 64

struct totals {
	struct rls_wire_cell_key key[CELLS];
	struct rls_wire_cell cell[CELLS];
	size_t count;
};

static struct totals totals;
static __thread struct rls_thread_record *record;
static struct rls_thread_record own_record;
static struct rls_name names[] = {
	{.length = 5, .text = "train"},
	{.length = 4, .text = "step"},
	{.length = 7, .text = "collect"},
};

static int add_cell(void *context, const struct rls_wire_cell_key *key,
		    const struct rls_wire_cell *cell)
{
	assert_true(totals.count < CELLS);
	totals.key[totals.count] = *key;
	totals.cell[totals.count++] = *cell;
	return 0;
}

static void read_totals(struct recording *recording)
{
	totals.count = 0;
	assert_int_equal(rls_kernel_flush_totals(recording->kernel), 0);
	recording_consume(recording);
	assert_int_equal(rls_kernel_read_cells(recording->kernel, add_cell, NULL), 0);
}

/* The id that the kernel side gave the name in this process; 0 for none. */
static uint32_t id_of(const struct recording *recording, const struct rls_name *name)
{
	const union control_record *sent;

	for (size_t i = 0; name && (sent = recording_control(recording, RLS_WIRE_NAME, 0, i));
	     i++) {
		if (sent->name.address == (uintptr_t)name)
			return sent->name.id;
	}
	assert_null(name);
	return 0;
}

static struct rls_wire_cell sum_of(const struct recording *recording, pid_t pid,
				   const struct rls_name *operation, const struct rls_name *phase,
				   int category)
{
	struct rls_wire_cell sum = {0};

	for (size_t i = 0; i < totals.count; i++) {
		const struct rls_wire_cell_key *key = &totals.key[i];

		if (key->pid != (uint32_t)pid || key->category != (uint32_t)category ||
		    key->operation != id_of(recording, operation) ||
		    key->phase != id_of(recording, phase))
			continue;
		sum.ns += totals.cell[i].ns;
		sum.off_cpu_ns += totals.cell[i].off_cpu_ns;
		sum.hits += totals.cell[i].hits;
		sum.cost_ns += totals.cell[i].cost_ns;
		for (int to = 0; to < RLS_TOTALS_CATEGORIES; to++)
			sum.to[to] += totals.cell[i].to[to];
	}
	return sum;
}

static uint64_t all_ns(pid_t pid)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < totals.count; i++)
		ns += totals.key[i].pid == (uint32_t)pid ? totals.cell[i].ns : 0;
	return ns;
}

static void wait_ms(void *context)
{
	const struct timespec pause = {.tv_nsec = (intptr_t)context * 1000000};

	nanosleep(&pause, NULL);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* So long on a CPU, however many others want it. */
static void run_ms(void *context)
{
	clockid_t clock = CLOCK_THREAD_CPUTIME_ID;
	uint64_t until_ns = clock_ns(clock) + (uint64_t)(uintptr_t)context * 1000000;

	while (clock_ns(clock) < until_ns)
		;
}

static void assert_ms(uint64_t ns, uint64_t at_least, uint64_t at_most)
{
	assert_in_range(ns, at_least * 1000000, at_most * 1000000);
}

static void begin(struct recording *recording)
{
	recording->totals_mode = true;
	memset(&own_record, 0, sizeof(own_record));
	record = &own_record;
	recording_open(recording, 0, 0);
	recording_track(recording, RLS_PROCESS_FOLLOW | RLS_PROCESS_ANNOTATED,
			(uint64_t)((uintptr_t)&record - (uintptr_t)__builtin_thread_pointer()));
	recording_attach(recording);
	recording_start(recording);
}

static void add_edge(uint16_t kind, uint16_t depth, const struct rls_name *name)
{
	struct rls_edge *edge = &own_record.edges[own_record.head % RLS_EDGE_RING];

	*edge = (struct rls_edge){.time_ns = rls_monotonic_ns(),
				  .name = (uintptr_t)name,
				  .kind = kind,
				  .depth = depth};
	own_record.depth = depth;
	if (depth && depth <= RLS_STACK_MAX)
		own_record.stack[depth - 1] = (uintptr_t)name;
	own_record.head++;
}

static void assert_nothing_dropped(const struct recording *recording)
{
	for (int which = 0; which < RLS_DROP_MAX; which++)
		assert_int_equal(recording_dropped(recording, (enum rls_drop_counter)which), 0);
}

static void transitions_and_hits_are_counted_exactly(void **state)
{
	struct recording *recording = *state;
	uint64_t began_ns, ended_ns;
	struct rls_wire_cell python, backend;

	began_ns = rls_monotonic_ns();
	begin(recording);
	for (int i = 0; i < 100; i++)
		into_backend(nothing, NULL);
	into_backend(wait_ms, (void *)50);
	read_totals(recording);
	ended_ns = rls_monotonic_ns();

	python = sum_of(recording, getpid(), NULL, NULL, RLS_CATEGORY_PYTHON);
	backend = sum_of(recording, getpid(), NULL, NULL, RLS_CATEGORY_BACKEND);
	assert_int_equal(python.to[RLS_CATEGORY_BACKEND], 101);
	assert_int_equal(backend.to[RLS_CATEGORY_PYTHON], 101);
	assert_int_equal(python.to[RLS_CATEGORY_SIMULATOR], 0);
	/* What comes before the first event is in no category, and no transition. */
	assert_int_equal(
		python.hits + backend.hits + sum_of(recording, getpid(), NULL, NULL, 0).hits, 202);
	assert_ms(backend.ns, 50, 10000);
	/* All of its time since recording began, and none twice. */
	assert_true(all_ns(getpid()) <= ended_ns - began_ns);
	assert_true(all_ns(getpid()) >= 50000000);
	assert_int_equal(recording->transition_count, 0);
	assert_nothing_dropped(recording);
}

static void time_is_reported_while_nothing_happens(void **state)
{
	struct recording *recording = *state;
	uint64_t before_ns, after_ns;

	begin(recording);
	into_backend(nothing, NULL);
	read_totals(recording);
	before_ns = sum_of(recording, getpid(), NULL, NULL, RLS_CATEGORY_PYTHON).ns;
	wait_ms((void *)30);
	read_totals(recording);
	after_ns = sum_of(recording, getpid(), NULL, NULL, RLS_CATEGORY_PYTHON).ns;
	assert_ms(after_ns - before_ns, 30, 10000);
	assert_nothing_dropped(recording);
}

static void edges_cut_time_where_they_were(void **state)
{
	struct recording *recording = *state;
	struct rls_wire_cell train, step, none;

	begin(recording);
	into_backend(nothing, NULL);
	add_edge(RLS_EDGE_PHASE, 0, &names[2]);
	add_edge(RLS_EDGE_PUSH, 1, &names[0]);
	wait_ms((void *)20);
	add_edge(RLS_EDGE_PUSH, 2, &names[1]);
	wait_ms((void *)40);
	into_backend(nothing, NULL);
	add_edge(RLS_EDGE_POP, 1, &names[0]);
	add_edge(RLS_EDGE_POP, 0, NULL);
	into_backend(nothing, NULL);
	wait_ms((void *)30);
	read_totals(recording);

	train = sum_of(recording, getpid(), &names[0], &names[2], RLS_CATEGORY_PYTHON);
	step = sum_of(recording, getpid(), &names[1], &names[2], RLS_CATEGORY_PYTHON);
	none = sum_of(recording, getpid(), NULL, &names[2], RLS_CATEGORY_PYTHON);
	assert_ms(train.ns, 20, 10000);
	assert_ms(step.ns, 40, 10000);
	assert_ms(none.ns, 30, 10000);
	assert_int_equal(step.to[RLS_CATEGORY_BACKEND], 1);
	assert_int_equal(none.to[RLS_CATEGORY_BACKEND], 1);
	assert_int_equal(recording_controls(recording, RLS_WIRE_EDGE, 0), 0);
	assert_nothing_dropped(recording);
}

static void operations_begun_before_are_known(void **state)
{
	struct recording *recording = *state;

	recording->totals_mode = true;
	memset(&own_record, 0, sizeof(own_record));
	record = &own_record;
	recording_open(recording, 0, 0);
	recording_track(recording, RLS_PROCESS_ANNOTATED,
			(uint64_t)((uintptr_t)&record - (uintptr_t)__builtin_thread_pointer()));
	recording_attach(recording);
	add_edge(RLS_EDGE_PUSH, 1, &names[0]);
	add_edge(RLS_EDGE_PUSH, 2, &names[1]);
	recording_start(recording);
	into_backend(wait_ms, (void *)10);
	read_totals(recording);
	assert_ms(sum_of(recording, getpid(), &names[1], NULL, RLS_CATEGORY_BACKEND).ns, 10, 10000);
}

static atomic_int requested;

static void set_step(int step)
{
	atomic_store(&requested, step);
}

static void spin_while(int step)
{
	while (atomic_load(&requested) == step)
		;
}

/* Never waits after its last edge: who waits has read it. */
static void *leave_edge_unread(void *context)
{
	record = &own_record;
	add_edge(RLS_EDGE_PUSH, 1, &names[0]);
	into_backend(nothing, NULL);
	wait_ms((void *)20);
	add_edge(RLS_EDGE_POP, 0, NULL);
	set_step(1);
	spin_while(1);
	into_backend(nothing, NULL);
	set_step(3);
	spin_while(3);
	return context;
}

/* Nobody knows in which operation time is to be added while an edge waits to be read. */
static void time_after_an_unread_edge_waits(void **state)
{
	struct recording *recording = *state;
	pthread_t thread;

	begin(recording);
	record = NULL;
	set_step(0);
	assert_int_equal(pthread_create(&thread, NULL, leave_edge_unread, NULL), 0);
	spin_while(0);
	wait_ms((void *)40);
	read_totals(recording);
	assert_ms(sum_of(recording, getpid(), &names[0], NULL, RLS_CATEGORY_PYTHON).ns, 20, 10000);
	assert_int_equal(sum_of(recording, getpid(), NULL, NULL, RLS_CATEGORY_PYTHON).ns, 0);
	set_step(2);
	spin_while(2);
	read_totals(recording);
	assert_ms(sum_of(recording, getpid(), NULL, NULL, RLS_CATEGORY_PYTHON).ns, 40, 10000);
	set_step(4);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* The first edge of all is made where no hit has found the record yet. */
static void time_after_the_first_edge_waits(void **state)
{
	struct recording *recording = *state;
	struct rls_wire_cell before;

	begin(recording);
	record = NULL;
	into_backend(nothing, NULL);
	record = &own_record;
	add_edge(RLS_EDGE_PUSH, 1, &names[0]);
	wait_ms((void *)40);
	read_totals(recording);
	before = sum_of(recording, getpid(), NULL, NULL, RLS_CATEGORY_PYTHON);
	assert_true(before.ns < 40000000);
	into_backend(nothing, NULL);
	read_totals(recording);
	assert_ms(sum_of(recording, getpid(), &names[0], NULL, RLS_CATEGORY_PYTHON).ns, 40, 10000);
}

static pthread_barrier_t met;

static void *help(void *context)
{
	into_backend(nothing, NULL);
	pthread_barrier_wait(&met); /* 1: known */
	pthread_barrier_wait(&met); /* 2: over */
	return NULL;
}

static void helpers_are_cut_at_the_edges_of_others(void **state)
{
	struct recording *recording = *state;
	pthread_t helper;

	begin(recording);
	into_backend(nothing, NULL);
	assert_int_equal(pthread_barrier_init(&met, NULL, 2), 0);
	assert_int_equal(pthread_create(&helper, NULL, help, NULL), 0);
	pthread_barrier_wait(&met);
	add_edge(RLS_EDGE_PUSH, 1, &names[0]);
	into_backend(wait_ms, (void *)40);
	add_edge(RLS_EDGE_POP, 0, NULL);
	into_backend(nothing, NULL);
	pthread_barrier_wait(&met);
	assert_int_equal(pthread_join(helper, NULL), 0);
	read_totals(recording);

	/* The helper was in Python all the while, this thread in the backend. */
	assert_ms(sum_of(recording, getpid(), &names[0], NULL, RLS_CATEGORY_PYTHON).ns, 40, 10000);
	assert_ms(sum_of(recording, getpid(), &names[0], NULL, RLS_CATEGORY_BACKEND).ns, 40, 10000);
	assert_nothing_dropped(recording);
}

static void children_go_on_in_their_parents_operation(void **state)
{
	struct recording *recording = *state;
	int status;
	pid_t child;

	begin(recording);
	add_edge(RLS_EDGE_PUSH, 1, &names[0]);
	into_backend(nothing, NULL);
	child = fork();
	if (!child) {
		into_simulator(wait_ms, (void *)20);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	read_totals(recording);
	assert_ms(sum_of(recording, child, &names[0], NULL, RLS_CATEGORY_SIMULATOR).ns, 20, 10000);
	assert_int_equal(sum_of(recording, child, &names[0], NULL, RLS_CATEGORY_PYTHON)
				 .to[RLS_CATEGORY_SIMULATOR],
			 1);
	assert_int_equal(sum_of(recording, child, NULL, NULL, RLS_CATEGORY_PYTHON).ns, 0);
	assert_nothing_dropped(recording);
}

static void closed_time_is_in_no_category(void **state)
{
	struct recording *recording = *state;
	uint64_t edge_ns;

	begin(recording);
	into_backend(nothing, NULL);
	assert_true(rls_kernel_has_windows(recording->kernel));
	rls_kernel_close_window(recording->kernel, &edge_ns);
	wait_ms((void *)30);
	into_backend(nothing, NULL); /* of a site that is always on */
	assert_int_equal(rls_kernel_open_window(recording->kernel, &edge_ns), 0);
	into_backend(nothing, NULL);
	read_totals(recording);

	assert_ms(sum_of(recording, getpid(), NULL, NULL, RLS_TOTALS_CLOSED).ns, 30, 10000);
	assert_true(sum_of(recording, getpid(), NULL, NULL, RLS_CATEGORY_PYTHON).ns < 30000000);
	assert_int_equal(sum_of(recording, getpid(), NULL, NULL, RLS_CATEGORY_PYTHON)
				 .to[RLS_CATEGORY_BACKEND],
			 2);
	for (int to = 0; to < RLS_TOTALS_CATEGORIES; to++)
		assert_int_equal(sum_of(recording, getpid(), NULL, NULL, RLS_TOTALS_CLOSED).to[to],
				 0);
	assert_nothing_dropped(recording);
}

static void waiting_is_distinguished_from_running(void **state)
{
	struct recording *recording = *state;
	struct rls_wire_cell backend, simulator;

	begin(recording);
	into_backend(nothing, NULL);
	into_backend(wait_ms, (void *)50);
	into_simulator(run_ms, (void *)50);
	read_totals(recording);
	backend = sum_of(recording, getpid(), NULL, NULL, RLS_CATEGORY_BACKEND);
	simulator = sum_of(recording, getpid(), NULL, NULL, RLS_CATEGORY_SIMULATOR);
	assert_ms(backend.off_cpu_ns, 49, 10000);
	assert_true(backend.off_cpu_ns <= backend.ns);
	assert_ms(simulator.ns - simulator.off_cpu_ns, 45, 10000);
	assert_nothing_dropped(recording);
}

static void pin_to_first_cpu(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	assert_int_equal(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
}

static void *contend(void *context)
{
	pin_to_first_cpu();
	spin_while(0);
	return context;
}

/* Who is ready to run but another one has the CPU does not run. */
static void kept_from_running_is_reported_too(void **state)
{
	struct recording *recording = *state;
	struct rls_wire_cell simulator;
	cpu_set_t before;
	pthread_t rival;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	begin(recording);
	set_step(0);
	assert_int_equal(pthread_create(&rival, NULL, contend, NULL), 0);
	pin_to_first_cpu();
	into_simulator(run_ms, (void *)60);
	set_step(1);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(pthread_join(rival, NULL), 0);
	read_totals(recording);
	simulator = sum_of(recording, getpid(), NULL, NULL, RLS_CATEGORY_SIMULATOR);
	assert_ms(simulator.off_cpu_ns, 20, 10000);
	assert_ms(simulator.ns - simulator.off_cpu_ns, 58, 90);
}

/* A helper that waited in Python when the window closed is there still. */
static void who_waits_stays_where_it_was(void **state)
{
	struct recording *recording = *state;
	struct rls_wire_cell python, closed;
	pthread_t helper;
	uint64_t edge_ns;

	begin(recording);
	into_backend(nothing, NULL);
	assert_int_equal(pthread_barrier_init(&met, NULL, 2), 0);
	assert_int_equal(pthread_create(&helper, NULL, help, NULL), 0);
	pthread_barrier_wait(&met);
	wait_ms((void *)500); /* until it waits */
	read_totals(recording);
	python = sum_of(recording, getpid(), NULL, NULL, RLS_CATEGORY_PYTHON);
	rls_kernel_close_window(recording->kernel, &edge_ns);
	run_ms((void *)40);
	read_totals(recording);
	closed = sum_of(recording, getpid(), NULL, NULL, RLS_TOTALS_CLOSED);
	assert_ms(sum_of(recording, getpid(), NULL, NULL, RLS_CATEGORY_PYTHON).off_cpu_ns -
			  python.off_cpu_ns,
		  40, 10000);
	assert_ms(closed.ns - closed.off_cpu_ns, 35, 10000);
	pthread_barrier_wait(&met);
	assert_int_equal(pthread_join(helper, NULL), 0);
	assert_nothing_dropped(recording);
}

static void calls_and_burden_are_summed_up(void **state)
{
	struct recording *recording = *state;
	struct rls_wire_calls calls[100 + SITES];
	struct rls_hit_costs costs = {.event_ns = 100};
	uint64_t burden;

	recording->totals_mode = true;
	recording_open(recording, 0, 0);
	for (int i = 0; i < RLS_SITE_CLASS_MAX; i++)
		costs.ns[i][0] = costs.ns[i][1] = 1000;
	rls_kernel_set_costs(recording->kernel, &costs);
	recording_track(recording, 0, 0);
	recording_attach(recording);
	recording_start(recording);
	for (int i = 0; i < 10; i++)
		into_backend(nothing, NULL);
	into_backend(nothing, NULL);
	assert_int_equal(rls_kernel_site_calls(recording->kernel, calls, 100 + SITES), 0);
	assert_int_equal(calls[100 + SITE_BACKEND].calls, 11);
	assert_true(calls[100 + SITE_BACKEND].time_ns > 0);
	burden = rls_kernel_burden(recording->kernel)[RLS_BURDEN_OF((uint32_t)own_tid())];
	/* What the last hit costs is still to be added. */
	assert_in_range(burden, 21 * 1100, 22 * 1100 + 100);
}

/* Perf events take a second each to go. */
#define MULTI_WAY(test)                                                                            \
	{                                                                                          \
#test, test, recording_set_up, recording_tear_down, &multi_way                     \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH_WAYS(transitions_and_hits_are_counted_exactly),
		MULTI_WAY(time_is_reported_while_nothing_happens),
		BOTH_WAYS(edges_cut_time_where_they_were),
		MULTI_WAY(operations_begun_before_are_known),
		MULTI_WAY(time_after_an_unread_edge_waits),
		MULTI_WAY(time_after_the_first_edge_waits),
		MULTI_WAY(helpers_are_cut_at_the_edges_of_others),
		MULTI_WAY(children_go_on_in_their_parents_operation),
		MULTI_WAY(closed_time_is_in_no_category),
		MULTI_WAY(waiting_is_distinguished_from_running),
		MULTI_WAY(kept_from_running_is_reported_too),
		MULTI_WAY(who_waits_stays_where_it_was),
		MULTI_WAY(calls_and_burden_are_summed_up),
	};
	int impossible = recording_possible();

	return impossible ? impossible : cmocka_run_group_tests(tests, NULL, NULL);
}
