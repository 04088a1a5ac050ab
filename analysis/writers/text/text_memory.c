/* Memory in the text form: what a process uses, then the lines that allocate.
 *
 * Lines that leak come first, the fastest before others, then lines by their largest share of what was
 * allocated, has grown, or was live at the peak.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/event/bounded.h"
#include "analysis/event/memory_words.h"
#include "analysis/memory/leak.h"
#include "analysis/writers/text/text_page.h"

#define SHOWN_MAX 300 /* lines, unless all are asked for */
#define SHOWN_SHARE 0.01 /* of the process's allocations, growth or peak */
#define LARGEST 5 /* where memory is not all that the page is about */
#define LEAKING 20 /* and so many more, if they leak */
#define LABEL_BYTES 1024
#define FIGURES_COLUMNS 71 /* of a line, before its name */

struct memory_sums {
	uint64_t allocated, grown, at_peak;
};

struct memory_entry {
	const struct rls_memory_line_row *row;
	double share;
};

static bool is_leak(const struct rls_memory_line_row *row)
{
	return row->leak_score >= RLS_LEAK_SCORE;
}

/* --- the process -------------------------------------------------------------------- */

static void print_bytes(const struct rls_page *page, uint64_t bytes, unsigned int width)
{
	char text[RLS_TEXT_NUMBER_BYTES];

	rls_text_print_right(page->out,
			     bytes == RLS_COUNT_UNKNOWN ? "-" : rls_text_bytes(text, bytes), width);
}

static void print_signed(const struct rls_page *page, double bytes, const char *per,
			 unsigned int width)
{
	char number[RLS_TEXT_NUMBER_BYTES], text[2 * RLS_TEXT_NUMBER_BYTES];

	if (isnan(bytes)) {
		rls_text_print_right(page->out, "-", width);
		return;
	}
	snprintf(text, sizeof(text), "%s%s%s", bytes < 0 ? "-" : "",
		 rls_text_bytes(number, rls_round_bounded(fabs(bytes))), per);
	rls_text_print_right(page->out, text, width);
}

static void print_limit(const struct rls_page *page, const struct rls_memory_row *row)
{
	char text[RLS_TEXT_NUMBER_BYTES], limit[RLS_TEXT_NUMBER_BYTES];

	if (row->limit_bytes == RLS_COUNT_UNKNOWN || isnan(row->limit_in_s))
		return;
	fprintf(page->out, "  at this rate its limit of %s is reached in %s\n",
		rls_text_bytes(limit, row->limit_bytes), rls_text_duration(text, row->limit_in_s));
}

static void print_use(const struct rls_page *page, const struct rls_memory_row *row)
{
	char label[RLS_TEXT_NUMBER_BYTES] = "memory";

	if (row->device >= 0)
		snprintf(label, sizeof(label), "GPU %" PRId32, row->device);
	fprintf(page->out, "  %-8s", label);
	print_bytes(page, row->rss_start_bytes, 10);
	print_bytes(page, row->rss_peak_bytes, 10);
	print_bytes(page, row->rss_end_bytes, 10);
	print_bytes(page, row->tracked_growth_bytes, 10);
	print_signed(page, (double)row->untracked_bytes, "", 10);
	print_signed(page, row->growth_bytes_per_s, "/s", 12);
	putc('\n', page->out);
	print_limit(page, row);
	if (!row->out_of_memory)
		return;
	rls_page_style(page, RLS_STYLE_WARNING);
	fputs("  out of memory\n", page->out);
	rls_page_plain(page);
}

static void print_uses(const struct rls_page *page, uint32_t pid)
{
	const struct rls_report *report = page->report;
	bool headed = false;

	for (size_t i = 0; i < report->memory_count; i++) {
		if (report->memory[i].pid != pid)
			continue;
		if (!headed) {
			putc('\n', page->out);
			rls_page_style(page, RLS_STYLE_FAINT);
			fprintf(page->out, "  %8s %10s %10s %10s %10s %10s %12s\n", "", "at first",
				"peak", "at last", "tracked", "untracked", "growth");
			rls_page_plain(page);
			headed = true;
		}
		print_use(page, &report->memory[i]);
	}
}

/* --- its lines ---------------------------------------------------------------------- */

static void add_known(uint64_t *sum, uint64_t bytes)
{
	if (bytes != RLS_COUNT_UNKNOWN)
		rls_add_bounded(sum, bytes);
}

static struct memory_sums sums_of(const struct rls_report *report, uint32_t pid)
{
	struct memory_sums sums = {0};

	for (size_t i = 0; i < report->memory_line_count; i++) {
		const struct rls_memory_line_row *row = &report->memory_lines[i];

		if (row->pid != pid)
			continue;
		add_known(&sums.allocated, row->alloc_bytes);
		add_known(&sums.grown, row->growth_bytes);
		add_known(&sums.at_peak, row->bytes_at_process_peak);
	}
	return sums;
}

static double share_of(uint64_t part, uint64_t whole)
{
	return part == RLS_COUNT_UNKNOWN || !whole ? 0 : (double)part / (double)whole;
}

static double largest_share(const struct rls_memory_line_row *row, const struct memory_sums *sums)
{
	double share = share_of(row->alloc_bytes, sums->allocated);

	share = fmax(share, share_of(row->growth_bytes, sums->grown));
	return fmax(share, share_of(row->bytes_at_process_peak, sums->at_peak));
}

/* Rows are in an order of their own, which decides between equals. */
static int compare_memory_entries(const void *left, const void *right)
{
	const struct memory_entry *a = left, *b = right;
	int order = is_leak(b->row) - is_leak(a->row);

	if (!order && is_leak(a->row))
		order = (a->row->growth_bytes_per_s < b->row->growth_bytes_per_s) -
			(a->row->growth_bytes_per_s > b->row->growth_bytes_per_s);
	if (!order)
		order = (a->share < b->share) - (a->share > b->share);
	return order ? order : (a->row > b->row) - (a->row < b->row);
}

static const char *or_none(const char *text, const char *none)
{
	return *text ? text : none;
}

/* What a row is called by, as the report is grouped. */
static void make_place(const struct rls_page *page, const struct rls_memory_line_row *row,
		       char label[static LABEL_BYTES])
{
	const char *slash = strrchr(row->file, '/');
	const char *file = slash ? slash + 1 : row->file;

	switch (page->report->group) {
	case RLS_GROUP_PROCESS:
	case RLS_GROUP_THREAD:
		snprintf(label, LABEL_BYTES, "all");
		return;
	case RLS_GROUP_OPERATION:
		snprintf(label, LABEL_BYTES, "%.600s", or_none(row->operation, "(no operation)"));
		return;
	case RLS_GROUP_PHASE:
		snprintf(label, LABEL_BYTES, "%.600s", or_none(row->phase, "(no phase)"));
		return;
	case RLS_GROUP_FILE:
		snprintf(label, LABEL_BYTES, "%.600s", or_none(row->file, "(no Python code)"));
		return;
	case RLS_GROUP_FUNCTION:
		snprintf(label, LABEL_BYTES, "%.300s  (%.300s)",
			 or_none(row->function, "(no Python code)"), file);
		return;
	default:
		break;
	}
	if (!*file && !row->line)
		snprintf(label, LABEL_BYTES, "(no Python code)");
	else
		snprintf(label, LABEL_BYTES, "%.300s:%" PRIu32 "  %.300s", file, row->line,
			 row->function);
}

/* With what else distinguishes rows. */
static void make_label(const struct rls_page *page, const struct rls_memory_line_row *row,
		       char label[static LABEL_BYTES])
{
	size_t used;

	make_place(page, row, label);
	used = strlen(label);
	if (page->report->group == RLS_GROUP_NONE && *row->operation)
		used += (size_t)snprintf(label + used, LABEL_BYTES - used, " in %.150s",
					 row->operation);
	if (row->device >= 0)
		used += (size_t)snprintf(label + used, LABEL_BYTES - used, ", GPU %" PRId32,
					 row->device);
	else
		used += (size_t)snprintf(label + used, LABEL_BYTES - used, ", %s",
					 rls_memory_source_name(row->source));
	if (row->method != RLS_MEMORY_COUNTED && row->alloc_bytes)
		snprintf(label + used, LABEL_BYTES - used, ", ± %.1f%%",
			 100 * (double)row->error_bytes / (double)row->alloc_bytes);
}

/* Without its leak score, a line that is called a leak would look like any other. */
static void print_score(const struct rls_page *page, const struct rls_memory_line_row *row)
{
	char text[RLS_TEXT_NUMBER_BYTES] = "-";

	if (!isnan(row->leak_score))
		snprintf(text, sizeof(text), "%.2f", floor(100 * row->leak_score) / 100);
	if (is_leak(row))
		rls_page_style(page, RLS_STYLE_WARNING);
	rls_text_print_right(page->out, text, 4);
	if (is_leak(row))
		rls_page_plain(page);
}

static void print_entry(const struct rls_page *page, const struct rls_memory_line_row *row)
{
	bool exact = row->method == RLS_MEMORY_COUNTED;
	char label[LABEL_BYTES], number[RLS_TEXT_NUMBER_BYTES], about[2 * RLS_TEXT_NUMBER_BYTES];
	unsigned int columns =
		page->cut && page->columns > FIGURES_COLUMNS ? page->columns - FIGURES_COLUMNS : 0;

	snprintf(about, sizeof(about), "%s%s", exact ? "" : "~",
		 rls_text_bytes(number, row->alloc_bytes));
	putc(' ', page->out);
	rls_text_print_right(page->out, about, 10);
	print_bytes(page, row->temporary_bytes, 10);
	print_bytes(page, row->bytes_at_process_peak, 10);
	print_bytes(page, row->growth_bytes, 10);
	print_signed(page, row->growth_bytes_per_s, "/s", 12);
	print_score(page, row);
	fputs("  ", page->out);
	make_label(page, row, label);
	rls_text_print(page->out, label, columns);
	putc('\n', page->out);
}

static void print_entries(const struct rls_page *page, const struct memory_entry *entries,
			  size_t count, size_t limit)
{
	size_t shown = 0;

	putc('\n', page->out);
	rls_page_style(page, RLS_STYLE_FAINT);
	fprintf(page->out, "  %10s %10s %10s %10s %12s %4s  %s\n", "allocated", "temporary",
		"at peak", "growth", "a second", "leak", "where");
	rls_page_plain(page);
	while (shown < count &&
	       (page->full || (shown < limit && (is_leak(entries[shown].row) ||
						 entries[shown].share >= SHOWN_SHARE))))
		print_entry(page, entries[shown++].row);
	if (shown < count && page->memory)
		fprintf(page->out, "  %zu more are not shown: --full\n", count - shown);
}

static int print_memory_lines(const struct rls_page *page, uint32_t pid)
{
	const struct rls_report *report = page->report;
	_cleanup_free_ struct memory_entry *entries =
		calloc(report->memory_line_count + 1, sizeof(*entries));
	struct memory_sums sums = sums_of(report, pid);
	size_t count = 0, leaking = 0, limit;

	if (!entries)
		return -ENOMEM;
	for (size_t i = 0; i < report->memory_line_count; i++) {
		const struct rls_memory_line_row *row = &report->memory_lines[i];

		if (row->pid != pid)
			continue;
		entries[count++] = (struct memory_entry){row, largest_share(row, &sums)};
		leaking += is_leak(row);
	}
	if (!count)
		return 0;
	qsort(entries, count, sizeof(*entries), compare_memory_entries);
	limit = page->memory ? SHOWN_MAX : LARGEST + (leaking < LEAKING ? leaking : LEAKING);
	if (page->top && page->top < limit)
		limit = page->top;
	print_entries(page, entries, count, limit);
	return 0;
}

int rls_page_memory(const struct rls_page *page, const struct rls_process_entry *process)
{
	const struct rls_report *report = page->report;
	bool any = page->memory;

	for (size_t i = 0; !any && i < report->memory_line_count; i++)
		any = report->memory_lines[i].pid == process->pid;
	for (size_t i = 0; !any && i < report->memory_count; i++)
		any = report->memory[i].pid == process->pid && report->memory[i].out_of_memory;
	if (!any)
		return 0;
	print_uses(page, process->pid);
	return print_memory_lines(page, process->pid);
}
