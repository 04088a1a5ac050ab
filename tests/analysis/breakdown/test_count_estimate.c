/* Estimated counts against the truth, over a thousand simulated recordings of jobs of known shapes: the stated interval
 * holds where a count is given, and steady jobs are given one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/estimate/count_estimate.h"
#include "analysis/event/category.h"

#define MS 1e6
#define S 1e9
#define UNITS_MAX 4096
#define PIECE_NS (20 * MS)
#define CLOSED_MAX 1024
#define SAMPLES_PER_S 99.0
/* What hits cost, as a share of the time without them, and what of that the correction is off by at most. */
#define COST_SHARE_MAX 0.8
#define CORRECTION_OFF 0.5
/* As reports have it: an error above this share of the count is no figure. */
#define KNOWN_SHARE 0.5

/* ---- jobs ---- */

struct random {
	uint64_t state;
};

static double draw(struct random *random, double least, double most)
{
	random->state = random->state * 6364136223846793005ULL + 1442695040888963407ULL;
	return least + (most - least) * (double)(random->state >> 11) / 9007199254740992.0;
}

/* What a job does from now on: a visit of the operation, and what is between it and the next. */
struct visit {
	double calls, run_ns, gap_ns;
	double call_ns; /* of run_ns, each call */
};

struct job {
	struct random random;
	double duration_ns;
	double burst_ns, burst_end_ns, next_burst_ns; /* 0: none */
};

typedef struct visit shape_t(struct job *job, double time_ns);

static struct visit work(double calls, double call_ns, double own_ns, double gap_ns)
{
	return (struct visit){round(calls), own_ns + round(calls) * call_ns, gap_ns, call_ns};
}

static bool in_burst(struct job *job, double time_ns, double share)
{
	if (time_ns >= job->next_burst_ns) {
		job->burst_end_ns = time_ns + job->burst_ns * draw(&job->random, 0.7, 1.3);
		job->next_burst_ns = job->burst_end_ns + job->burst_ns * (1 - share) / share *
								 draw(&job->random, 0.5, 1.5);
	}
	return time_ns < job->burst_end_ns;
}

static struct visit steady(struct job *job, double time_ns)
{
	(void)time_ns;
	return work(5, 20000, draw(&job->random, 3e5, 5e5), 1 * MS);
}

static struct visit varied(struct job *job, double time_ns)
{
	(void)time_ns;
	return work(draw(&job->random, 2, 12), 30000, draw(&job->random, 1e5, 5e5), 5e5);
}

static struct visit periodic(struct job *job, double time_ns)
{
	return work(fmod(time_ns, 200 * MS) < 100 * MS ? 4 : 16, 40000,
		    draw(&job->random, 1e5, 2e5), 5e5);
}

static struct visit drifting(struct job *job, double time_ns)
{
	return work(4 + 6 * time_ns / job->duration_ns + draw(&job->random, 0, 1), 40000, 1e5, 5e5);
}

static struct visit starting_up(struct job *job, double time_ns)
{
	return work(time_ns < 0.3 * S ? 20 : 6, 40000, draw(&job->random, 5e4, 1e5), 5e5);
}

static struct visit bursts(struct job *job, double time_ns)
{
	return work(in_burst(job, time_ns, 0.25) ? 40 : 4, 30000, draw(&job->random, 5e4, 1e5),
		    5e5);
}

static struct visit seldom_bursts(struct job *job, double time_ns)
{
	return work(in_burst(job, time_ns, 0.08) ? 30 : 6, 40000, 1e5, 5e5);
}

/* Rollouts of many short calls and updates of one long one, each in an operation of its own. */
static struct visit phases(struct job *job, double time_ns)
{
	(void)time_ns;
	return work(draw(&job->random, 28000, 32000), 5000, 150 * MS, 300 * MS);
}

/* No operation but one, which does not end: all is known by time. */
static struct visit no_operations(struct job *job, double time_ns)
{
	bool burst = in_burst(job, time_ns, 0.3);

	return (struct visit){burst ? 400 : 40, 10 * MS, 0, 20000};
}

/* Not looked at while the estimate was made. */
static struct visit held_out_steps(struct job *job, double time_ns)
{
	return work(time_ns < job->duration_ns * 0.6 ? 8 : 3, 60000, draw(&job->random, 5e4, 3e5),
		    draw(&job->random, 1e5, 1e6));
}

static struct visit held_out_mixture(struct job *job, double time_ns)
{
	bool heavy = draw(&job->random, 0, 1) < 0.1, burst = in_burst(job, time_ns, 0.5);

	return work(heavy   ? 50
		    : burst ? 9
			    : 5,
		    25000, draw(&job->random, 2e4, 2e5), draw(&job->random, 1e5, 5e5));
}

/* Bursts of calls that take hardly any time, so that only windows can find them. */
static struct visit held_out_short_calls(struct job *job, double time_ns)
{
	return work(in_burst(job, time_ns, 0.25) ? 50 : 5, 500, draw(&job->random, 4e5, 6e5), 5e5);
}

/* Phases of a second in which the same calls take three times as long. */
static struct visit held_out_slow_calls(struct job *job, double time_ns)
{
	return work(7, fmod(time_ns, 2 * S) < S ? 20000 : 60000, 2e5, draw(&job->random, 0, 1e6));
}

/* Training steps of some 25 ms, of which few are traced. */
static struct visit held_out_steps_of_training(struct job *job, double time_ns)
{
	(void)time_ns;
	return work(draw(&job->random, 55, 65), 300000, draw(&job->random, 6 * MS, 8 * MS), 5 * MS);
}

/* The same, longer ones in phases. */
static struct visit held_out_steps_in_bursts(struct job *job, double time_ns)
{
	return work(in_burst(job, time_ns, 0.3) ? 90 : 30, 300000,
		    draw(&job->random, 3 * MS, 6 * MS), 5 * MS);
}

/* ---- a recording ---- */

struct unit {
	double begin_ns, end_ns;
	double calls, visits, run_ns;
	bool first;
};

struct recording {
	struct unit units[UNITS_MAX];
	size_t count;
	double calls, visits, run_ns, call_ns; /* of all of the time */
	double traced_calls, traced_call_ns;
	struct {
		double run_ns, visits;
	} closed[CLOSED_MAX];
};

/* A first stretch, and windows at random instants, which have so much of the rest. */
static void lay_windows(struct recording *out, struct random *random, double duration_ns)
{
	double first_ns = draw(random, 0.3, 1) * S, time_ns = 0;
	double apart_ns = draw(random, 0.5, 3) * S;

	for (; time_ns < first_ns; time_ns += PIECE_NS)
		out->units[out->count++] = (struct unit){
			.begin_ns = time_ns, .end_ns = time_ns + PIECE_NS, .first = true};
	while (out->count < UNITS_MAX) {
		double length_ns = draw(random, 10, 90) * MS;

		time_ns += -log(draw(random, 1e-9, 1)) * apart_ns;
		if (time_ns + length_ns > duration_ns)
			break;
		out->units[out->count++] =
			(struct unit){.begin_ns = time_ns, .end_ns = time_ns + length_ns};
		time_ns += length_ns;
	}
}

static struct unit *unit_at(struct recording *recording, size_t *place, double time_ns)
{
	while (*place < recording->count && recording->units[*place].end_ns <= time_ns)
		++*place;
	return *place < recording->count && recording->units[*place].begin_ns <= time_ns
		       ? &recording->units[*place]
		       : NULL;
}

static void run_visit(struct recording *out, size_t *place, const struct visit *visit,
		      double time_ns, bool entered)
{
	struct unit *unit = unit_at(out, place, time_ns);
	size_t parts = (size_t)fmax(visit->calls, 1), overlap = *place;

	if (unit && entered)
		unit->visits++;
	if (!unit) {
		size_t piece = (size_t)(time_ns / (double)RLS_CLOSED_PIECE_NS);

		out->closed[piece].visits += entered;
		out->closed[piece].run_ns += visit->run_ns;
	}
	out->visits += entered;
	for (size_t i = 0; i < parts && visit->calls > 0; i++) {
		unit = unit_at(out, place,
			       time_ns + visit->run_ns * ((double)i + 0.5) / (double)parts);
		if (unit) {
			unit->calls++;
			out->traced_calls++;
			out->traced_call_ns += visit->call_ns;
		}
	}
	for (; overlap < out->count && out->units[overlap].begin_ns < time_ns + visit->run_ns;
	     overlap++) {
		unit = &out->units[overlap];
		unit->run_ns += fmax(fmin(unit->end_ns, time_ns + visit->run_ns) -
					     fmax(unit->begin_ns, time_ns),
				     0);
	}
	out->calls += visit->calls;
	out->run_ns += visit->run_ns;
	out->call_ns += visit->calls * visit->call_ns;
}

static void record(struct recording *out, shape_t *shape, struct job *job)
{
	bool entered = true;
	size_t place = 0;

	memset(out, 0, sizeof(*out));
	lay_windows(out, &job->random, job->duration_ns);
	for (double time_ns = 0; time_ns < job->duration_ns;) {
		struct visit visit = shape(job, time_ns);

		run_visit(out, &place, &visit, time_ns, entered);
		entered = visit.gap_ns > 0;
		time_ns += visit.run_ns + visit.gap_ns;
	}
}

/* ---- what is said of it ---- */

/* Shares by samples are a draw; off: by how much the corrected time is. */
static struct rls_count_estimate estimate(const struct recording *recording, struct random *random)
{
	static struct rls_spread spread;
	struct rls_count_basis basis = {.spread = &spread};
	struct rls_count_estimate said;
	double cost_share = draw(random, 0, COST_SHARE_MAX);
	double off = 1 + cost_share * draw(random, -CORRECTION_OFF, CORRECTION_OFF), traced_ns = 0,
	       visits = 0, true_share, samples, drawn = 0;
	const int out = RLS_CATEGORY_PYTHON, in = RLS_CATEGORY_BACKEND;

	memset(&spread, 0, sizeof(spread));
	for (size_t i = 0; i < recording->count; i++) {
		const struct unit *from = &recording->units[i];
		struct rls_spread_unit unit = {.visits = from->visits,
					       .time_ns = from->run_ns * off,
					       .length_ns = from->end_ns - from->begin_ns,
					       .first = from->first};

		unit.count[out][in] = (uint32_t)from->calls;
		unit.length_ns = fmax(unit.length_ns, unit.time_ns);
		rls_spread_add(&spread, &unit);
		traced_ns += from->run_ns;
		visits += from->visits;
	}
	for (size_t i = 0; i < CLOSED_MAX; i++) {
		if (recording->closed[i].run_ns > 0)
			rls_spread_add_closed(&spread.closed, recording->closed[i].run_ns,
					      recording->closed[i].visits);
	}
	basis.ran_ns = recording->run_ns - traced_ns;
	basis.visits = recording->visits - visits;
	basis.traced_share[in] = traced_ns > 0 ? recording->traced_call_ns / traced_ns : 0;
	true_share = (recording->call_ns - recording->traced_call_ns) / basis.ran_ns;
	samples = floor(basis.ran_ns / S * SAMPLES_PER_S);
	for (double i = 0; i < samples; i++)
		drawn += draw(random, 0, 1) < true_share;
	basis.sampled_share[in] = samples > 0 ? drawn / samples : 0;
	true_share = (drawn + 1) / (samples + 2);
	basis.sampled_error[in] =
		fmin(1.96 * sqrt(true_share * (1 - true_share) / (samples + 1)), 1);
	basis.cost_share = cost_share;
	said = rls_estimate_count(&basis, out, in);
	/* What reports add for the correction: visits have none. */
	if (!said.by_visits)
		said.error = hypot(said.error, CORRECTION_OFF * cost_share * said.count);
	return said;
}

struct tally {
	int runs, known, held;
};

static struct tally tally_of(shape_t *shape, double burst_ns, double seconds, int runs)
{
	struct tally tally = {.runs = runs};
	static struct recording recording;

	for (int run = 0; run < runs; run++) {
		struct job job = {.random = {(uint64_t)run * 7919 + 17},
				  .duration_ns = seconds * S,
				  .burst_ns = burst_ns};
		struct rls_count_estimate said;
		double count;

		for (int i = 0; i < 5; i++)
			draw(&job.random, 0, 1);
		job.next_burst_ns = draw(&job.random, 0, 4) * burst_ns;
		record(&recording, shape, &job);
		said = estimate(&recording, &job.random);
		count = recording.traced_calls + said.count;
		if (!(said.error < KNOWN_SHARE * count))
			continue;
		tally.known++;
		tally.held += fabs(count - recording.calls) <= said.error;
	}
	return tally;
}

static const struct {
	const char *name;
	shape_t *shape;
	double burst_ns;
	bool steady; /* it must be given a count */
} jobs[] = {
	{"steady", steady, 0, true},
	{"varied", varied, 0, true},
	{"periodic", periodic, 0, false},
	{"drifting", drifting, 0, false},
	{"starting up", starting_up, 0, false},
	{"bursts of 10 ms", bursts, 10 * MS, false},
	{"bursts of 100 ms", bursts, 100 * MS, false},
	{"bursts of 1 s", bursts, 1 * S, false},
	{"seldom bursts of 10 ms", seldom_bursts, 10 * MS, false},
	{"seldom bursts of 100 ms", seldom_bursts, 100 * MS, false},
	{"seldom bursts of 1 s", seldom_bursts, 1 * S, false},
	{"phases", phases, 0, false},
	{"no operations, 10 ms", no_operations, 10 * MS, false},
	{"no operations, 300 ms", no_operations, 300 * MS, false},
	{"no operations, 1 s", no_operations, 1 * S, false},
	{"held out: steps", held_out_steps, 0, false},
	{"held out: mixture, 30 ms", held_out_mixture, 30 * MS, false},
	{"held out: mixture, 500 ms", held_out_mixture, 500 * MS, false},
	{"held out: short calls, 20 ms", held_out_short_calls, 20 * MS, false},
	{"held out: short calls, 200 ms", held_out_short_calls, 200 * MS, false},
	{"held out: short calls, 1 s", held_out_short_calls, 1 * S, false},
	{"held out: slow calls", held_out_slow_calls, 0, false},
	{"held out: steps of training", held_out_steps_of_training, 0, false},
	{"held out: steps in bursts of 100 ms", held_out_steps_in_bursts, 100 * MS, false},
	{"held out: steps in bursts of 1 s", held_out_steps_in_bursts, 1 * S, false},
};
#define JOBS (sizeof(jobs) / sizeof(jobs[0]))
static const double seconds[] = {5, 10, 30};
#define RUNS 20

static void intervals_hold(void **state)
{
	struct tally all = {0};

	(void)state;
	for (size_t j = 0; j < JOBS; j++) {
		for (size_t s = 0; s < sizeof(seconds) / sizeof(seconds[0]); s++) {
			struct tally one =
				tally_of(jobs[j].shape, jobs[j].burst_ns, seconds[s], RUNS);

			printf("%s, %.0f s: %d of %d known, %d held\n", jobs[j].name, seconds[s],
			       one.known, one.runs, one.held);
			all.runs += one.runs;
			all.known += one.known;
			all.held += one.held;
			if (jobs[j].steady)
				assert_true(one.known >= 0.95 * one.runs);
		}
	}
	printf("all: %d of %d known, %d of them held\n", all.known, all.runs, all.held);
	assert_true(all.runs >= 1000);
	assert_true(all.held >= 0.95 * all.known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intervals_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
