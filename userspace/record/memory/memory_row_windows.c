/* Memory rows of which only windows are counted. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "userspace/base/clock.h"
#include "userspace/record/memory/memory_row_table.h"
#include "userspace/record/memory/memory_rows.h"

/* ---- clocks ---- */

/* NULL: nothing is known of it. */
static struct rls_memory_row_clock *clock_of(const struct rls_memory_rows *rows, uint32_t pid)
{
	return rls_index_map_get(&rows->clock_of, pid, 0);
}

/* That of a process that has ended stays as it was. */
static void read_clock(struct rls_memory_rows *rows, struct rls_memory_row_clock *clock)
{
	uint64_t cpu_ns = rls_process_cpu_ns((pid_t)clock->pid);

	if (cpu_ns <= clock->cpu_ns)
		return;
	rows->ran_ns += cpu_ns - clock->cpu_ns;
	clock->cpu_ns = cpu_ns;
}

static int add_clock(struct rls_memory_rows *rows, uint32_t pid, uint64_t first_ns)
{
	struct rls_memory_row_clock *clock = calloc(1, sizeof(*clock));

	if (!clock || rls_index_map_put(&rows->clock_of, pid, 0, clock)) {
		free(clock);
		return -ENOMEM;
	}
	clock->pid = pid;
	clock->first_ns = clock->cpu_ns = clock->open_ns = first_ns;
	for (uint32_t i = 0; i < RLS_MEMORY_SOURCES; i++)
		clock->none[i].until_ns = first_ns;
	clock->next = rows->clocks;
	rows->clocks = clock;
	return 0;
}

int rls_memory_rows_forked(struct rls_memory_rows *rows, pid_t pid)
{
	rls_memory_row_clock_drop(rows, (uint32_t)pid);
	return add_clock(rows, (uint32_t)pid, 0);
}

int rls_memory_rows_clock(struct rls_memory_rows *rows, pid_t pid)
{
	struct rls_memory_row_clock *clock = clock_of(rows, (uint32_t)pid);

	if (!clock)
		return add_clock(rows, (uint32_t)pid, rls_process_cpu_ns(pid));
	read_clock(rows, clock);
	return 0;
}

uint64_t rls_memory_rows_ran_ns(const struct rls_memory_rows *rows)
{
	return rows->ran_ns;
}

static void read_clocks(struct rls_memory_rows *rows)
{
	for (struct rls_memory_row_clock *clock = rows->clocks; clock; clock = clock->next)
		read_clock(rows, clock);
}

void rls_memory_row_clock_drop(struct rls_memory_rows *rows, uint32_t pid)
{
	struct rls_memory_row_clock **at = &rows->clocks;

	while (*at) {
		struct rls_memory_row_clock *clock = *at;

		if (pid && clock->pid != pid) {
			at = &clock->next;
			continue;
		}
		rls_index_map_remove(&rows->clock_of, clock->pid, 0);
		*at = clock->next;
		free(clock);
	}
}

/* ---- windows ---- */

void rls_memory_row_window(const struct rls_memory_rows *rows, struct rls_block_row *row)
{
	const struct rls_memory_row_clock *clock = clock_of(rows, row->pid);

	row->windowed = true;
	if (clock)
		row->estimate = clock->none[row->of.source];
}

/* How much a row has allocated of late is not known, only how much since the beginning. */
static void narrow_row(const struct rls_memory_rows *rows, struct rls_block_row *row)
{
	const struct rls_memory_row_clock *clock = clock_of(rows, row->pid);
	double lasted_ns = clock ? (double)(clock->cpu_ns - clock->first_ns) : 0;

	rls_memory_row_window(rows, row);
	row->changed = true;
	if (lasted_ns <= 0)
		return;
	row->estimate.allocs_per_ns = (double)row->sums.allocs / lasted_ns;
	row->estimate.bytes_per_ns = (double)row->sums.alloc_bytes / lasted_ns;
}

int rls_memory_rows_narrow(struct rls_memory_rows *rows, uint32_t source, uint64_t time_ns)
{
	int r = rls_memory_rows_name(rows, -1, time_ns);

	if (!r)
		r = rls_memory_rows_flush(rows, time_ns);
	if (r)
		return r;
	read_clocks(rows);
	rows->windowed |= 1U << source;
	for (struct rls_memory_row_clock *clock = rows->clocks; clock; clock = clock->next)
		clock->none[source] = (struct rls_memory_estimate){.until_ns = clock->cpu_ns};
	for (size_t i = 0; i < rows->count; i++)
		if (rows->rows[i].of.source == source)
			narrow_row(rows, &rows->rows[i]);
	return rls_memory_rows_flush(rows, time_ns);
}

void rls_memory_rows_open(struct rls_memory_rows *rows)
{
	read_clocks(rows);
	rows->open = true;
	for (struct rls_memory_row_clock *clock = rows->clocks; clock; clock = clock->next) {
		clock->open_ns = clock->cpu_ns;
		clock->reports = 0;
	}
}

static void close_row(struct rls_block_row *row, const struct rls_memory_window *window)
{
	row->changed |= row->window.allocs || row->estimate.bytes_per_ns > 0;
	rls_memory_estimate_window(&row->estimate, window, row->window.allocs,
				   row->window.alloc_bytes);
	row->window = (struct rls_memory_row_sums){0};
}

static void close_rows(struct rls_memory_rows *rows, uint32_t pid, double hit_ns)
{
	for (size_t i = 0; i < rows->count; i++) {
		struct rls_memory_row_clock *clock = clock_of(rows, rows->rows[i].pid);

		if (clock)
			clock->reports += rows->rows[i].window.allocs;
	}
	for (size_t i = 0; i < rows->count; i++) {
		struct rls_block_row *row = &rows->rows[i];
		const struct rls_memory_row_clock *clock = clock_of(rows, row->pid);
		struct rls_memory_window window;

		if (!clock || !row->windowed || (pid && row->pid != pid))
			continue;
		window = (struct rls_memory_window){clock->open_ns, clock->cpu_ns,
						    hit_ns * (double)clock->reports};
		close_row(row, &window);
	}
}

static void close_clock(const struct rls_memory_rows *rows, struct rls_memory_row_clock *clock,
			double hit_ns)
{
	const struct rls_memory_window window = {clock->open_ns, clock->cpu_ns,
						 hit_ns * (double)clock->reports};

	for (uint32_t i = 0; i < RLS_MEMORY_SOURCES; i++)
		if (rls_memory_rows_windowed(rows, i))
			rls_memory_estimate_window(&clock->none[i], &window, 0, 0);
	clock->reports = 0;
}

int rls_memory_rows_close(struct rls_memory_rows *rows, uint64_t time_ns, double hit_ns)
{
	int r;

	read_clocks(rows);
	r = rls_memory_rows_name(rows, 0, time_ns);
	if (r)
		return r;
	rls_memory_rows_take(rows);
	close_rows(rows, 0, hit_ns);
	for (struct rls_memory_row_clock *clock = rows->clocks; clock; clock = clock->next)
		close_clock(rows, clock, hit_ns);
	rows->open = false;
	return rls_memory_rows_flush(rows, time_ns);
}

void rls_memory_rows_conclude(struct rls_memory_rows *rows, uint32_t pid)
{
	if (!rows->windowed)
		return;
	read_clocks(rows);
	rls_memory_rows_take(rows);
	if (rows->open)
		close_rows(rows, pid, 0);
	for (size_t i = 0; i < rows->count; i++) {
		struct rls_block_row *row = &rows->rows[i];
		const struct rls_memory_row_clock *clock = clock_of(rows, row->pid);

		if (!row->windowed || (pid && row->pid != pid))
			continue;
		if (clock)
			rls_memory_estimate_end(&row->estimate, clock->cpu_ns);
		row->changed = true;
	}
}
