#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/writers/text/text_page.h"
#include "userspace/top/view.h"

#define NAME_LEAST 18
#define NAME_MOST 40
#define SECOND_NS 1000000000.0

/* What a line has beside its name. */
struct line {
	const struct rls_rates *rates;
	const struct rls_rates_job *job;
	const struct rls_rates_sums *sums;
	uint64_t whole_ns; /* that its share is of */
};

typedef const char *(*print_cell)(const struct line *line, char *buffer);

static const char *print_rate(const struct line *line, char *buffer)
{
	double elapsed = (double)line->rates->elapsed_ns;

	snprintf(buffer, RLS_TEXT_NUMBER_BYTES, "%.2f",
		 elapsed > 0 ? (double)line->sums->total_ns / elapsed : 0);
	return buffer;
}

static const char *print_share(const struct line *line, char *buffer)
{
	return rls_text_share(buffer, line->sums->total_ns, line->whole_ns);
}

static const char *category_share(const struct line *line, char *buffer, enum rls_category category)
{
	uint64_t ns = line->sums->category_ns[category];

	return ns ? rls_text_share(buffer, ns, line->sums->total_ns) : "";
}

static const char *print_python(const struct line *line, char *buffer)
{
	return category_share(line, buffer, RLS_CATEGORY_PYTHON);
}

static const char *print_simulator(const struct line *line, char *buffer)
{
	return category_share(line, buffer, RLS_CATEGORY_SIMULATOR);
}

static const char *print_backend(const struct line *line, char *buffer)
{
	return category_share(line, buffer, RLS_CATEGORY_BACKEND);
}

static const char *print_cuda(const struct line *line, char *buffer)
{
	return category_share(line, buffer, RLS_CATEGORY_CUDA_API);
}

static const char *print_native(const struct line *line, char *buffer)
{
	return category_share(line, buffer, RLS_CATEGORY_NATIVE);
}

static const char *print_unknown(const struct line *line, char *buffer)
{
	return category_share(line, buffer, RLS_CATEGORY_UNKNOWN);
}

/* A job's GPUs truly busy; for an operation, its share of time with the GPU at work. */
static const char *print_gpu(const struct line *line, char *buffer)
{
	if (!line->job)
		return line->sums->on_gpu_ns
			       ? rls_text_share(buffer, line->sums->on_gpu_ns, line->sums->total_ns)
			       : "";
	return line->job->job->gpu_count
		       ? rls_text_share(buffer, line->job->gpu_busy_ns, line->rates->elapsed_ns)
		       : "";
}

static const char *print_smi(const struct line *line, char *buffer)
{
	return line->job && line->job->job->gpu_count
		       ? rls_text_share(buffer, line->job->smi_style_ns, line->rates->elapsed_ns)
		       : "";
}

static const char *print_transitions(const struct line *line, char *buffer)
{
	double seconds = (double)line->rates->elapsed_ns / SECOND_NS;

	return rls_text_count(
		buffer,
		seconds > 0 ? (uint64_t)((double)line->sums->transitions / seconds + 0.5) : 0);
}

static const char *print_overhead(const struct line *line, char *buffer)
{
	return line->job ? rls_text_share(buffer, line->job->overhead_ns, line->sums->total_ns)
			 : "";
}

/* The later ones go first where there is no room. */
static const struct column {
	const char *title;
	unsigned int width;
	enum rls_category category; /* its colour; RLS_CATEGORY_MAX: none */
	print_cell print;
} columns[] = {
	{"threads", 8, RLS_CATEGORY_MAX, print_rate},
	{"share", 7, RLS_CATEGORY_MAX, print_share},
	{"python", 7, RLS_CATEGORY_PYTHON, print_python},
	{"simulator", 10, RLS_CATEGORY_SIMULATOR, print_simulator},
	{"backend", 8, RLS_CATEGORY_BACKEND, print_backend},
	{"cuda_api", 9, RLS_CATEGORY_CUDA_API, print_cuda},
	{"gpu", 7, RLS_CATEGORY_MAX, print_gpu},
	{"smi", 7, RLS_CATEGORY_MAX, print_smi},
	{"transitions/s", 14, RLS_CATEGORY_MAX, print_transitions},
	{"overhead", 9, RLS_CATEGORY_MAX, print_overhead},
	{"native", 7, RLS_CATEGORY_NATIVE, print_native},
	{"unknown", 8, RLS_CATEGORY_UNKNOWN, print_unknown},
};
#define COLUMN_COUNT (sizeof(columns) / sizeof(columns[0]))

struct table {
	struct rls_page page;
	const struct rls_rates *rates;
	unsigned int name_columns;
	size_t columns; /* of the list, those that fit */
	unsigned int left; /* lines; UINT_MAX: any number */
	size_t omitted;
};

static void view_text_fit(struct table *table)
{
	unsigned int used = NAME_LEAST;

	while (table->columns < COLUMN_COUNT &&
	       used + columns[table->columns].width + 1 <= table->page.columns)
		used += columns[table->columns++].width + 1;
	table->name_columns = NAME_LEAST;
	if (table->page.columns > used)
		table->name_columns += table->page.columns - used;
	if (table->name_columns > NAME_MOST)
		table->name_columns = NAME_MOST;
	if (table->page.columns < NAME_LEAST)
		table->name_columns = table->page.columns ? table->page.columns : 1;
}

static bool begin_line(struct table *table)
{
	if (!table->left) {
		table->omitted++;
		return false;
	}
	if (table->left != UINT32_MAX)
		table->left--;
	return true;
}

static void print_cells(const struct table *table, const struct line *line)
{
	char number[RLS_TEXT_NUMBER_BYTES];
	unsigned int blank = 0; /* columns that wait for something behind them */

	for (size_t i = 0; i < table->columns; i++) {
		const char *text = columns[i].print(line, number);

		if (!*text) {
			blank += columns[i].width + 1;
			continue;
		}
		fprintf(table->page.out, "%*s", (int)blank, "");
		blank = 0;
		if (columns[i].category != RLS_CATEGORY_MAX)
			rls_page_category(&table->page, columns[i].category);
		rls_text_print_right(table->page.out, text, columns[i].width);
		if (columns[i].category != RLS_CATEGORY_MAX)
			rls_page_plain(&table->page);
	}
	putc('\n', table->page.out);
}

static void print_titles(struct table *table)
{
	if (!begin_line(table))
		return;
	rls_page_style(&table->page, RLS_STYLE_FAINT);
	rls_text_print(table->page.out, "job, operation", table->name_columns);
	for (size_t i = 0; i < table->columns; i++)
		rls_text_print_right(table->page.out, columns[i].title, columns[i].width);
	rls_page_plain(&table->page);
	putc('\n', table->page.out);
}

static void print_job(struct table *table, const struct rls_rates_job *job)
{
	struct line line = {table->rates, job, &job->sums, job->sums.total_ns};

	if (begin_line(table)) {
		rls_page_style(&table->page, RLS_STYLE_HEADING);
		rls_text_print(table->page.out, job->job->name, table->name_columns);
		rls_page_plain(&table->page);
		print_cells(table, &line);
	}
	for (size_t i = 0; i < job->operation_count; i++) {
		const struct rls_rates_operation *operation = &job->operations[i];
		unsigned int indent = table->name_columns > 4 ? 2 : 0;

		if (!begin_line(table))
			continue;
		line = (struct line){table->rates, NULL, &operation->sums, job->sums.total_ns};
		fprintf(table->page.out, "%*s", (int)indent, "");
		rls_text_print(table->page.out,
			       *operation->name ? operation->name : "(no operation)",
			       table->name_columns - indent);
		print_cells(table, &line);
	}
}

static void print_head(struct table *table)
{
	const struct rls_snapshot_health *health = &table->rates->now->health;
	char text[256], number[RLS_TEXT_NUMBER_BYTES];
	int used;

	if (!begin_line(table))
		return;
	used = snprintf(text, sizeof(text), "rlscope-bpf top: %" PRIu64 " job%s in %s, ",
			health->live_jobs, health->live_jobs == 1 ? "" : "s",
			rls_text_ns(number, table->rates->elapsed_ns));
	if (health->budget_percent >= 0)
		used += snprintf(text + used, sizeof(text) - (size_t)used, "budget %g%%",
				 health->budget_percent);
	else
		used += snprintf(text + used, sizeof(text) - (size_t)used, "no budget");
	if (table->rates->lost)
		snprintf(text + used, sizeof(text) - (size_t)used, ", %s events lost",
			 rls_text_count(number, table->rates->lost));
	if (table->rates->lost)
		rls_page_style(&table->page, RLS_STYLE_WARNING);
	rls_text_print(table->page.out, text,
		       rls_text_width(text) > table->page.columns ? table->page.columns : 0);
	if (table->rates->lost)
		rls_page_plain(&table->page);
	putc('\n', table->page.out);
}

void rls_top_write_text(FILE *out, const struct rls_rates *rates, const struct rls_top_view *view)
{
	struct table table = {
		.page = {.out = out, .colour = view->colour, .columns = view->columns},
		.rates = rates,
		/* One for what is left out, and one so that nothing scrolls. */
		.left = view->lines ? (view->lines > 2 ? view->lines - 2 : 0) : UINT32_MAX,
	};

	view_text_fit(&table);
	print_head(&table);
	print_titles(&table);
	for (size_t i = 0; i < rates->job_count; i++)
		print_job(&table, &rates->jobs[i]);
	if (!rates->job_count && begin_line(&table))
		fputs("no training job is running\n", out);
	if (table.omitted && view->lines > 1) {
		char text[64];

		snprintf(text, sizeof(text), "… %zu more", table.omitted);
		rls_text_print(out, text, rls_text_width(text) > view->columns ? view->columns : 0);
		putc('\n', out);
	}
}
