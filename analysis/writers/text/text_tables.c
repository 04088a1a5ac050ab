/* The two tables of the text form: where time went, and the transitions. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/writers/text/text_page.h"

#define INDENT 2
#define LABEL_COLUMNS_MIN 16
#define LABEL_COLUMNS_MAX 48
#define LABEL_BYTES 512
#define BAR_COLUMNS_MIN 8
#define BAR_COLUMNS_MAX 40

/* --- where time went ---------------------------------------------------------------- */

static const char *wall(char *buffer, const struct rls_view_line *line, uint64_t total_ns)
{
	return rls_text_ns(buffer, line->wall_ns);
}

static const char *text_tables_share(char *buffer, const struct rls_view_line *line,
				     uint64_t total_ns)
{
	return rls_text_share(buffer, line->wall_ns, total_ns);
}

static const char *on_cpu(char *buffer, const struct rls_view_line *line, uint64_t total_ns)
{
	return rls_text_share(buffer, line->on_cpu_ns, line->wall_ns);
}

static const char *with_gpu(char *buffer, const struct rls_view_line *line, uint64_t total_ns)
{
	return line->cpu_gpu_ns ? rls_text_ns(buffer, line->cpu_gpu_ns) : "-";
}

static const char *corrected(char *buffer, const struct rls_view_line *line, uint64_t total_ns)
{
	return rls_text_ns(buffer, line->corrected_ns);
}

static const char *error(char *buffer, const struct rls_view_line *line, uint64_t total_ns)
{
	return rls_text_ns(buffer, line->error_ns);
}

enum { COLUMN_WITH_GPU = 3, COLUMN_COUNT = 6 };

static const struct {
	const char *heading;
	unsigned int width;
	unsigned int rank; /* on a narrow page the highest goes first */
	const char *(*text)(char *buffer, const struct rls_view_line *line, uint64_t total_ns);
} columns[COLUMN_COUNT] = {
	{"time", 9, 0, wall},           {"share", 7, 0, text_tables_share},
	{"on CPU", 7, 2, on_cpu},       [COLUMN_WITH_GPU] = {"with GPU", 9, 1, with_gpu},
	{"corrected", 9, 3, corrected}, {"± error", 9, 4, error},
};

struct layout {
	unsigned int label; /* columns for the label */
	unsigned int bar; /* for the bar at the end; 0: none */
	uint64_t full_ns; /* what a whole bar stands for */
	bool shown[COLUMN_COUNT];
};

static unsigned int width_of(const struct layout *layout)
{
	unsigned int width = INDENT;

	for (int i = 0; i < COLUMN_COUNT; i++)
		width += layout->shown[i] ? columns[i].width + 1 : 0;
	return width;
}

/* What is left beside the figures is the label's, and what that does not need the bar's. */
static void share_out(struct layout *layout, unsigned int left, unsigned int longest)
{
	unsigned int label = longest < LABEL_COLUMNS_MIN ? LABEL_COLUMNS_MIN : longest;

	if (left > label + BAR_COLUMNS_MIN) {
		layout->bar = left - label - 1;
		layout->label = label;
	} else {
		layout->label = left < LABEL_COLUMNS_MIN ? LABEL_COLUMNS_MIN : left;
	}
	if (layout->label > LABEL_COLUMNS_MAX)
		layout->label = LABEL_COLUMNS_MAX;
	if (layout->bar > BAR_COLUMNS_MAX)
		layout->bar = BAR_COLUMNS_MAX;
}

/* longest: columns that the longest label wants. */
static struct layout lay_out(const struct rls_page *page, const struct rls_view *view,
			     unsigned int longest)
{
	struct layout layout = {.full_ns = view->total.wall_ns};
	unsigned int rank = COLUMN_COUNT, width;

	for (int i = 0; i < COLUMN_COUNT; i++)
		layout.shown[i] = i != COLUMN_WITH_GPU || view->total.cpu_gpu_ns;
	while (rank && width_of(&layout) + LABEL_COLUMNS_MIN > page->columns) {
		for (int i = 0; i < COLUMN_COUNT; i++)
			layout.shown[i] = layout.shown[i] && columns[i].rank < rank;
		rank--;
	}
	width = width_of(&layout);
	share_out(&layout, page->columns > width ? page->columns - width : 0,
		  longest < LABEL_COLUMNS_MAX ? longest : LABEL_COLUMNS_MAX);
	return layout;
}

static void print_headings(const struct rls_page *page, const struct layout *layout,
			   const char *label)
{
	rls_page_style(page, RLS_STYLE_FAINT);
	fprintf(page->out, "%*s", INDENT, "");
	rls_text_print(page->out, label, layout->label);
	for (int i = 0; i < COLUMN_COUNT; i++) {
		if (layout->shown[i])
			rls_text_print_right(page->out, columns[i].heading, columns[i].width);
	}
	rls_page_plain(page);
	putc('\n', page->out);
}

static void print_line(const struct rls_page *page, const struct layout *layout, const char *label,
		       unsigned int indent, const struct rls_view_line *line, uint64_t total_ns)
{
	char number[RLS_TEXT_NUMBER_BYTES];

	fprintf(page->out, "%*s", INDENT + (int)indent, "");
	rls_text_print(page->out, label, layout->label - indent);
	for (int i = 0; i < COLUMN_COUNT; i++) {
		if (layout->shown[i])
			rls_text_print_right(page->out, columns[i].text(number, line, total_ns),
					     columns[i].width);
	}
}

static unsigned int eighths_of(const struct layout *layout, uint64_t ns)
{
	if (!layout->full_ns || !ns)
		return 0;
	return (unsigned int)(0.5 + 8.0 * layout->bar * ((double)ns / (double)layout->full_ns));
}

/* The lines' times on end, each in its category's colour; what is there is seen to be there. */
static void print_bar(const struct rls_page *page, const struct layout *layout,
		      const struct rls_view_line *lines, size_t count)
{
	unsigned int done = 0, up_to;
	uint64_t ns = 0;

	if (!layout->bar)
		return;
	for (size_t i = 0; i < count; i++) {
		ns += lines[i].wall_ns;
		up_to = eighths_of(layout, ns);
		if (i + 1 < count)
			up_to &= ~7u;
		if (i + 1 == count && !up_to && ns)
			up_to = 1;
		if (up_to <= done)
			continue;
		if (!done)
			putc(' ', page->out);
		rls_page_category(page, lines[i].category);
		rls_text_bar(page->out, up_to - done);
		rls_page_plain(page);
		done = up_to;
	}
}

/* A line of sums, with its lines as its bar. */
static void print_sum(const struct rls_page *page, const struct layout *layout, const char *label,
		      const struct rls_view_line *sum, const struct rls_view_line *lines,
		      size_t count)
{
	rls_page_style(page, RLS_STYLE_HEADING);
	print_line(page, layout, label, 0, sum, layout->full_ns);
	rls_page_plain(page);
	print_bar(page, layout, lines, count);
	putc('\n', page->out);
}

static const char *heading_of(enum rls_group group)
{
	switch (group) {
	case RLS_GROUP_PROCESS:
		return "process";
	case RLS_GROUP_THREAD:
		return "thread";
	case RLS_GROUP_PHASE:
		return "phase";
	default:
		return "operation";
	}
}

/* One behind the last line of the key that begins there. */
static size_t end_of_group(const struct rls_view *view, size_t begin)
{
	size_t end = begin + 1;

	while (end < view->count &&
	       rls_view_key_equal(&view->lines[begin].key, &view->lines[end].key))
		end++;
	return end;
}

static size_t print_group(const struct rls_page *page, const struct layout *layout,
			  const struct rls_process_entry *process, const struct rls_view *view,
			  size_t begin)
{
	const struct rls_view_line *lines = view->lines;
	size_t end = end_of_group(view, begin);
	struct rls_view_line sum = {0};
	char label[LABEL_BYTES];

	for (size_t i = begin; i < end; i++)
		rls_view_line_add(&sum, &lines[i], RLS_ERROR_OF_CATEGORIES);
	print_sum(page, layout,
		  rls_page_label(page, process, &lines[begin].key, label, sizeof(label)), &sum,
		  &lines[begin], end - begin);
	for (size_t i = begin; i < end; i++) {
		print_line(page, layout, rls_category_name(lines[i].category), 2, &lines[i],
			   layout->full_ns);
		print_bar(page, layout, &lines[i], 1);
		putc('\n', page->out);
	}
	return end;
}

/* What --top leaves out, so that the lines still sum to the total. */
static void print_rest(const struct rls_page *page, const struct layout *layout,
		       const struct rls_view *view, size_t begin)
{
	struct rls_view_line sum = {0};
	size_t groups = 0;
	char label[64];

	for (size_t i = begin; i < view->count; i = end_of_group(view, i))
		groups++;
	for (size_t i = begin; i < view->count; i++)
		rls_view_line_add(&sum, &view->lines[i], RLS_ERROR_OF_CATEGORIES);
	snprintf(label, sizeof(label), "(%zu more)", groups);
	if (groups)
		print_sum(page, layout, label, &sum, NULL, 0);
}

static void print_groups(const struct rls_page *page, const struct rls_process_entry *process,
			 const struct rls_view *view)
{
	unsigned int longest = 0, width, groups = 0;
	char label[LABEL_BYTES];
	struct layout layout;
	size_t i;

	for (i = 0; i < view->count; i++) {
		width = rls_text_width(
			rls_page_label(page, process, &view->lines[i].key, label, sizeof(label)));
		longest = width > longest ? width : longest;
	}
	layout = lay_out(page, view, longest);
	print_headings(page, &layout, heading_of(page->report->group));
	for (i = 0; i < view->count && (!page->top || groups < page->top); groups++)
		i = print_group(page, &layout, process, view, i);
	print_rest(page, &layout, view, i);
	print_sum(page, &layout, "total", &view->total, NULL, 0);
}

int rls_page_breakdown(const struct rls_page *page, const struct rls_process_entry *process)
{
	char number[RLS_TEXT_NUMBER_BYTES];
	struct rls_view view;
	int err =
		rls_view_breakdown(page->report, process ? &process->pid : NULL, page->sort, &view);

	if (err)
		return err;
	if (view.count)
		print_groups(page, process, &view);
	else
		fprintf(page->out, "%*sno time was recorded\n", INDENT, "");
	if (view.gpu_alone_ns)
		fprintf(page->out, "%*sGPU busy while no thread was traced: %s\n", INDENT, "",
			rls_text_ns(number, view.gpu_alone_ns));
	rls_view_free(&view);
	return 0;
}

/* --- transitions -------------------------------------------------------------------- */

/* Where some counts are estimates they need more room, and a column says which. */
struct transition_layout {
	unsigned int label, count, rate;
	bool methods;
};

#define TRANSITION_COLUMNS 24
#define METHOD_COLUMNS 7

static struct transition_layout lay_out_transitions(const struct rls_page *page,
						    const struct rls_view_transition *transitions,
						    size_t count)
{
	struct transition_layout layout = {LABEL_COLUMNS_MIN, 14, 13, false};
	unsigned int rest;

	for (size_t i = 0; i < count && !layout.methods; i++)
		layout.methods =
			transitions[i].method != RLS_METHOD_TRACED || transitions[i].count_error;
	if (layout.methods) {
		layout.count = 16;
		layout.rate = 10;
	}
	rest = INDENT + TRANSITION_COLUMNS + layout.count + 1 + layout.rate + 1 +
	       (layout.methods ? METHOD_COLUMNS + 1 : 0);
	if (page->columns > rest + LABEL_COLUMNS_MIN)
		layout.label = page->columns - rest;
	if (layout.label > LABEL_COLUMNS_MAX)
		layout.label = LABEL_COLUMNS_MAX;
	return layout;
}

static const char *rate_of(char buffer[static RLS_TEXT_NUMBER_BYTES],
			   const struct rls_view_transition *transition, uint64_t life_ns)
{
	if (!life_ns || transition->count == RLS_COUNT_UNKNOWN)
		return "-";
	snprintf(buffer, RLS_TEXT_NUMBER_BYTES, "%s%.1f",
		 transition->method == RLS_METHOD_TRACED ? "" : "~",
		 (double)transition->count * 1e9 / (double)life_ns);
	return buffer;
}

static void print_transition(const struct rls_page *page, const char *label,
			     const struct transition_layout *layout,
			     const struct rls_view_transition *transition, uint64_t life_ns)
{
	char number[RLS_TEXT_NUMBER_BYTES];
	char name[64];

	fprintf(page->out, "%*s", INDENT, "");
	rls_text_print(page->out, label, layout->label);
	snprintf(name, sizeof(name), " %s → %s", rls_category_name(transition->from),
		 rls_category_name(transition->to));
	rls_text_print(page->out, name, TRANSITION_COLUMNS);
	rls_text_print_right(page->out,
			     rls_text_estimate(number, transition->count, transition->count_error,
					       transition->method),
			     layout->count);
	rls_text_print_right(page->out, rate_of(number, transition, life_ns), layout->rate);
	if (layout->methods)
		rls_text_print_right(page->out, rls_method_name(transition->method),
				     METHOD_COLUMNS);
	putc('\n', page->out);
}

static void print_transition_headings(const struct rls_page *page,
				      const struct transition_layout *layout)
{
	putc('\n', page->out);
	rls_page_style(page, RLS_STYLE_FAINT);
	fprintf(page->out, "%*s", INDENT, "");
	rls_text_print(page->out, heading_of(page->report->group), layout->label);
	rls_text_print(page->out, " transition", TRANSITION_COLUMNS);
	rls_text_print_right(page->out, "count", layout->count);
	rls_text_print_right(page->out, "per second", layout->rate);
	if (layout->methods)
		rls_text_print_right(page->out, "method", METHOD_COLUMNS);
	rls_page_plain(page);
	putc('\n', page->out);
}

int rls_page_transitions(const struct rls_page *page, const struct rls_process_entry *process)
{
	const struct rls_report *report = page->report;
	uint64_t life_ns =
		process ? process->end_ns - process->start_ns : report->end_ns - report->start_ns;
	_cleanup_free_ struct rls_view_transition *transitions = NULL;
	struct transition_layout layout;
	char label[LABEL_BYTES];
	size_t count, shown;
	int err =
		rls_view_transitions(report, process ? &process->pid : NULL, &transitions, &count);

	if (err)
		return err;
	if (!count)
		return 0;
	layout = lay_out_transitions(page, transitions, count);
	print_transition_headings(page, &layout);
	shown = page->top && page->top < count ? page->top : count;
	for (size_t i = 0; i < shown; i++)
		print_transition(
			page,
			rls_page_label(page, process, &transitions[i].key, label, sizeof(label)),
			&layout, &transitions[i], life_ns);
	if (shown < count)
		fprintf(page->out, "%*s(%zu more)\n", INDENT, "", count - shown);
	return 0;
}
