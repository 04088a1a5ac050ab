/* Layers in the text form: those of a process by their self time, the longest first; or classes, or passes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/event/bounded.h"
#include "analysis/event/layer_pass.h"
#include "analysis/writers/text/text_page.h"

#define SHOWN_MAX 300 /* layers, unless all are asked for */
#define LABEL_BYTES 1024
#define FIGURES_COLUMNS 62 /* of a line, before its name */

bool rls_page_is_layered(const struct rls_page *page)
{
	return page->report->group >= RLS_GROUP_LAYER;
}

static int compare_layers(const void *left, const void *right)
{
	const struct rls_layer_row *a = *(const struct rls_layer_row *const *)left;
	const struct rls_layer_row *b = *(const struct rls_layer_row *const *)right;
	int order = (a->self_ns < b->self_ns) - (a->self_ns > b->self_ns);

	return order ? order : (a > b) - (a < b);
}

static const char *path_of(const struct rls_layer_row *row)
{
	return *row->path ? row->path : "(unnamed layer)";
}

static void make_label(const struct rls_page *page, const struct rls_layer_row *row,
		       char label[static LABEL_BYTES])
{
	const char *pass = rls_layer_pass_name(row->pass);

	if (page->report->group == RLS_GROUP_PASS)
		snprintf(label, LABEL_BYTES, "%s", pass);
	else if (row->pass == RLS_PASS_OUTSIDE)
		snprintf(label, LABEL_BYTES, "(outside layers)");
	else if (row->pass == RLS_PASS_UNKNOWN)
		snprintf(label, LABEL_BYTES, "(layers not traced)");
	else if (page->report->group == RLS_GROUP_LAYER_TYPE)
		snprintf(label, LABEL_BYTES, "%.600s", *row->type ? row->type : "(unnamed layer)");
	else if (strcmp(row->path, row->type))
		snprintf(label, LABEL_BYTES, "%.600s (%.300s)", path_of(row), row->type);
	else
		snprintf(label, LABEL_BYTES, "%.600s", path_of(row));
	if (page->report->group != RLS_GROUP_PASS && row->pass > RLS_PASS_FORWARD &&
	    row->pass < RLS_PASS_UNKNOWN)
		snprintf(label + strlen(label), LABEL_BYTES - strlen(label), ", %s", pass);
}

static void print_layer(const struct rls_page *page, const struct rls_layer_row *row,
			uint64_t whole_ns)
{
	char label[LABEL_BYTES], number[RLS_TEXT_NUMBER_BYTES];
	unsigned int columns =
		page->cut && page->columns > FIGURES_COLUMNS ? page->columns - FIGURES_COLUMNS : 0;

	putc(' ', page->out);
	rls_text_print_right(page->out, row->calls ? rls_text_count(number, row->calls) : "-", 11);
	rls_text_print_right(page->out, rls_text_ns(number, row->self_ns), 9);
	rls_text_print_right(page->out, rls_text_share(number, row->self_ns, whole_ns), 6);
	rls_text_print_right(page->out, rls_text_ns(number, row->error_ns), 9);
	rls_text_print_right(page->out, rls_text_ns(number, row->on_cpu_ns), 9);
	rls_text_print_right(page->out, rls_text_ns(number, row->cumulative_ns), 9);
	fputs("  ", page->out);
	make_label(page, row, label);
	rls_text_print(page->out, label, columns);
	putc('\n', page->out);
}

static void print_layers(const struct rls_page *page, const struct rls_layer_row *const *rows,
			 size_t count)
{
	size_t limit = page->top ? page->top : SHOWN_MAX;
	uint64_t whole_ns = 0;

	for (size_t i = 0; i < count; i++)
		rls_add_bounded(&whole_ns, rows[i]->self_ns);
	putc('\n', page->out);
	rls_page_style(page, RLS_STYLE_FAINT);
	fprintf(page->out, "  %11s %9s %6s %9s %9s %9s  %s\n", "calls", "self", "", "±", "on-CPU",
		"with inner", "layer");
	rls_page_plain(page);
	for (size_t i = 0; i < count && (page->full || i < limit); i++)
		print_layer(page, rows[i], whole_ns);
	if (count > limit && !page->full)
		fprintf(page->out, "  %zu more are not shown: --full\n", count - limit);
}

int rls_page_layers(const struct rls_page *page, const struct rls_process_entry *process)
{
	const struct rls_report *report = page->report;
	_cleanup_free_ const struct rls_layer_row **rows =
		calloc(report->layer_count + 1, sizeof(*rows));
	size_t count = 0;

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < report->layer_count; i++)
		if (report->layers[i].pid == process->pid)
			rows[count++] = &report->layers[i];
	if (!count)
		return 0;
	qsort(rows, count, sizeof(*rows), compare_layers);
	print_layers(page, rows, count);
	return 0;
}
