#include "analysis/series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/grow.h"
#include "analysis/report_private.h"
#include "analysis/sweep.h"

/* While reading, operations are ids and figures are sums up to the window's end. */
struct slot {
	rls_string_id operation;
	double wall_ns[RLS_CATEGORY_MAX][RLS_SERIES_WINDOWS];
	double corrected_ns[RLS_CATEGORY_MAX][RLS_SERIES_WINDOWS];
	double cpu_ns[RLS_CATEGORY_MAX][RLS_SERIES_WINDOWS];
	double entries[RLS_SERIES_WINDOWS];
};

struct reader {
	struct rls_timeline timeline;
	struct rls_series *series;
	struct slot **slots;
	size_t slot_count, slot_capacity;
	struct rls_index_map map;       /* operation -> slot */
	bool any;
	uint64_t boundary_ns;           /* where the present window ends */
};

static int find_slot(struct reader *reader, rls_string_id operation, struct slot **out)
{
	struct slot *slot = rls_index_map_get(&reader->map, operation, 0);
	int err;

	if (!slot) {
		err = rls_grow(&reader->slots, &reader->slot_capacity, reader->slot_count);
		if (err)
			return err;
		slot = calloc(1, sizeof(*slot));
		if (!slot)
			return -ENOMEM;
		slot->operation = operation;
		reader->slots[reader->slot_count++] = slot;
		err = rls_index_map_put(&reader->map, operation, 0, slot);
		if (err)
			return err;
	}
	*out = slot;
	return 0;
}

/* A cost and a wait may have been taken from the same time. */
static double ran_ns(const struct rls_cell *cell, uint64_t wall_ns)
{
	double ns = (double)wall_ns - (double)cell->subtracted_ns;

	for (int part = 0; part < RLS_PART_MAX; part++)
		ns -= (double)cell->off_cpu_ns[part];
	return ns > 0 ? ns : 0;
}

static int add_scope(struct reader *reader, const struct rls_scope *scope)
{
	size_t window = reader->series->window_count;
	struct slot *slot;
	int err = find_slot(reader, scope->operation, &slot);

	for (int i = 0; !err && i < RLS_CATEGORY_MAX; i++) {
		const struct rls_cell *cell = &scope->cells[i];
		uint64_t wall_ns = cell->wall_ns[RLS_PART_CPU] + cell->wall_ns[RLS_PART_CPU_GPU];

		slot->wall_ns[i][window] += (double)wall_ns;
		slot->corrected_ns[i][window] += (double)(wall_ns - cell->subtracted_ns);
		slot->cpu_ns[i][window] += ran_ns(cell, wall_ns);
	}
	if (!err)
		slot->entries[window] += (double)scope->entries;
	return err;
}

/* Each two windows become one: sums up to the later one's end stay. */
static void halve(struct reader *reader)
{
	struct rls_series *series = reader->series;

	for (size_t s = 0; s < reader->slot_count; s++) {
		struct slot *slot = reader->slots[s];

		for (size_t w = 0; w < RLS_SERIES_WINDOWS / 2; w++) {
			for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
				slot->wall_ns[i][w] = slot->wall_ns[i][2 * w + 1];
				slot->corrected_ns[i][w] = slot->corrected_ns[i][2 * w + 1];
				slot->cpu_ns[i][w] = slot->cpu_ns[i][2 * w + 1];
			}
			slot->entries[w] = slot->entries[2 * w + 1];
		}
		for (size_t w = RLS_SERIES_WINDOWS / 2; w < RLS_SERIES_WINDOWS; w++) {
			for (int i = 0; i < RLS_CATEGORY_MAX; i++)
				slot->wall_ns[i][w] = slot->corrected_ns[i][w] = slot->cpu_ns[i][w] = 0;
			slot->entries[w] = 0;
		}
	}
	series->window_count = RLS_SERIES_WINDOWS / 2;
	series->width_ns *= 2;
}

/* Notes what everything came to so far: the present window ends. */
static int end_window(struct reader *reader)
{
	int err = 0;

	for (struct rls_process *p = reader->timeline.processes; p; p = p->next) {
		for (struct rls_thread *t = p->threads; t; t = t->next) {
			for (struct rls_scope *s = t->scopes; !err && s; s = s->next)
				err = add_scope(reader, s);
		}
	}
	reader->series->window_count++;
	return err;
}

/* Ends the windows that end before the next event. */
static int pass(struct reader *reader, uint64_t time_ns)
{
	int err = 0;

	if (!reader->any)
		reader->boundary_ns = time_ns + reader->series->width_ns;
	reader->any = true;
	while (!err && time_ns >= reader->boundary_ns) {
		if (reader->series->window_count == RLS_SERIES_WINDOWS) {
			halve(reader);
			/* The present window is longer now, too. */
			reader->boundary_ns += reader->series->width_ns / 2;
			continue;
		}
		err = rls_sweep_settle(&reader->timeline, reader->boundary_ns);
		if (!err)
			err = end_window(reader);
		reader->boundary_ns += reader->series->width_ns;
	}
	return err;
}

static bool is_timed(const struct rls_event *event)
{
	switch (event->kind) {
	case RLS_EVENT_CATEGORY:
	case RLS_EVENT_OPERATION:
	case RLS_EVENT_HITS:
	case RLS_EVENT_OFF_CPU:
		return true;
	default:
		return false;
	}
}

static int read_events(struct reader *reader, struct rls_event_source *source)
{
	struct rls_event event;
	int more, err = 0;

	while (!err && (more = source->next(source, &event)) > 0) {
		if (is_timed(&event))
			err = pass(reader, event.time_ns);
		if (!err)
			err = rls_sweep_event(&reader->timeline, &event);
	}
	if (err || more < 0)
		return err ? err : more;
	return rls_sweep_finish(&reader->timeline);
}

/* What is left after the last whole window is one too, only shorter. */
static int end_last_window(struct reader *reader)
{
	struct rls_series *series = reader->series;
	uint64_t begin_ns;

	if (!reader->any)
		return 0;
	if (series->window_count == RLS_SERIES_WINDOWS) {
		halve(reader);
		reader->boundary_ns += series->width_ns / 2;
	}
	begin_ns = reader->boundary_ns - series->width_ns;
	series->last_width_ns = reader->timeline.now_ns > begin_ns
					? reader->timeline.now_ns - begin_ns
					: 0;
	return end_window(reader);
}

/* From sums up to each window's end to the windows' own. */
static void differentiate(double *values, size_t count)
{
	for (size_t w = count; w-- > 1;)
		values[w] -= values[w - 1];
}

static int keep_slot(struct rls_series *series, struct slot *slot, const char *name,
		     size_t capacities[static 2])
{
	size_t count = series->window_count;
	int err = rls_grow(&series->operations, &capacities[0], series->operation_count);

	if (err)
		return err;
	differentiate(slot->entries, count);
	series->operations[series->operation_count].operation = name;
	memcpy(series->operations[series->operation_count++].entries, slot->entries,
	       sizeof(slot->entries));
	for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
		struct rls_series_figure *figure;

		if (!count || slot->wall_ns[i][count - 1] <= 0)
			continue;
		err = rls_grow(&series->figures, &capacities[1], series->figure_count);
		if (err)
			return err;
		differentiate(slot->wall_ns[i], count);
		differentiate(slot->corrected_ns[i], count);
		differentiate(slot->cpu_ns[i], count);
		figure = &series->figures[series->figure_count++];
		figure->operation = name;
		figure->category = i;
		memcpy(figure->wall_ns, slot->wall_ns[i], sizeof(figure->wall_ns));
		memcpy(figure->corrected_ns, slot->corrected_ns[i], sizeof(figure->corrected_ns));
		memcpy(figure->cpu_ns, slot->cpu_ns[i], sizeof(figure->cpu_ns));
	}
	return 0;
}

static int keep_all(struct reader *reader, const struct rls_event_source *source)
{
	struct rls_series *series = reader->series;
	size_t capacities[2] = {0};
	int err = rls_report_new(&series->report);

	if (!err)
		err = rls_report_collect(series->report, &reader->timeline, source->strings,
					 source->damaged);
	for (size_t i = 0; !err && i < reader->slot_count; i++) {
		const char *name = rls_report_keep(
			series->report,
			rls_string_pool_get(source->strings, reader->slots[i]->operation), &err);

		if (!err)
			err = keep_slot(series, reader->slots[i], name, capacities);
	}
	return err;
}

int rls_series_read(struct rls_event_source *source, struct rls_series **out)
{
	struct reader reader = {.series = calloc(1, sizeof(*reader.series))};
	int err = reader.series ? 0 : -ENOMEM;

	if (err)
		return err;
	reader.series->width_ns = RLS_SERIES_WIDTH_NS;
	err = read_events(&reader, source);
	if (!err)
		err = end_last_window(&reader);
	if (!err)
		err = keep_all(&reader, source);
	for (size_t i = 0; i < reader.slot_count; i++)
		free(reader.slots[i]);
	free(reader.slots);
	rls_index_map_free(&reader.map);
	rls_timeline_free(&reader.timeline);
	if (err)
		rls_series_free(reader.series);
	else
		*out = reader.series;
	return err;
}

void rls_series_free(struct rls_series *series)
{
	if (!series)
		return;
	rls_report_free(series->report);
	free(series->figures);
	free(series->operations);
	free(series);
}
