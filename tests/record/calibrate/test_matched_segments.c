/* What hits cost, found from segments with and without probes: on made-up threads whose hits
 * cost a known multiple of what they are said to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "userspace/record/calibrate/matched_segments.h"

#define STRETCH_NS 300000000ULL
#define SAID_NS 700 /* a hit, by the calibration */
#define OTHER 100

struct job {
	double factor[2]; /* what hits cost in either kind of segment, of what they are said to */
	double noise; /* of a segment's length, relative */
	double drift; /* by how much of itself the machine gets slower in the whole time */
	double interrupted; /* share of segments during which it did not run for 5 ms */
	double bursts; /* share of stretches in which everything takes twice as long */
	bool loses; /* every 50th record */
	bool one_kind; /* one operation after the other, so one label */
	uint64_t length_ns;
	unsigned int seed;
};

struct thread {
	struct rls_matched_segments *segments;
	uint64_t now_ns, off_cpu_ns;
	uint32_t sequence, hits;
	bool loses, in_burst;
	double waits; /* share of pieces in which it waits for 1 ms; 0: 0.02 */
	bool reports_waits;
};

static double random_share(void)
{
	return (double)rand() / RAND_MAX;
}

static void record(struct thread *thread, uint16_t depth)
{
	const struct rls_wire_category event = {
		.header = {.tid = 5, .sequence = ++thread->sequence, .time_ns = thread->now_ns},
		.hit_totals = {.hits = thread->hits,
			       .cost_ns = thread->hits * SAID_NS,
			       .off_cpu_ns = thread->off_cpu_ns},
		.site = OTHER,
		.depth = depth,
	};

	thread->hits = 0;
	thread->off_cpu_ns = 0;
	if (!thread->loses || thread->sequence % 50)
		assert_int_equal(rls_matched_segments_add(thread->segments, &event), 0);
}

static void turn(struct thread *thread, rls_string_id operation)
{
	const struct rls_queued_edge edge = {.time_ns = thread->now_ns, .now = operation};

	assert_int_equal(rls_matched_segments_turned(thread->segments, 5, &edge), 0);
}

static void wait_reported(struct thread *thread, uint64_t until_ns, uint64_t away_ns)
{
	const struct rls_wire_off_cpu period = {
		.header = {.tid = 5, .time_ns = until_ns},
		.away_ns = away_ns,
	};

	assert_int_equal(rls_matched_segments_away(thread->segments, &period), 0);
}

enum { OPERATION_A = 7, OPERATION_B = 9 };

/* Work in an operation, with so many hits that the sites would have. */
static void work(struct thread *thread, const struct job *job, int operation, bool probed)
{
	uint32_t hits = operation == OPERATION_A ? 40 : 120;
	double slow = 1 + job->drift * (double)thread->now_ns / (double)job->length_ns;
	double burst = thread->in_burst ? 2 : 1;
	double ns = (operation == OPERATION_A ? 60000 : 200000) * (1 + job->noise * random_share());

	turn(thread, (rls_string_id)operation);
	if (probed) {
		thread->hits += hits;
		ns += hits * SAID_NS * job->factor[operation == OPERATION_B];
	}
	if (random_share() < job->interrupted) {
		thread->off_cpu_ns += 5000000;
		thread->now_ns += 5000000;
		wait_reported(thread, thread->now_ns, 5000000);
	}
	thread->now_ns += (uint64_t)(ns * slow * burst);
	if (probed) {
		record(thread, 1);
		record(thread, 0);
	}
}

static int run(const struct job *job, struct rls_delta_in_vivo *out)
{
	struct rls_matched_segments segments = {0};
	struct thread thread = {.segments = &segments, .now_ns = 1, .loses = job->loses};
	bool probed = false;
	int r;

	srand(job->seed);
	while (thread.now_ns < job->length_ns) {
		uint64_t since_ns = thread.now_ns;

		thread.in_burst = random_share() < job->bursts;
		while (thread.now_ns < since_ns + STRETCH_NS)
			work(&thread, job, job->one_kind || rand() % 2 ? OPERATION_A : OPERATION_B,
			     probed);
		rls_matched_segments_stretch(&segments, since_ns, thread.now_ns, probed);
		probed = !probed;
	}
	r = rls_matched_segments_conclude(&segments, out);
	rls_matched_segments_clear(&segments);
	return r;
}

static void finds_what_hits_cost(void **state)
{
	static const double factors[] = {0.6, 1, 1.7};
	unsigned int held = 0, count = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(factors) / sizeof(factors[0]); i++) {
		for (unsigned int seed = 1; seed <= 20; seed++) {
			struct job job = {{factors[i], factors[i]},
					  .noise = 0.3,
					  .drift = 0.2,
					  .interrupted = 0.02,
					  .length_ns = 12000000000,
					  .seed = seed};
			struct rls_delta_in_vivo found;
			double truth =
				factors[i] * 1.1; /* the machine is slower by the drift's half */

			assert_int_equal(run(&job, &found), 0);
			assert_true(fabs(found.factor / truth - 1) < 0.06);
			assert_true(found.error > 0 && found.error < 0.1 * truth);
			assert_true(found.deviation > 2 * found.error);
			assert_true(found.labels == 8 && found.segments > 10000);
			held += fabs(found.factor - truth) <= found.error;
			count++;
		}
	}
	/* A 95 % interval, on 60 samples; the truth drifts a little too. */
	assert_true(held >= count * 85 / 100);
}

/* Somebody else has the machine now and then: no more than a wider interval. */
static void bursts_do_not_spoil_it(void **state)
{
	struct job job = {{1.4, 1.4}, .noise = 0.2, .bursts = 0.06, .length_ns = 40000000000};
	unsigned int held = 0;

	(void)state;
	for (job.seed = 1; job.seed <= 20; job.seed++) {
		struct rls_delta_in_vivo found;

		assert_int_equal(run(&job, &found), 0);
		assert_true(fabs(found.factor / 1.4 - 1) < 0.15);
		held += fabs(found.factor - 1.4) <= found.error;
	}
	assert_true(held >= 17);
}

static void says_where_parts_differ(void **state)
{
	struct job job = {{1, 1}, .noise = 0.1, .length_ns = 20000000000, .seed = 3};
	struct rls_delta_in_vivo alike, unlike;

	(void)state;
	assert_int_equal(run(&job, &alike), 0);
	job.factor[1] = 1.5;
	assert_int_equal(run(&job, &unlike), 0);
	assert_true(alike.spread < 0.05);
	assert_true(unlike.factor > 1.3 && unlike.factor < 1.5);
	assert_true(unlike.spread > 0.2 && unlike.spread < 0.8);
}

/* ---- operations ---- */

enum { OUTSIDE, INFERENCE, UPDATE, SELDOM, ONCE, OPERATIONS };

static const double operation_factors[OPERATIONS] = {1.2, 1.4, 0.8, 1.1, 3};

/* So many hits, if all are probed, amid so much work; waits for a moment now and then. */
static void hit(struct thread *thread, int operation, double work_ns, uint32_t hits, bool probed)
{
	double ns = work_ns * (1 + 0.2 * random_share());

	if (probed) {
		thread->hits += hits;
		ns += hits * SAID_NS * operation_factors[operation];
	}
	if (random_share() < (thread->waits > 0 ? thread->waits : 0.02)) {
		thread->off_cpu_ns += 1000000;
		ns += 1000000;
		if (thread->reports_waits)
			wait_reported(thread, thread->now_ns + 1000000, 1000000);
	}
	thread->now_ns += (uint64_t)ns;
	if (probed) {
		record(thread, 1);
		record(thread, 0);
	}
}

/* One step of a job with operations. */
static void step(struct thread *thread, size_t number, bool probed)
{
	static const struct {
		int operation;
		double work_ns;
		uint32_t hits;
		size_t every, until;
	} does[] = {
		{INFERENCE, 100000, 120, 1, SIZE_MAX},
		{UPDATE, 300000, 200, 2, SIZE_MAX},
		{SELDOM, 15000000, 9000, 400, SIZE_MAX},
		{ONCE, 500000, 300, 1, 2},
	};

	hit(thread, OUTSIDE, 40000, 20, probed);
	for (size_t i = 0; i < sizeof(does) / sizeof(does[0]); i++) {
		if (number % does[i].every || number >= does[i].until)
			continue;
		turn(thread, (rls_string_id)does[i].operation);
		hit(thread, does[i].operation, does[i].work_ns, does[i].hits, probed);
		turn(thread, 0);
	}
}

/* Piece after piece, in stretches without and with probes by turns. */
static void run_pieces(struct thread *thread, unsigned int seed, uint64_t until_ns,
		       void (*piece)(struct thread *thread, size_t number, bool probed))
{
	bool probed = false;
	size_t number = 0;

	srand(seed);
	while (thread->now_ns < until_ns) {
		uint64_t since_ns = thread->now_ns;

		while (thread->now_ns < since_ns + STRETCH_NS)
			piece(thread, number++, probed);
		rls_matched_segments_stretch(thread->segments, since_ns, thread->now_ns, probed);
		probed = !probed;
	}
}

/* What is found in a job of such pieces, a thread that begins as this one. */
static void find_in_pieces(struct thread thread, unsigned int seed, uint64_t until_ns,
			   void (*piece)(struct thread *thread, size_t number, bool probed),
			   struct rls_delta_in_vivo *out)
{
	struct rls_matched_segments segments = {0};

	thread.segments = &segments;
	thread.now_ns = 1;
	run_pieces(&thread, seed, until_ns, piece);
	assert_int_equal(rls_matched_segments_conclude(&segments, out), 0);
	rls_matched_segments_clear(&segments);
}

static const struct rls_part_cost *find_part(const struct rls_delta_in_vivo *found,
					     rls_string_id id)
{
	for (size_t i = 0; i < found->part_count; i++) {
		if (found->parts[i].operation == id)
			return &found->parts[i];
	}
	return NULL;
}

/* A range's hit tells that the operation changes. */
static void turn_by_hit(struct thread *thread, rls_string_id operation)
{
	struct rls_queued_edge edge = {.now = operation, .hit = true};

	edge.time_ns = thread->now_ns += SAID_NS / 2;
	assert_int_equal(rls_matched_segments_turned(thread->segments, 5, &edge), 0);
	thread->now_ns += SAID_NS / 2;
	thread->hits++;
}

static void two_ranges(struct thread *thread, size_t number, bool probed)
{
	(void)number;
	turn_by_hit(thread, INFERENCE);
	hit(thread, INFERENCE, 100000, 50, probed);
	turn_by_hit(thread, UPDATE);
	hit(thread, UPDATE, 100000, 50, probed);
}

/* Their hits are on both sides. */
static void hits_of_ranges_are_no_difference(void **state)
{
	struct rls_delta_in_vivo found;

	(void)state;
	find_in_pieces((struct thread){.waits = 1e-9}, 14, 15000000000, two_ranges, &found);
	assert_true(fabs(find_part(&found, INFERENCE)->factor - 1.4) < 0.03);
	assert_true(fabs(find_part(&found, UPDATE)->factor - 0.8) < 0.03);
}

/* Also of one that is seldom, beside many others; what was never compared is not reported. */
static void finds_what_hits_cost_in_operations(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 5; seed++) {
		struct rls_delta_in_vivo found;

		find_in_pieces((struct thread){.reports_waits = true}, seed, 25000000000, step,
			       &found);
		for (rls_string_id id = OUTSIDE; id <= SELDOM; id++) {
			const struct rls_part_cost *part = find_part(&found, id);

			assert_non_null(part);
			assert_true(fabs(part->factor - operation_factors[id]) <
				    (id == SELDOM ? 0.1 : 0.04));
			assert_true(part->error > 0 && part->error < 0.2);
			assert_true(fabs(part->factor - operation_factors[id]) < part->error);
		}
		assert_null(find_part(&found, ONCE));
		assert_true(found.factor > 1 && found.factor < 1.2);
	}
}

static int run_waiting(double waits, bool tells, struct rls_delta_in_vivo *out)
{
	struct rls_matched_segments segments = {0};
	struct thread thread = {
		.segments = &segments, .now_ns = 1, .waits = waits, .reports_waits = tells};
	int r;

	run_pieces(&thread, 12, 20000000000, step);
	r = rls_matched_segments_conclude(&segments, out);
	rls_matched_segments_clear(&segments);
	return r;
}

/* A job that waits all the time is compared only if the waits are reported. */
static void bears_waits_that_are_reported(void **state)
{
	static const struct {
		double waits;
		bool tells;
	} jobs[] = {{0.001, false}, {0.1, true}, {0.9, true}};
	struct rls_delta_in_vivo found;

	(void)state;
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		assert_int_equal(run_waiting(jobs[i].waits, jobs[i].tells, &found), 0);
		for (rls_string_id id = OUTSIDE; id <= UPDATE; id++)
			assert_true(fabs(find_part(&found, id)->factor - operation_factors[id]) <
				    0.05);
	}
	assert_int_equal(run_waiting(0.1, false, &found), -ENODATA);
}

static void two_pieces_with_hits_and_one_without(struct thread *thread, size_t number, bool probed)
{
	(void)number;
	turn(thread, INFERENCE);
	hit(thread, INFERENCE, 100000, 120, probed);
	turn(thread, UPDATE);
	hit(thread, UPDATE, 100000, 120, probed);
	turn(thread, SELDOM);
	hit(thread, OUTSIDE, probed ? 96000 : 80000, 0, probed);
}

/* Pieces without hits take a fifth longer amid others', which pay for them: they have no factor of their own. */
static void pieces_without_hits_have_no_factor(void **state)
{
	const double pollution_ns = 1.1 * 16000; /* as work is by a tenth more, in the mean */
	struct rls_delta_in_vivo found;

	(void)state;
	find_in_pieces((struct thread){.waits = 1e-9}, 13, 15000000000,
		       two_pieces_with_hits_and_one_without, &found);
	assert_true(fabs(found.factor - (1.4 + 0.8) / 2 - pollution_ns / (240 * SAID_NS)) < 0.04);
	assert_true(find_part(&found, INFERENCE)->factor > find_part(&found, UPDATE)->factor + 0.4);
	assert_null(find_part(&found, SELDOM));
	assert_true(found.spread < 0.8);
}

/* Where there is one operation its factor is the whole's. */
static void tells_of_no_parts_where_there_is_one(void **state)
{
	struct job job = {
		{1, 1.5}, .noise = 0.1, .one_kind = true, .length_ns = 10000000000, .seed = 8};
	struct rls_delta_in_vivo found;

	(void)state;
	assert_int_equal(run(&job, &found), 0);
	assert_int_equal(found.part_count, 0);
}

static void many_operations(struct thread *thread, size_t number, bool probed)
{
	(void)number;
	for (rls_string_id id = 1; id < 3 * RLS_PARTS_MAX; id++) {
		turn(thread, id);
		hit(thread, OUTSIDE, 20000, 20, probed);
	}
	step(thread, 3, probed);
}

/* More operations than are distinguished: those that are have their own, the whole is right. */
static void bears_any_number_of_operations(void **state)
{
	struct rls_delta_in_vivo found;

	(void)state;
	find_in_pieces((struct thread){.reports_waits = true}, 11, 8000000000, many_operations,
		       &found);
	assert_true(found.part_count >= RLS_PARTS_MAX - 3 && found.part_count < RLS_PARTS_MAX);
	assert_true(fabs(find_part(&found, 7)->factor / 1.2 - 1) < 0.1);
	assert_true(fabs(found.factor / 1.2 - 1) < 0.1);
}

/* One label is no sign that all parts are alike. */
static void one_label_tells_of_no_spread(void **state)
{
	struct job job = {
		{1.4, 1}, .noise = 0.1, .one_kind = true, .length_ns = 10000000000, .seed = 6};
	struct rls_delta_in_vivo found;

	(void)state;
	assert_int_equal(run(&job, &found), 0);
	assert_int_equal(found.labels, 1);
	assert_true(fabs(found.factor / 1.4 - 1) < 0.03);
	assert_true(fabs(found.spread / found.factor - 0.1) < 1e-9);
}

static void leaves_out_what_has_lost_records(void **state)
{
	struct job job = {
		{1.4, 1.4}, .noise = 0.2, .loses = true, .length_ns = 20000000000, .seed = 4};
	struct rls_delta_in_vivo found;

	(void)state;
	assert_int_equal(run(&job, &found), 0);
	assert_true(fabs(found.factor / 1.4 - 1) < 0.05);
}

static void wants_enough_to_compare(void **state)
{
	struct job job = {{1, 1}, .length_ns = 3000000000, .seed = 5};
	struct rls_matched_segments none = {0};
	struct rls_delta_in_vivo found;

	(void)state;
	assert_int_equal(run(&job, &found), -ENODATA);
	assert_int_equal(rls_matched_segments_conclude(&none, &found), -ENODATA);
	rls_matched_segments_clear(&none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_hits_cost),
		cmocka_unit_test(bursts_do_not_spoil_it),
		cmocka_unit_test(says_where_parts_differ),
		cmocka_unit_test(finds_what_hits_cost_in_operations),
		cmocka_unit_test(bears_waits_that_are_reported),
		cmocka_unit_test(pieces_without_hits_have_no_factor),
		cmocka_unit_test(hits_of_ranges_are_no_difference),
		cmocka_unit_test(tells_of_no_parts_where_there_is_one),
		cmocka_unit_test(bears_any_number_of_operations),
		cmocka_unit_test(one_label_tells_of_no_spread),
		cmocka_unit_test(leaves_out_what_has_lost_records),
		cmocka_unit_test(wants_enough_to_compare),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
