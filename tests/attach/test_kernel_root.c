/* The kernel side's state machine, by real probes on this program's own functions. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/wire/maps.h"
#include "bpf/wire/record.h"
#include "probed.h"
#include "recording.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/attach/kernel/kernel_sites.h"

/* ---- bodies that call on ---- */

static void call_simulator(void *context)
{
	into_simulator(nothing, NULL);
}

static void call_python_that_simulates(void *context)
{
	into_python(call_simulator, NULL);
}

static void assert_no_drops(const struct recording *recording)
{
	for (int which = 0; which < RLS_DROP_MAX; which++)
		assert_int_equal(recording_dropped(recording, (enum rls_drop_counter)which), 0);
}

/* Numbers without a gap, times that never go back. */
static void assert_in_order(const struct recording *recording, pid_t tid)
{
	uint32_t sequence = 0;
	uint64_t time_ns = 0;

	for (size_t i = 0; i < recording->transition_count; i++) {
		const struct rls_wire_header *header = &recording->transitions[i].header;

		if (header->tid != (uint32_t)tid)
			continue;
		assert_int_equal(header->sequence, ++sequence);
		assert_true(header->time_ns >= time_ns);
		time_ns = header->time_ns;
	}
}

/* ---- nesting ---- */

static void nested_changes_come_in_order(void **state)
{
	struct recording *recording = *state;
	const union control_record *thread;
	pid_t tid = own_tid();

	recording_begin(recording, 0);
	into_backend(call_python_that_simulates, NULL);
	into_backend(nothing, NULL);
	recording_stop(recording);

	assert_string_equal(recording_path(recording, tid), "?>P P>B B>P P>S S>P P>B B>P P>B B>P");
	assert_in_order(recording, tid);
	assert_int_equal(recording_hits(recording, tid), 8);
	assert_int_equal(recording->transitions[1].site, 100 + SITE_BACKEND);
	assert_int_equal(recording->transitions[1].depth, 1);
	assert_int_equal(recording->transitions[3].site, 100 + SITE_SIMULATOR);
	assert_int_equal(recording->transitions[3].depth, 3);
	assert_int_equal(recording->transitions[6].depth, 0);
	assert_int_equal(recording_controls(recording, RLS_WIRE_THREAD, 0), 1);
	thread = recording_control(recording, RLS_WIRE_THREAD, getpid(), 0);
	assert_int_equal(thread->header.tid, tid);
	assert_true(thread->header.time_ns <= recording->transitions[0].header.time_ns);
	assert_int_equal(strncmp(thread->thread.comm, "test_kernel_root", 15), 0);
	assert_int_equal(recording_controls(recording, RLS_WIRE_FINAL, getpid()), 1);
	assert_no_drops(recording);
}

static void call_backend_silently(void *context)
{
	for (int i = 0; i < 1000; i++)
		into_backend(nothing, NULL);
}

static void silent_hits_are_counted(void **state)
{
	struct recording *recording = *state;
	pid_t tid = own_tid();

	recording_begin(recording, 0);
	into_backend(call_backend_silently, NULL);
	into_python(nothing, NULL); /* silent at the end too */
	recording_stop(recording);
	assert_string_equal(recording_path(recording, tid), "?>P P>B B>P");
	assert_int_equal(recording->transitions[2].hit_totals.hits, 2001);
	assert_int_equal(recording_hits(recording, tid), 2004);
}

struct recursion {
	int depth;
};

/* Backend on odd levels, Python on even ones. */
static void recurse(void *context)
{
	struct recursion *recursion = context;

	if (recursion->depth == 100)
		return;
	recursion->depth++;
	if (recursion->depth % 2)
		into_backend(recurse, recursion);
	else
		into_python(recurse, recursion);
}

/* The kernel sets 64 return probes on a thread at most: deeper ends are found by the stack. */
static void recursion_beyond_the_pending_return_probes(void **state)
{
	struct recording *recording = *state;
	pid_t tid = own_tid();

	recording_begin(recording, 0);
	for (int round = 0; round < 3; round++) {
		struct recursion recursion = {0};

		recurse(&recursion);
	}
	recording_stop(recording);
	assert_int_equal(recording_transitions(recording, tid), 1 + 3 * 200);
	assert_in_order(recording, tid);
	for (size_t i = 1; i < recording->transition_count; i++) {
		const struct rls_wire_category *transition = &recording->transitions[i];
		size_t step = (i - 1) % 200; /* 100 in, 100 out */
		size_t depth = step < 100 ? step + 1 : 199 - step;

		assert_int_equal(transition->depth, depth);
		assert_int_equal(transition->category,
				 depth % 2 ? RLS_CATEGORY_BACKEND : RLS_CATEGORY_PYTHON);
		assert_int_equal(transition->from,
				 depth % 2 ? RLS_CATEGORY_PYTHON : RLS_CATEGORY_BACKEND);
	}
	assert_no_drops(recording);
}

/* ---- ends that no probe sees ---- */

static jmp_buf way_out;

static void jump_out(void *context)
{
	longjmp(way_out, 1);
}

static void simulate_and_jump_out(void *context)
{
	into_simulator(jump_out, NULL);
}

static void call_python_that_jumps_out(void *context)
{
	into_python(simulate_and_jump_out, NULL);
}

static void assert_path_repeats(const struct recording *recording, const char *first,
				const char *repeated, int times, const char *last)
{
	char *expected =
		malloc(strlen(first) + (size_t)times * (strlen(repeated) + 1) + strlen(last) + 2);

	assert_non_null(expected);
	strcpy(expected, first);
	for (int i = 0; i < times; i++)
		strcat(strcat(expected, " "), repeated);
	strcat(strcat(expected, " "), last);
	assert_string_equal(recording_path(recording, own_tid()), expected);
	free(expected);
}

static void jumps_out_of_a_function_with_no_return_probe(void **state)
{
	struct recording *recording = *state;

	recording_begin(recording, 0);
	for (volatile int i = 0; i < 50; i++) {
		if (!setjmp(way_out))
			into_unseen(jump_out, NULL);
	}
	into_simulator(nothing, NULL);
	recording_stop(recording);
	assert_path_repeats(recording, "?>P P>B", "B>P P>B", 49, "B>P P>S S>P");
}

/* Each call comes with the return slot of the one before, as a tail jump would. */
static void jumps_out_of_a_function_with_a_pending_return_probe(void **state)
{
	struct recording *recording = *state;

	recording_begin(recording, 0);
	for (volatile int i = 0; i < 50; i++) {
		if (!setjmp(way_out))
			into_backend(jump_out, NULL);
	}
	into_simulator(nothing, NULL);
	recording_stop(recording);
	assert_path_repeats(recording, "?>P P>B", "B>P P>B", 49, "B>P P>S S>P");
}

static void jumps_out_of_functions_with_pending_return_probes(void **state)
{
	struct recording *recording = *state;

	recording_begin(recording, 0);
	for (volatile int i = 0; i < 50; i++) {
		if (!setjmp(way_out))
			into_backend(call_python_that_jumps_out, NULL);
	}
	into_simulator(nothing, NULL);
	recording_stop(recording);
	assert_path_repeats(recording, "?>P P>B B>P P>S", "S>P P>B B>P P>B B>P P>S", 49,
			    "S>P P>B B>P P>S S>P");
}

static void a_tail_jump_is_one_call(void **state)
{
	struct recording *recording = *state;

	recording_begin(recording, 0);
	for (int i = 0; i < 3; i++)
		into_jump(nothing, NULL);
	into_backend(nothing, NULL);
	recording_stop(recording);
	assert_string_equal(recording_path(recording, own_tid()),
			    "?>P P>B B>S S>P P>B B>S S>P P>B B>S S>P P>B B>P");
	assert_int_equal(recording_hits(recording, own_tid()), 3 * 4 + 2);
}

/* ---- time off the CPU ---- */

#define SLEEP_NS 500000000ULL /* longer than anyone waits for a CPU */

static void sleep_a_while(void *context)
{
	const struct timespec while_ = {.tv_nsec = SLEEP_NS};

	assert_int_equal(nanosleep(&while_, NULL), 0);
}

static void sleeping_is_time_off_the_cpu(void **state)
{
	struct recording *recording = *state;
	const struct rls_wire_category *entry, *exit;

	recording_begin(recording, 0);
	into_backend(sleep_a_while, NULL);
	recording_stop(recording);
	assert_string_equal(recording_path(recording, own_tid()), "?>P P>B B>P");
	entry = &recording->transitions[1];
	exit = &recording->transitions[2];
	/* The thread leaves the CPU some microseconds after it asked to sleep. */
	assert_in_range(exit->hit_totals.off_cpu_ns, SLEEP_NS - 1000000,
			exit->header.time_ns - entry->header.time_ns);
	assert_true(entry->hit_totals.off_cpu_ns < SLEEP_NS);
}

static void nobody_is_off_the_cpu_during_a_pause(void **state)
{
	struct recording *recording = *state;
	uint64_t off_cpu_ns = 0;

	recording_begin(recording, 0);
	into_backend(nothing, NULL);
	rls_kernel_pause(recording->kernel);
	sleep_a_while(NULL);
	recording_start(recording);
	into_backend(nothing, NULL);
	recording_stop(recording);
	assert_string_equal(recording_path(recording, own_tid()), "?>P P>B B>P P>B B>P");
	for (size_t i = 0; i < recording->transition_count; i++)
		off_cpu_ns += recording->transitions[i].hit_totals.off_cpu_ns;
	assert_true(off_cpu_ns < SLEEP_NS);
}

/* ---- many threads ---- */

#define THREADS 8
#define CALLS 10000

static void *call_often(void *tid_out)
{
	*(pid_t *)tid_out = own_tid();
	for (int i = 0; i < CALLS; i++)
		into_backend(nothing, NULL);
	return NULL;
}

/* Its threads, and two. */
static nlink_t count_tasks(void)
{
	struct stat tasks;

	assert_int_equal(stat("/proc/self/task", &tasks), 0);
	return tasks.st_nlink;
}

/* Joined is a moment before ended. */
static void wait_for_ends(nlink_t before)
{
	for (int i = 0; i < 60000 && count_tasks() > before; i++)
		usleep(1000);
}

static size_t announced(const struct recording *recording, pid_t tid)
{
	const union control_record *control;
	size_t count = 0;

	for (size_t i = 0; (control = recording_control(recording, RLS_WIRE_THREAD, getpid(), i));
	     i++)
		count += control->header.tid == (uint32_t)tid;
	return count;
}

static void each_thread_is_counted_exactly(void **state)
{
	struct recording *recording = *state;
	pthread_t threads[THREADS];
	pid_t tids[THREADS];
	nlink_t before;

	recording_begin(recording, 0);
	before = count_tasks();
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, call_often, &tids[i]), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	wait_for_ends(before);
	recording_stop(recording);
	assert_no_drops(recording);
	assert_int_equal(recording->transition_count, THREADS * (1 + 2 * CALLS));
	/* The first thread enters no probed function; it is announced when it runs and waits. */
	assert_int_equal(recording_controls(recording, RLS_WIRE_THREAD, getpid()), THREADS + 1);
	assert_int_equal(announced(recording, getpid()), 1);
	assert_int_equal(recording_controls(recording, RLS_WIRE_THREAD_EXIT, getpid()), THREADS);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(announced(recording, tids[i]), 1);
		assert_int_equal(recording_transitions(recording, tids[i]), 1 + 2 * CALLS);
		assert_int_equal(recording_hits(recording, tids[i]), 2 * CALLS);
		assert_in_order(recording, tids[i]);
	}
}

/* ---- going live, pausing, going away ---- */

static void nothing_is_counted_before_start_and_in_pauses(void **state)
{
	struct recording *recording = *state;

	recording_open(recording, 0, 0);
	recording_track(recording, 0, 0);
	recording_attach(recording);
	into_backend(nothing, NULL);
	recording_start(recording);
	into_backend(nothing, NULL);
	rls_kernel_pause(recording->kernel);
	into_backend(nothing, NULL);
	into_simulator(nothing, NULL);
	recording_start(recording);
	into_simulator(nothing, NULL);
	recording_stop(recording);
	into_backend(nothing, NULL);
	recording_consume(recording);
	assert_string_equal(recording_path(recording, own_tid()), "?>P P>B B>P P>S S>P");
	assert_int_equal(recording_hits(recording, own_tid()), 4);
}

static void an_untracked_process_is_not_seen(void **state)
{
	struct recording *recording = *state;

	recording_open(recording, 0, 0);
	recording_attach(recording);
	recording_start(recording);
	into_backend(nothing, NULL);
	recording_stop(recording);
	assert_int_equal(recording->transition_count + recording->control_count, 0);
	assert_false(rls_kernel_is_tracked(recording->kernel, getpid()));
}

static void attach_one(struct recording *recording, enum probed_site which)
{
	struct rls_site sites[SITES];
	size_t attached;

	assert_int_equal(probed_sites(sites), 0);
	assert_int_equal(rls_kernel_attach_sites(recording->kernel, "/proc/self/exe", &sites[which],
						 1, 100 + which, &attached),
			 0);
	assert_int_equal(attached, 1);
}

static void detaching_since_a_mark_leaves_the_rest(void **state)
{
	struct recording *recording = *state;
	size_t mark;

	recording_open(recording, 0, 0);
	recording_track(recording, 0, 0);
	attach_one(recording, SITE_BACKEND);
	mark = rls_kernel_mark(recording->kernel);
	attach_one(recording, SITE_SIMULATOR);
	recording_start(recording);
	into_backend(call_simulator, NULL);
	rls_kernel_detach_since(recording->kernel, mark);
	assert_int_equal(rls_kernel_mark(recording->kernel), mark);
	recording_wait_unprobed(SITE_SIMULATOR);
	into_backend(call_simulator, NULL);
	recording_stop(recording);
	assert_string_equal(recording_path(recording, own_tid()), "?>P P>B B>S S>B B>P P>B B>P");
	assert_int_equal(recording_hits(recording, own_tid()), 6);
}

static void read_code(enum probed_site site, uint8_t bytes[8])
{
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, bytes, 8, (off_t)(uintptr_t)probed_address(site)), 8);
	close(fd);
}

static void closing_leaves_no_probe(void **state)
{
	struct recording *recording = *state;
	uint8_t before[SITES][8], live[8], after[8];

	for (int i = 0; i < SITES; i++)
		read_code((enum probed_site)i, before[i]);
	recording_begin(recording, 0);
	into_backend(call_python_that_simulates, NULL);
	for (int i = 0; i < SITES; i++) {
		read_code((enum probed_site)i, live);
		assert_memory_not_equal(live, before[i], 1);
	}
	recording_stop(recording);
	recording_close(recording);
	recording_wait_unprobed(SITES);
	for (int i = 0; i < SITES; i++) {
		read_code((enum probed_site)i, after);
		assert_memory_equal(after, before[i], 8);
	}
	into_backend(call_python_that_simulates, NULL);
}

static void a_site_that_cannot_be_is_left_out(void **state)
{
	struct recording *recording = *state;
	struct rls_site sites[3];
	struct rls_site all[SITES];
	size_t attached;

	recording_open(recording, 0, 0);
	recording_track(recording, 0, 0);
	assert_int_equal(probed_sites(all), 0);
	sites[0] = all[SITE_BACKEND];
	sites[1] = all[SITE_SIMULATOR];
	sites[1].file_offset = 1ULL << 40; /* beyond the file */
	sites[2] = all[SITE_PYTHON];
	assert_int_equal(rls_kernel_attach_sites(recording->kernel, "/proc/self/exe", sites, 3, 100,
						 &attached),
			 0);
	assert_int_equal(attached, 2);
	recording_start(recording);
	into_backend(call_python_that_simulates, NULL);
	recording_stop(recording);
	assert_string_equal(recording_path(recording, own_tid()), "?>P P>B B>P P>B B>P");
	assert_true(rls_kernel_attach_sites(recording->kernel, "/proc/self/exe", &sites[1], 1, 100,
					    &attached) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH_WAYS(nested_changes_come_in_order),
		BOTH_WAYS(silent_hits_are_counted),
		BOTH_WAYS(recursion_beyond_the_pending_return_probes),
		BOTH_WAYS(jumps_out_of_a_function_with_no_return_probe),
		BOTH_WAYS(jumps_out_of_a_function_with_a_pending_return_probe),
		BOTH_WAYS(jumps_out_of_functions_with_pending_return_probes),
		BOTH_WAYS(a_tail_jump_is_one_call),
		BOTH_WAYS(sleeping_is_time_off_the_cpu),
		BOTH_WAYS(nobody_is_off_the_cpu_during_a_pause),
		BOTH_WAYS(each_thread_is_counted_exactly),
		BOTH_WAYS(nothing_is_counted_before_start_and_in_pauses),
		BOTH_WAYS(an_untracked_process_is_not_seen),
		BOTH_WAYS(detaching_since_a_mark_leaves_the_rest),
		BOTH_WAYS(closing_leaves_no_probe),
		BOTH_WAYS(a_site_that_cannot_be_is_left_out),
	};
	int skipped = recording_possible();

	return skipped ? skipped : cmocka_run_group_tests(tests, NULL, NULL);
}
