/* The text form: for people, at a terminal or in a mail.
 *
 * What was recorded, then per process (as a tree, when there are several) where its time
 * went, its transitions and its GPUs, then what the profiler cost and what is missing.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/writers/text/text_page.h"
#include "analysis/writers/text/text_tree.h"
#include "analysis/writers/writer.h"

static const char *text_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* --- head --------------------------------------------------------------------------- */

static void print_head(const struct rls_page *page)
{
	const struct rls_report *report = page->report;
	char number[RLS_TEXT_NUMBER_BYTES];

	rls_page_style(page, RLS_STYLE_HEADING);
	rls_text_print(page->out, report->tool, 0);
	rls_page_plain(page);
	fprintf(page->out, ": %s recorded, ",
		rls_text_ns(number, report->end_ns - report->start_ns));
	if (!report->complete)
		rls_page_style(page, RLS_STYLE_WARNING);
	fputs(report->complete ? "complete" : "INCOMPLETE (see warnings)", page->out);
	if (!report->complete)
		rls_page_plain(page);
	if (*report->kernel) {
		fputs(", Linux ", page->out);
		rls_text_print(page->out, report->kernel, 0);
	}
	if (report->cpus)
		fprintf(page->out, ", %" PRIu32 " CPU%s", report->cpus, text_plural(report->cpus));
	putc('\n', page->out);
}

/* --- processes ---------------------------------------------------------------------- */

static void print_process_number(const struct rls_page *page,
				 const struct rls_process_entry *process)
{
	fprintf(page->out, " (pid %" PRIu32, process->host_pid ? process->host_pid : process->pid);
	if (page->report->host_count)
		fprintf(page->out, " on host %" PRIu32, process->host + 1);
}

static void print_process_head(const struct rls_page *page, const struct rls_process_entry *process)
{
	char number[RLS_TEXT_NUMBER_BYTES];
	size_t threads = 0;

	for (size_t i = 0; i < page->report->thread_count; i++)
		threads += page->report->threads[i].pid == process->pid;
	rls_page_style(page, RLS_STYLE_HEADING);
	rls_text_print(page->out, rls_page_process_name(process), 0);
	rls_page_plain(page);
	print_process_number(page, process);
	if (process->ns_pid)
		fprintf(page->out, ", in its namespace %" PRIu32, process->ns_pid);
	fprintf(page->out, "): %s, %zu thread%s",
		rls_text_ns(number, process->end_ns - process->start_ns), threads,
		text_plural(threads));
	if (*process->python) {
		fputs(", Python ", page->out);
		rls_text_print(page->out, process->python, 0);
	}
	putc('\n', page->out);
}

static int print_process(const struct rls_page *page, const struct rls_process_entry *process)
{
	int err;

	putc('\n', page->out);
	print_process_head(page, process);
	if (page->memory)
		return rls_page_memory(page, process);
	if (rls_page_is_layered(page))
		return rls_page_layers(page, process);
	if (rls_page_is_sampled(page)) {
		err = rls_page_samples(page, process);
		return err ? err : rls_page_memory(page, process);
	}
	err = rls_page_breakdown(page, process);
	if (!err)
		err = rls_page_transitions(page, process);
	if (!err)
		err = rls_page_cuda(page, process);
	if (!err)
		err = rls_page_samples(page, process);
	if (!err)
		rls_page_cross_check(page, process);
	return err ? err : rls_page_memory(page, process);
}

static void print_tree_line(const struct rls_page *page, const struct rls_tree_node *node)
{
	const struct rls_process_entry *process = node->process;
	char number[RLS_TEXT_NUMBER_BYTES];
	uint64_t wall_ns = 0;

	for (size_t i = 0; i < page->report->thread_count; i++)
		wall_ns += page->report->threads[i].pid == process->pid
				   ? page->report->threads[i].wall_ns
				   : 0;
	fprintf(page->out, "%*s%s", 2 + 2 * (int)node->depth, "", node->depth ? "└ " : "");
	rls_text_print(page->out, rls_page_process_name(process), 0);
	print_process_number(page, process);
	fprintf(page->out, "): %s of threads\n", rls_text_ns(number, wall_ns));
}

static int print_processes(const struct rls_page *page)
{
	_cleanup_free_ struct rls_tree_node *nodes = NULL;
	size_t count = page->report->process_count;
	int err = rls_tree_order(page->report, &nodes);

	if (err)
		return err;
	if (count > 1) {
		fprintf(page->out, "\n%zu processes\n", count);
		for (size_t i = 0; i < count; i++)
			print_tree_line(page, &nodes[i]);
	}
	for (size_t i = 0; !err && i < count; i++)
		err = print_process(page, nodes[i].process);
	if (err || count < 2 || page->memory || rls_page_is_sampled(page) ||
	    rls_page_is_layered(page))
		return err;
	putc('\n', page->out);
	rls_page_style(page, RLS_STYLE_HEADING);
	fputs("all processes\n", page->out);
	rls_page_plain(page);
	err = rls_page_breakdown(page, NULL);
	return err ? err : rls_page_transitions(page, NULL);
}

/* --- foot --------------------------------------------------------------------------- */

static void print_budget(const struct rls_page *page)
{
	const struct rls_budget_entry *budget = &page->report->overhead.budget;
	char traced[RLS_TEXT_NUMBER_BYTES], samples[RLS_TEXT_NUMBER_BYTES];
	uint64_t wall_ns = 0;

	if (budget->percent <= 0)
		return;
	for (size_t i = 0; i < page->report->thread_count; i++)
		wall_ns += page->report->threads[i].wall_ns;
	fprintf(page->out,
		"budget %g%%: %s of threads' time traced, in %" PRIu64
		" window%s; the rest divided by %s sample%s, counts (~) scaled\n",
		budget->percent, rls_text_share(traced, budget->traced_ns, wall_ns),
		budget->windows, text_plural(budget->windows),
		rls_text_count(samples, budget->samples), text_plural(budget->samples));
	if (budget->given_up_sites)
		fprintf(page->out,
			"%" PRIu32
			" function%s with calls shorter than their probes given up: at most "
			"%.2f%% of the time counts as their callers'\n",
			budget->given_up_sites, text_plural(budget->given_up_sites),
			budget->given_up_percent);
}

/* Operations by functions on sampled stacks. */
static void print_divided(const struct rls_page *page)
{
	const struct rls_report *report = page->report;

	for (size_t i = 0; i < report->breakdown_count; i++) {
		const struct rls_breakdown_row *row = &report->breakdown[i];

		if (row->method == row->undivided_method && !row->error.divided_ns)
			continue;
		fputs("time outside annotated operations divided by samples, as --operation says; "
		      "which of them its transitions are of is not known\n",
		      page->out);
		return;
	}
}

static void print_foot(const struct rls_page *page)
{
	const struct rls_report *report = page->report;
	char hits[RLS_TEXT_NUMBER_BYTES], cost[RLS_TEXT_NUMBER_BYTES];

	fprintf(page->out,
		"\nprofiler: %s probe hit%s, estimated cost %s (%.2f%% of threads' time)\n",
		rls_text_count(hits, report->overhead.hits), text_plural(report->overhead.hits),
		rls_text_ns(cost, report->overhead.estimated_ns), report->overhead.percent);
	print_budget(page);
	print_divided(page);
	for (size_t i = 0; i < report->loss_count; i++) {
		const struct rls_loss_entry *loss = &report->losses[i];

		if (!loss->dropped)
			continue;
		rls_page_style(page, RLS_STYLE_WARNING);
		fprintf(page->out, "lost: %s event%s of buffer ",
			rls_text_count(hits, loss->dropped), text_plural(loss->dropped));
		rls_text_print(page->out, loss->buffer, 0);
		rls_page_plain(page);
		putc('\n', page->out);
	}
	for (size_t i = 0; i < report->warning_count; i++) {
		rls_page_style(page, RLS_STYLE_WARNING);
		fputs("warning: ", page->out);
		rls_text_print(page->out, report->warnings[i], 0);
		rls_page_plain(page);
		putc('\n', page->out);
	}
}

static int write_text(const struct rls_report *report, FILE *out,
		      const struct rls_write_options *options)
{
	const struct rls_page page = {
		.out = out,
		.colour = options->colour,
		.columns = options->columns ? options->columns : RLS_PAGE_COLUMNS,
		.cut = options->columns != 0,
		.full = options->full,
		.memory = options->memory,
		.top = options->top,
		.sort = options->sort,
		.report = report,
	};
	int err;

	if (page.memory && !rls_report_has_memory(report)) {
		fputs(RLS_NO_MEMORY "\n", out);
		return 0;
	}
	if (rls_page_is_layered(&page) && !report->layer_count) {
		fputs(RLS_NO_LAYERS "\n", out);
		return 0;
	}
	print_head(&page);
	err = print_processes(&page);
	if (!err)
		print_foot(&page);
	return err;
}

const struct rls_report_writer rls_text_writer = {.name = "text", .write = write_text};
