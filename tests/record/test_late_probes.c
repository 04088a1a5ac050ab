/* For how long libraries were there before their probes. What is reported goes to the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/record/late_probes.h"

#define MS 1000000ULL

static struct {
	unsigned int warnings;
	char last[256];
} world;

int __wrap_rls_event_output_warn(struct rls_event_output *output, uint64_t time_ns,
				 const char *format, ...) __attribute__((format(printf, 3, 4)));
int __wrap_rls_event_output_warn(struct rls_event_output *output, uint64_t time_ns,
				 const char *format, ...)
{
	va_list arguments;

	(void)output, (void)time_ns;
	world.warnings++;
	va_start(arguments, format);
	vsnprintf(world.last, sizeof(world.last), format, arguments);
	va_end(arguments);
	return 0;
}

/* Nothing is mapped meanwhile. */
static void scan(struct rls_target *target, bool probed, uint64_t now_ns)
{
	rls_late_probes_scanned(target, rls_late_probes_begin_scan(target), probed, now_ns);
}

/* A scan that began for another reason finds it. */
static void what_is_mapped_during_a_look_counts(void **state)
{
	struct rls_target target = {.pid = 7};
	uint64_t since_ns = rls_late_probes_begin_scan(&target);

	(void)state;
	target.mapped_ns = 100 * MS;
	rls_late_probes_scanned(&target, since_ns, true, 600 * MS);
	assert_int_equal(target.late_ns, 500 * MS);
	scan(&target, false, 601 * MS); /* the scan that the mapping asked for */
	assert_int_equal(target.late_ns, 500 * MS);
	assert_int_equal(target.mapped_ns, 0);
	target.mapped_ns = 700 * MS;
	since_ns = rls_late_probes_begin_scan(&target);
	target.mapped_ns = 750 * MS; /* not found by this scan */
	rls_late_probes_scanned(&target, since_ns, true, 800 * MS);
	scan(&target, true, 900 * MS);
	assert_int_equal(target.late_ns, 700 * MS);
}

static void times_of_a_process_are_summed(void **state)
{
	struct rls_late_probes late = {0};
	struct rls_target target = {.pid = 7, .mapped_ns = 100 * MS};

	(void)state;
	memset(&world, 0, sizeof(world));
	scan(&target, true, 150 * MS);
	scan(&target, true, 900 * MS); /* nothing was mapped in between */
	target.mapped_ns = 1000 * MS;
	scan(&target, false, 1400 * MS); /* others had it probed already */
	target.mapped_ns = 2000 * MS;
	scan(&target, true, 2070 * MS);
	assert_int_equal(rls_late_probes_ended(&late, &target, NULL, 1), 0);
	assert_string_equal(world.last,
			    "0.12 s of process 7 were not traced in full: libraries were "
			    "loaded, and their probes were not live yet");
	assert_int_equal(rls_late_probes_ended(&late, &target, NULL, 1), 0);
	assert_int_equal(world.warnings, 1);
}

static void what_is_short_is_not_reported(void **state)
{
	struct rls_late_probes late = {0};
	struct rls_target target = {.pid = 7, .mapped_ns = 100 * MS};

	(void)state;
	memset(&world, 0, sizeof(world));
	scan(&target, true, 104 * MS);
	assert_int_equal(rls_late_probes_ended(&late, &target, NULL, 1), 0);
	assert_int_equal(world.warnings, 0);
	target.execed_ns = 90 * MS; /* it is little of what the process lived */
	target.late_ns = 4 * MS;
	assert_int_equal(rls_late_probes_ended(&late, &target, NULL, 5000 * MS), 0);
	assert_int_equal(late.missed, 0);
	target.late_ns = 4 * MS; /* it is much */
	assert_int_equal(rls_late_probes_ended(&late, &target, NULL, 200 * MS), 0);
	assert_int_equal(late.missed, 1);
	assert_int_equal(late.missed_ns, 4 * MS);
	assert_int_equal(world.warnings, 0); /* that is for the end */
}

static void many_processes_are_one_warning(void **state)
{
	struct rls_late_probes late = {0};
	struct rls_targets targets = {0};

	(void)state;
	memset(&world, 0, sizeof(world));
	for (pid_t pid = 1; pid <= 100; pid++) {
		assert_int_equal(rls_targets_add(&targets, pid, false), 0);
		targets.all[targets.count - 1]->late_ns = 100 * MS;
	}
	assert_int_equal(rls_late_probes_finish(&late, &targets, NULL, 1), 0);
	assert_int_equal(world.warnings, 9);
	assert_string_equal(world.last,
			    "9.20 s of 92 more processes were not traced in full, for the "
			    "same reason");
	rls_targets_clear(&targets);
}

static void processes_that_nobody_looked_at_are_one_warning(void **state)
{
	struct rls_late_probes late = {0};
	struct rls_targets targets = {0};

	(void)state;
	memset(&world, 0, sizeof(world));
	rls_late_probes_missed(&late, 2 * MS);
	assert_int_equal(rls_late_probes_finish(&late, &targets, NULL, 1), 0);
	assert_string_equal(world.last, "1 process that ended had libraries before these were "
					"probed: 0.002 s were not traced");
	rls_late_probes_missed(&late, 1000 * MS);
	assert_int_equal(rls_late_probes_finish(&late, &targets, NULL, 1), 0);
	assert_string_equal(world.last, "2 processes that ended had libraries before these were "
					"probed: 1.002 s were not traced");
	assert_int_equal(world.warnings, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_mapped_during_a_look_counts),
		cmocka_unit_test(times_of_a_process_are_summed),
		cmocka_unit_test(what_is_short_is_not_reported),
		cmocka_unit_test(many_processes_are_one_warning),
		cmocka_unit_test(processes_that_nobody_looked_at_are_one_warning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
