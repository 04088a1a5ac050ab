/* Whether the stated errors of untraced time hold: recordings of drawn worlds, whose true shares are known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/analysis/breakdown/script.h"

#define KINDS 3
#define SAMPLE_NS 1000
#define TRIALS 150

static const enum rls_category kinds[KINDS] = {RLS_CATEGORY_PYTHON, RLS_CATEGORY_SIMULATOR,
					       RLS_CATEGORY_BACKEND};

/* Rollouts and updates, say: a window lies in one of them. */
struct mode {
	double part; /* of the time */
	double share[KINDS];
	double wrong; /* of the samples */
};

struct world {
	struct mode modes[2];
	int windows, open_samples, closed_samples; /* for each window */
	uint64_t random;
};

static double draw(struct world *world)
{
	world->random ^= world->random << 13;
	world->random ^= world->random >> 7;
	world->random ^= world->random << 17;
	return (double)(world->random >> 11) / (double)(1ULL << 53);
}

static int draw_kind(struct world *world, const struct mode *mode)
{
	double at = draw(world);
	int kind = 0;

	while (kind < KINDS - 1 && at >= mode->share[kind])
		at -= mode->share[kind++];
	return kind;
}

static const struct mode *draw_mode(struct world *world)
{
	return &world->modes[draw(world) >= world->modes[0].part];
}

static void sample(struct script *script, struct world *world, const struct mode *mode,
		   uint64_t at_ns, int kind)
{
	if (draw(world) < mode->wrong)
		kind = (kind + 1 + (draw(world) < 0.5)) % KINDS;
	add_sample_of_category(script, at_ns, kinds[kind]);
}

/* traced_ns: of each kind, in windows. */
static struct rls_report *record_world(struct world *world, double *traced_ns, double *closed_ns)
{
	struct rls_report *report;
	struct script script;
	uint64_t at_ns = 0;

	script_begin_step(&script, 0);
	for (int w = 0; w < world->windows; w++) {
		const struct mode *mode = draw_mode(world);

		if (w)
			add_window(&script, at_ns, true);
		for (int i = 0; i < world->open_samples; i++, at_ns += SAMPLE_NS) {
			int kind = draw_kind(world, mode);

			add_category(&script, at_ns, 1, 1, kinds[kind]);
			traced_ns[kind] += SAMPLE_NS;
			sample(&script, world, mode, at_ns + 10, kind);
		}
		add_window(&script, at_ns, false);
		for (int i = 0; i < world->closed_samples; i++, at_ns += SAMPLE_NS) {
			mode = draw_mode(world);
			sample(&script, world, mode, at_ns + 10, draw_kind(world, mode));
		}
	}
	add_end(&script, at_ns);
	*closed_ns = (double)at_ns - traced_ns[0] - traced_ns[1] - traced_ns[2];
	report = script_report_alone(&script);
	script_end(&script);
	return report;
}

static double true_share(const struct world *world, int kind)
{
	return world->modes[0].part * world->modes[0].share[kind] +
	       (1 - world->modes[0].part) * world->modes[1].share[kind];
}

/* Of the rows, how many are as far from the truth as they say, at most. */
static double coverage(struct world world)
{
	int rows = 0, inside = 0;

	for (int t = 0; t < TRIALS; t++) {
		double traced_ns[KINDS] = {0}, closed_ns;
		struct rls_report *report = record_world(&world, traced_ns, &closed_ns);

		for (int i = 0; i < KINDS; i++) {
			const struct rls_breakdown_row *row =
				find_row(report, 1, 1, "", "step", rls_category_name(kinds[i]),
					 RLS_RESOURCE_CPU);
			double true_ns = traced_ns[i] + closed_ns * true_share(&world, i);

			rows++;
			inside += row &&
				  fabs((double)row->wall_ns - true_ns) <= (double)row->error_ns;
		}
		rls_report_free(report);
	}
	return (double)inside / rows;
}

static void test_stated_errors_hold(void **unused)
{
	static const double wrongs[] = {0, 0.005, 0.015, 0.05, 0.15};
	static const int samples[] = {2, 7, 30};
	struct world world = {.windows = 20, .closed_samples = 50, .random = 88172645463325252ULL};

	for (size_t i = 0; i < sizeof(wrongs) / sizeof(*wrongs); i++) {
		for (size_t k = 0; k < sizeof(samples) / sizeof(*samples); k++) {
			double held;

			world.modes[0] = (struct mode){0.6, {0.5, 0.3, 0.2}, wrongs[i] / 2};
			world.modes[1] = (struct mode){0.4, {0.2, 0, 0.8}, wrongs[i] * 1.75};
			world.open_samples = samples[k];
			held = coverage(world);
			/* So many wrong samples are not what is assumed beforehand. */
			assert_true(held >= (wrongs[i] > 0.1 ? 0.91 : 0.95));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stated_errors_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
