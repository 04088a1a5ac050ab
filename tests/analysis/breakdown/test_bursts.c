/* Scaled counts of calls that come in bursts: their intervals hold the known truth. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/analysis/breakdown/script.h"

static const struct rls_transition_row *calls_of(const struct rls_report *report)
{
	for (size_t i = 0; i < report->transition_count; i++) {
		if (report->transitions[i].from == RLS_CATEGORY_BACKEND)
			return &report->transitions[i];
	}
	return NULL;
}

struct bursts {
	uint64_t burst_ns, quiet_ns; /* means of exponential lengths */
	uint64_t call_ns;
	uint64_t next_ns; /* the next call, in a burst */
	uint64_t until_ns; /* of the burst or the quiet */
	bool in_burst;
};

static uint64_t draw_ns(uint64_t mean_ns)
{
	return (uint64_t)(-log(((double)rand() + 1) / ((double)RAND_MAX + 2)) * (double)mean_ns) +
	       1;
}

static uint64_t next_call(struct bursts *b)
{
	for (;;) {
		if (b->in_burst && b->next_ns + b->call_ns <= b->until_ns) {
			b->next_ns += b->call_ns;
			return b->next_ns - b->call_ns;
		}
		b->in_burst = !b->in_burst;
		b->next_ns = b->until_ns;
		b->until_ns += draw_ns(b->in_burst ? b->burst_ns : b->quiet_ns);
	}
}

#define BURSTS_NS 20000000000ULL
#define FIRST_NS 500000000ULL
#define SAMPLE_NS 4000000

struct windows {
	uint64_t open_ns, close_ns, sampled_ns;
	bool seen;
};

/* Windows that are over when this call comes, and samples until then. */
static void pass_windows(struct script *script, struct windows *w, uint64_t at_ns)
{
	while (at_ns >= w->close_ns) {
		add_window(script, w->close_ns, false);
		w->open_ns = w->close_ns + draw_ns(600000000);
		for (; w->sampled_ns < w->open_ns && w->sampled_ns < BURSTS_NS;
		     w->sampled_ns += SAMPLE_NS)
			if (w->sampled_ns > w->close_ns)
				add_sample_of_category(script, w->sampled_ns, RLS_CATEGORY_PYTHON);
		w->close_ns = w->open_ns + 30000000;
		w->seen = false;
		if (w->open_ns < BURSTS_NS)
			add_window(script, w->open_ns, true);
	}
}

/* Traced at first, then in windows, which end sooner where there are many calls. */
static struct rls_report *record_bursts(struct bursts *b, uint64_t *truth)
{
	struct windows w = {.close_ns = FIRST_NS, .seen = true};
	struct rls_report *report;
	struct script script;
	uint64_t at_ns;

	script_begin(&script);
	add_process(&script, 0, 1, "p");
	add_thread(&script, 0, 1, 1);
	script_add(&script, RLS_EVENT_CALIBRATION, 0, 0, 0)->calibration.value_ns = 100;
	script.events[script.count - 1].calibration.name = script_string(&script, "hit");
	add_category(&script, 0, 1, 1, RLS_CATEGORY_PYTHON);
	script_add(&script, RLS_EVENT_BUDGET, 0, 0, 0)->budget.percent = 2;
	for (*truth = 0; (at_ns = next_call(b)) < BURSTS_NS - b->call_ns; ++*truth) {
		pass_windows(&script, &w, at_ns);
		if (at_ns < w.open_ns || at_ns + b->call_ns / 2 >= w.close_ns)
			continue;
		if (!w.seen) /* what it was in until then */
			add_category(&script, at_ns, 1, 1, RLS_CATEGORY_PYTHON);
		w.seen = true;
		add_category(&script, at_ns + 1, 1, 1, RLS_CATEGORY_BACKEND);
		add_category(&script, at_ns + b->call_ns / 2, 1, 1, RLS_CATEGORY_PYTHON);
		w.close_ns -= w.open_ns ? 100000 : 0;
	}
	add_end(&script, BURSTS_NS);
	report = script_report_alone(&script);
	script_end(&script);
	return report;
}

/* Of a hundred counts, no more than five may lie outside. */
static void intervals_hold_in_bursts(void **state)
{
	static const uint64_t lengths[] = {10000000, 30000000, 100000000, 300000000, 1000000000};
	unsigned int outside = 0, known = 0, all = 0;

	srand(7);
	for (size_t i = 0; i < 20 * sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint64_t length_ns = lengths[i / 20], truth;
		struct bursts b = {.burst_ns = length_ns,
				   .quiet_ns = length_ns * (1 + i % 3) / 2,
				   .call_ns = 200000};
		struct rls_report *report = record_bursts(&b, &truth);
		const struct rls_transition_row *row = calls_of(report);

		all++;
		if (row && row->count != RLS_COUNT_UNKNOWN) {
			known++;
			outside +=
				fabs((double)row->count - (double)truth) > (double)row->count_error;
		}
		rls_report_free(report);
	}
	print_message("of %u counts %u are known, %u lie outside of their interval\n", all, known,
		      outside);
	assert_true(outside <= all / 20);
	assert_true(known >= all / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intervals_hold_in_bursts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
