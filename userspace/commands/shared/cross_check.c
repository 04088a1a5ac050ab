#include "userspace/commands/shared/cross_check.h"

#include <errno.h>
#include <math.h>

#include "analysis/event/bounded.h"

static void add_row(struct rls_check_row *sum, const struct rls_check_row *row)
{
	rls_add_bounded(&sum->traced_ns, row->traced_ns);
	rls_add_bounded(&sum->sampled_ns, row->sampled_ns);
	rls_add_bounded(&sum->unseen_ns, row->unseen_ns);
	rls_add_bounded(&sum->probes_ns, row->probes_ns);
	sum->variance_ns2 += row->variance_ns2;
	sum->few_ns = fmax(sum->few_ns, row->few_ns);
}

static double percent(double part, uint64_t whole)
{
	return whole ? 100 * part / (double)whole : 0;
}

static void write_row(const char *name, const struct rls_check_row *row,
		      const struct rls_check_row *whole, FILE *out)
{
	fprintf(out,
		"verify: %s: traced %.1f %%, sampled %.1f %% (± %.1f), unseen %.2f %%, probes %.2f "
		"%%\n",
		name, percent((double)row->traced_ns, whole->traced_ns),
		percent((double)row->sampled_ns, whole->sampled_ns),
		percent((double)rls_interval_95_ns(row->variance_ns2, row->few_ns),
			whole->sampled_ns),
		percent((double)row->unseen_ns, whole->sampled_ns),
		percent((double)row->probes_ns, whole->sampled_ns));
}

/* Most of a recording within a budget lies between windows. */
static void write_extent(const struct rls_report *report, const struct rls_check_row *whole,
			 FILE *out)
{
	uint64_t ran_ns = 0;

	for (size_t i = 0; i < report->thread_count; i++)
		rls_add_bounded(&ran_ns, report->threads[i].on_cpu_ns);
	fprintf(out,
		"verify: compares the %.1f %% of running time in which everything was traced; "
		"unseen is what ran in other code than the trace says, or while it says unknown\n",
		fmin(percent((double)whole->traced_ns, ran_ns), 100));
}

int rls_cross_check_write(const struct rls_report *report, FILE *out)
{
	struct rls_check_row sums[RLS_CATEGORY_MAX] = {0}, whole = {0};

	for (size_t i = 0; i < report->check_count; i++) {
		add_row(&sums[report->checks[i].category], &report->checks[i]);
		add_row(&whole, &report->checks[i]);
	}
	if (!whole.sampled_ns)
		fputs("verify: no thread was sampled running while it was traced\n", out);
	for (int i = RLS_CATEGORY_MAX - 1; whole.sampled_ns && i >= 0; i--) {
		if (sums[i].traced_ns || sums[i].sampled_ns)
			write_row(rls_category_name(i), &sums[i], &whole, out);
	}
	if (whole.sampled_ns) {
		write_row("all", &whole, &whole, out);
		write_extent(report, &whole, out);
	}
	return ferror(out) ? -EIO : 0;
}
