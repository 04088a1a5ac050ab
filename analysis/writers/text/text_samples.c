/* Samples in the text form: a listing of the lines that took time with the source beside the
 * figures, or a table of functions or of files.
 *
 * The source is read from where the target had it, if there is such a file here: only as
 * decoration, the figures do not depend on it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "analysis/event/bounded.h"
#include "analysis/writers/text/text_page.h"

#define SHOWN_MAX 300 /* lines of a table, unless all are asked for */
#define SHOWN_SHARE 0.01 /* of the process's sampled time */
#define HOTTEST 5
#define HANGING 20 /* and more lines: those in which a thread waits all the time */
#define HANGS_SHARE 0.99 /* of the life of its process */
#define SOURCE_LINE_BYTES 1024
#define FIGURES_COLUMNS 59 /* of a table's line, before its name */

static uint64_t total_of(const struct rls_sampled_times *times)
{
	uint64_t sum = times->python_ns;

	rls_add_bounded(&sum, times->native_ns);
	rls_add_bounded(&sum, times->system_ns);
	rls_add_bounded(&sum, times->waiting_ns);
	return sum;
}

static uint64_t sampled_ns(const struct rls_report *report, uint32_t pid)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < report->line_count; i++)
		if (report->lines[i].pid == pid)
			rls_add_bounded(&sum, total_of(&report->lines[i].times));
	return sum;
}

static bool is_shown(const struct rls_page *page, uint64_t ns, uint64_t whole_ns)
{
	return page->full || (double)ns >= SHOWN_SHARE * (double)whole_ns;
}

/* --- figures ------------------------------------------------------------------------ */

static void print_heading(const struct rls_page *page, const char *what, const char *name)
{
	rls_page_style(page, RLS_STYLE_FAINT);
	fprintf(page->out, "  %9s %6s %7s %7s %7s %7s %9s  %s\n", what, "share", "python", "native",
		"system", "waiting", "± error", name);
	rls_page_plain(page);
}

static void print_share(const struct rls_page *page, uint64_t part, uint64_t whole)
{
	char text[RLS_TEXT_NUMBER_BYTES];

	fprintf(page->out, " %7s", part ? rls_text_share(text, part, whole) : "");
}

/* A time, what share of the whole it is, what it was made of, and its error. */
static void print_figures(const struct rls_page *page, uint64_t ns,
			  const struct rls_sampled_times *times, uint64_t whole_ns)
{
	char time[RLS_TEXT_NUMBER_BYTES], share[RLS_TEXT_NUMBER_BYTES];

	putc(' ', page->out);
	rls_text_print_right(page->out, rls_text_ns(time, ns), 9);
	fprintf(page->out, " %6s", rls_text_share(share, ns, whole_ns));
	print_share(page, times->python_ns, whole_ns);
	print_share(page, times->native_ns, whole_ns);
	print_share(page, times->system_ns, whole_ns);
	print_share(page, times->waiting_ns, whole_ns);
	rls_text_print_right(page->out, rls_text_ns(time, times->error_ns), 9);
	fputs("  ", page->out);
}

static unsigned int name_columns(const struct rls_page *page)
{
	return page->cut && page->columns > FIGURES_COLUMNS ? page->columns - FIGURES_COLUMNS : 0;
}

/* --- lines, with their source ------------------------------------------------------- */

/* Only what looks like Python source: the path is the target's word. */
static FILE *open_source(const char *path)
{
	size_t length = strlen(path);
	struct stat status;
	FILE *file;
	int fd;

	if (length < 4 || strcmp(path + length - 3, ".py"))
		return NULL;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return NULL;
	file = fstat(fd, &status) || !S_ISREG(status.st_mode) ? NULL : fdopen(fd, "r");
	if (!file)
		close(fd);
	return file;
}

/* Reads on to the given line; "" when there is none. *at: the line last read. */
static const char *read_source(FILE *file, uint32_t line, uint32_t *at,
			       char buffer[static SOURCE_LINE_BYTES])
{
	buffer[0] = '\0';
	while (file && *at < line) {
		size_t length;

		if (!fgets(buffer, SOURCE_LINE_BYTES, file)) {
			buffer[0] = '\0';
			return buffer;
		}
		length = strlen(buffer);
		if (length && buffer[length - 1] == '\n') {
			buffer[length - 1] = '\0';
			++*at;
		}
	}
	for (char *c = buffer; *c; c++)
		*c = *c == '\t' ? ' ' : *c;
	return buffer;
}

static void print_line(const struct rls_page *page, const struct rls_line_row *row,
		       const char *source, uint64_t whole_ns)
{
	char label[SOURCE_LINE_BYTES + 64];

	print_figures(page, total_of(&row->times), &row->times, whole_ns);
	if (*source)
		snprintf(label, sizeof(label), "%5" PRIu32 "  %s", row->line, source);
	else
		snprintf(label, sizeof(label), "%5" PRIu32 "  in %.200s", row->line,
			 *row->function ? row->function : "?");
	rls_text_print(page->out, label, name_columns(page));
	putc('\n', page->out);
}

/* A neighbour of a line that took time, without figures. */
static void print_neighbour(const struct rls_page *page, uint32_t line, const char *source)
{
	char label[SOURCE_LINE_BYTES + 64];

	if (!*source)
		return;
	fprintf(page->out, "%*s", FIGURES_COLUMNS, "");
	rls_page_style(page, RLS_STYLE_FAINT);
	snprintf(label, sizeof(label), "%5" PRIu32 "  %s", line, source);
	rls_text_print(page->out, label, name_columns(page));
	rls_page_plain(page);
	putc('\n', page->out);
}

static const char *file_label(const char *file)
{
	return *file ? file : "(no Python code)";
}

/* The rows [first, end) of one file, which are in order of lines. */
static void print_file(const struct rls_page *page, size_t first, size_t end, uint64_t whole_ns,
		       size_t *shown)
{
	const struct rls_line_row *rows = page->report->lines;
	_cleanup_fclose_ FILE *source = open_source(rows[first].file);
	char buffer[SOURCE_LINE_BYTES];
	uint32_t at = 0, last = 0;
	bool headed = false;

	for (size_t i = first; i < end; i++) {
		if (!is_shown(page, total_of(&rows[i].times), whole_ns) ||
		    (!page->full && ++*shown > SHOWN_MAX))
			continue;
		if (!headed) {
			fputs("\n  ", page->out);
			rls_text_print(page->out, file_label(rows[first].file), 0);
			putc('\n', page->out);
			print_heading(page, "time", " line");
			headed = true;
		}
		if (rows[i].line > 1 && last + 1 < rows[i].line && source)
			print_neighbour(page, rows[i].line - 1,
					read_source(source, rows[i].line - 1, &at, buffer));
		print_line(page, &rows[i], read_source(source, rows[i].line, &at, buffer),
			   whole_ns);
		last = rows[i].line;
	}
}

static int print_lines(const struct rls_page *page, uint32_t pid, uint64_t whole_ns)
{
	const struct rls_report *report = page->report;
	size_t shown = 0;

	for (size_t i = 0, end; i < report->line_count; i = end) {
		for (end = i + 1;
		     end < report->line_count && report->lines[end].pid == report->lines[i].pid &&
		     !strcmp(report->lines[end].file, report->lines[i].file);
		     end++)
			;
		if (report->lines[i].pid == pid)
			print_file(page, i, end, whole_ns, &shown);
	}
	if (shown > SHOWN_MAX)
		fprintf(page->out, "\n  %zu more lines are not shown: --full\n", shown - SHOWN_MAX);
	return 0;
}

/* --- functions and files, the longest first ----------------------------------------- */

struct entry {
	uint64_t ns;
	struct rls_sampled_times times;
	const char *name, *file;
	uint32_t line; /* 0: a function or file */
	bool native;
};

static int compare_places(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;
	int order = strcmp(a->name, b->name);

	if (!order)
		order = strcmp(a->file, b->file);
	if (!order)
		order = a->native - b->native;
	return order ? order : (a->line > b->line) - (a->line < b->line);
}

static int compare_entries(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;
	int order = (a->ns < b->ns) - (a->ns > b->ns);

	return order ? order : compare_places(a, b);
}

static void print_entries(const struct rls_page *page, struct entry *entries, size_t count,
			  size_t limit, uint64_t whole_ns)
{
	size_t shown = 0;

	if (count)
		qsort(entries, count, sizeof(*entries), compare_entries);
	while (shown < count && (page->full || shown < limit) &&
	       is_shown(page, entries[shown].ns, whole_ns)) {
		const struct entry *entry = &entries[shown++];
		const char *slash = strrchr(entry->file, '/');
		char label[SOURCE_LINE_BYTES];

		print_figures(page, entry->ns, &entry->times, whole_ns);
		if (entry->line)
			snprintf(label, sizeof(label), "%.300s:%" PRIu32 "  %.300s",
				 slash ? slash + 1 : entry->file, entry->line, entry->name);
		else if (*entry->file && entry->name != entry->file)
			snprintf(label, sizeof(label), "%.300s  (%.300s%s)",
				 *entry->name ? entry->name : "?", slash ? slash + 1 : entry->file,
				 entry->native ? ", native" : "");
		else
			snprintf(label, sizeof(label), "%.600s", file_label(entry->name));
		rls_text_print(page->out, label, name_columns(page));
		putc('\n', page->out);
	}
}

/* Rows of several operations are one entry. */
static size_t merge_entries(struct entry *entries, size_t count)
{
	size_t kept = 0;

	if (count)
		qsort(entries, count, sizeof(*entries), compare_places);
	for (size_t i = 0; i < count; i++) {
		if (kept && !compare_places(&entries[kept - 1], &entries[i])) {
			rls_add_bounded(&entries[kept - 1].ns, entries[i].ns);
			rls_sampled_times_add(&entries[kept - 1].times, &entries[i].times);
		} else {
			entries[kept++] = entries[i];
		}
	}
	return kept;
}

static int print_functions(const struct rls_page *page, uint32_t pid, uint64_t whole_ns)
{
	const struct rls_report *report = page->report;
	_cleanup_free_ struct entry *entries = calloc(report->function_count + 1, sizeof(*entries));
	size_t count = 0;

	if (!entries)
		return -ENOMEM;
	for (size_t i = 0; i < report->function_count; i++) {
		const struct rls_function_row *row = &report->functions[i];

		if (row->pid == pid)
			entries[count++] = (struct entry){.ns = row->total_ns,
							  .times = row->times,
							  .name = row->function,
							  .file = row->file,
							  .native = row->native};
	}
	putc('\n', page->out);
	print_heading(page, "total", "function (kinds: its own time)");
	print_entries(page, entries, merge_entries(entries, count), SHOWN_MAX, whole_ns);
	return 0;
}

/* A job that hangs does so in more lines than those that matter most: each has a thread's whole time. */
static size_t hanging_entries(const struct entry *entries, size_t count, uint64_t life_ns)
{
	size_t hanging = 0;

	for (size_t i = 0; i < count; i++)
		hanging += (double)entries[i].times.waiting_ns >= HANGS_SHARE * (double)life_ns;
	return hanging < HANGING ? hanging : HANGING;
}

static int print_ranked(const struct rls_page *page, const struct rls_process_entry *process,
			uint64_t whole_ns, bool files, size_t limit)
{
	const struct rls_report *report = page->report;
	_cleanup_free_ struct entry *entries = calloc(report->line_count + 1, sizeof(*entries));
	size_t count = 0, hanging;

	if (!entries)
		return -ENOMEM;
	for (size_t i = 0; i < report->line_count; i++) {
		const struct rls_line_row *row = &report->lines[i];

		if (row->pid == process->pid)
			entries[count++] = (struct entry){.ns = total_of(&row->times),
							  .times = row->times,
							  .name = files ? row->file : row->function,
							  .file = row->file,
							  .line = files ? 0 : row->line};
	}
	count = merge_entries(entries, count);
	hanging = hanging_entries(entries, count, process->end_ns - process->start_ns);
	putc('\n', page->out);
	print_heading(page, "time", files ? "file" : "line");
	print_entries(page, entries, count, limit > hanging ? limit : hanging, whole_ns);
	return 0;
}

/* --- samples against the trace ------------------------------------------------------ */

static void print_check(const struct rls_page *page, const struct rls_check_row *row,
			const struct rls_check_row *whole)
{
	char text[RLS_TEXT_NUMBER_BYTES];

	fprintf(page->out, "  %-11s", rls_category_name(row->category));
	print_share(page, row->traced_ns, whole->traced_ns);
	print_share(page, row->sampled_ns, whole->sampled_ns);
	fprintf(page->out, "  %7s", rls_text_share(text, row->error_ns, whole->sampled_ns));
	print_share(page, row->unseen_ns, whole->sampled_ns);
	print_share(page, row->probes_ns, whole->sampled_ns);
	putc('\n', page->out);
}

/* Within a budget it is a small part, and its shares are not those of the whole. */
static void print_extent(const struct rls_page *page, const struct rls_process_entry *process,
			 uint64_t traced_ns)
{
	const struct rls_report *report = page->report;
	char share[RLS_TEXT_NUMBER_BYTES];
	uint64_t ran_ns = 0;

	for (size_t i = 0; i < report->thread_count; i++) {
		if (report->threads[i].pid == process->pid)
			rls_add_bounded(&ran_ns, report->threads[i].on_cpu_ns);
	}
	if (traced_ns < ran_ns)
		fprintf(page->out,
			"  of the %s of running time that was fully traced (not of the whole):\n",
			rls_text_share(share, traced_ns, ran_ns));
}

void rls_page_cross_check(const struct rls_page *page, const struct rls_process_entry *process)
{
	const struct rls_report *report = page->report;
	struct rls_check_row whole = {0};

	for (size_t i = 0; i < report->check_count; i++) {
		if (report->checks[i].pid != process->pid)
			continue;
		rls_add_bounded(&whole.traced_ns, report->checks[i].traced_ns);
		rls_add_bounded(&whole.sampled_ns, report->checks[i].sampled_ns);
	}
	if (!whole.traced_ns || !whole.sampled_ns)
		return;
	putc('\n', page->out);
	rls_page_style(page, RLS_STYLE_FAINT);
	print_extent(page, process, whole.traced_ns);
	fprintf(page->out, "  %-11s %7s %7s  %8s %7s %7s\n", "running", "traced", "sampled",
		"± error", "unseen", "probes");
	rls_page_plain(page);
	for (size_t i = 0; i < report->check_count; i++)
		if (report->checks[i].pid == process->pid)
			print_check(page, &report->checks[i], &whole);
}

int rls_page_samples(const struct rls_page *page, const struct rls_process_entry *process)
{
	uint64_t whole_ns = sampled_ns(page->report, process->pid);

	if (!whole_ns)
		return 0;
	switch (page->report->group) {
	case RLS_GROUP_LINE:
		return print_lines(page, process->pid, whole_ns);
	case RLS_GROUP_FUNCTION:
		return print_functions(page, process->pid, whole_ns);
	case RLS_GROUP_FILE:
		return print_ranked(page, process, whole_ns, true, SHOWN_MAX);
	default:
		return print_ranked(page, process, whole_ns, false, HOTTEST);
	}
}

bool rls_page_is_sampled(const struct rls_page *page)
{
	return page->report->group >= RLS_GROUP_LINE && page->report->group <= RLS_GROUP_FILE;
}
