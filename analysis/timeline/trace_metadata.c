#include "analysis/timeline/trace_metadata.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "analysis/base/grow.h"

/* Assumed where a trace brings no calibration: about what the cost of one kind of hit
 * varies by between machines of one generation. */
#define ERROR_UNCALIBRATED 0.25

enum list {
	LIST_LOSS,
	LIST_CALIBRATION,
	LIST_WARNING,
};

void rls_trace_metadata_free(struct rls_trace_metadata *facts)
{
	free(facts->losses);
	free(facts->calibration);
	rls_index_map_free(&facts->map);
	*facts = (struct rls_trace_metadata){0};
}

/* Place of a string in a list; a new one is at count. */
static int trace_metadata_find(struct rls_trace_metadata *facts, enum list list,
			       rls_string_id string, size_t count, size_t *place)
{
	size_t known = (uintptr_t)rls_index_map_get(&facts->map, list, string);

	*place = known ? known - 1 : count;
	if (known)
		return 0;
	return rls_index_map_put(&facts->map, list, string, (void *)(count + 1));
}

static int add_loss(struct rls_trace_metadata *facts, rls_string_id buffer, uint64_t dropped)
{
	size_t place;
	int err = rls_grow(&facts->losses, &facts->loss_capacity, facts->loss_count);

	if (!err)
		err = trace_metadata_find(facts, LIST_LOSS, buffer, facts->loss_count, &place);
	if (err)
		return err;
	if (place == facts->loss_count)
		facts->losses[facts->loss_count++] = (struct rls_fact_loss){buffer, dropped};
	else if (dropped > facts->losses[place].dropped)
		facts->losses[place].dropped = dropped;
	return 0;
}

static int add_calibration(struct rls_trace_metadata *facts, const struct rls_event *event)
{
	size_t place;
	int err = rls_grow(&facts->calibration, &facts->calibration_capacity,
			   facts->calibration_count);

	if (!err)
		err = trace_metadata_find(facts, LIST_CALIBRATION, event->calibration.name,
					  facts->calibration_count, &place);
	if (err)
		return err;
	facts->calibration[place] = (struct rls_fact_calibration){
		.name = event->calibration.name,
		.value_ns = event->calibration.value_ns,
		.error_ns = event->calibration.error_ns,
	};
	facts->calibration_count += place == facts->calibration_count;
	return 0;
}

static int add_warning(struct rls_trace_metadata *facts, rls_string_id text)
{
	size_t place;
	int err;

	if (facts->warning_count == RLS_WARNINGS_MAX) {
		facts->warnings_left_out += !rls_index_map_get(&facts->map, LIST_WARNING, text);
		return 0;
	}
	err = trace_metadata_find(facts, LIST_WARNING, text, facts->warning_count, &place);
	if (err)
		return err;
	facts->warnings[place] = text;
	facts->warning_count += place == facts->warning_count;
	return 0;
}

/* A trace is of one boot: readings of another are nobody's. */
static void add_clock(struct rls_host_clock *clock, const struct rls_event *event)
{
	int64_t offset_ns = (int64_t)event->clock.realtime_ns - (int64_t)event->time_ns;
	uint64_t change_ns;

	if (!clock->known)
		*clock = (struct rls_host_clock){true, event->clock.boot, offset_ns, 0, 0};
	if (clock->boot != event->clock.boot)
		return;
	change_ns = offset_ns > clock->offset_ns ? (uint64_t)offset_ns - (uint64_t)clock->offset_ns
						 : (uint64_t)clock->offset_ns - (uint64_t)offset_ns;
	if (change_ns > clock->change_ns)
		clock->change_ns = change_ns;
	if (event->clock.width_ns > clock->width_ns)
		clock->width_ns = event->clock.width_ns;
}

int rls_trace_metadata_add(struct rls_trace_metadata *facts, const struct rls_event *event)
{
	switch (event->kind) {
	case RLS_EVENT_HOST:
		facts->kernel = event->host.kernel;
		facts->gpus = event->host.gpus;
		facts->tool = event->host.tool;
		facts->cpus = event->host.cpus;
		return 0;
	case RLS_EVENT_LOSS:
		return add_loss(facts, event->loss.buffer, event->loss.dropped);
	case RLS_EVENT_BUDGET: /* the latest stands for all */
		facts->budgeted = true;
		facts->budget = (struct rls_fact_budget){
			.percent = event->budget.percent,
			.given_up_percent = event->budget.given_up_percent,
			.windowed_sites = event->budget.windowed_sites,
			.given_up_sites = event->budget.given_up_sites,
		};
		return 0;
	case RLS_EVENT_CLOCK:
		add_clock(&facts->clock, event);
		return 0;
	case RLS_EVENT_CALIBRATION:
		return add_calibration(facts, event);
	case RLS_EVENT_WARNING:
		return add_warning(facts, event->warning.text);
	default:
		return 0;
	}
}

static double relative_error(const struct rls_fact_calibration *figure)
{
	/* Written so that a NaN counts as unknown, not as exact. */
	double relative = figure->value_ns > 0 && figure->error_ns >= 0
				  ? figure->error_ns / figure->value_ns
				  : 1;

	return relative <= 1 ? relative : 1;
}

/* The figure of that kind and name. Each scope asks, and there may be as many figures: they are
 * found by their names' ids. */
static const struct rls_fact_calibration *find_figure(const struct rls_trace_metadata *facts,
						      const struct rls_string_pool *strings,
						      const char *kind, const char *name)
{
	char whole[RLS_STRING_BYTES_MAX + 1];
	int length = snprintf(whole, sizeof(whole), "%s%s", kind, name);
	size_t place = 0;
	rls_string_id id;

	if (length < 0 || (size_t)length >= sizeof(whole))
		return NULL; /* no string is as long */
	id = rls_string_pool_find(strings, whole, (size_t)length);
	if (id)
		place = (uintptr_t)rls_index_map_get(&facts->map, LIST_CALIBRATION, id);
	return place ? &facts->calibration[place - 1] : NULL;
}

double rls_trace_metadata_calibration_error(const struct rls_trace_metadata *facts,
					    const struct rls_string_pool *strings)
{
	const struct rls_fact_calibration *whole =
		find_figure(facts, strings, RLS_FIGURE_WORKLOAD, "");
	double worst = 0;

	if (!facts->calibration_count)
		return ERROR_UNCALIBRATED;
	if (!whole)
		whole = find_figure(facts, strings, RLS_FIGURE_HIT, "");
	if (whole)
		return relative_error(whole);
	for (size_t i = 0; i < facts->calibration_count; i++) {
		double relative = relative_error(&facts->calibration[i]);

		if (facts->calibration[i].value_ns != 0 && relative > worst)
			worst = relative;
	}
	return worst;
}

double rls_trace_metadata_operation_error(const struct rls_trace_metadata *facts,
					  const struct rls_string_pool *strings,
					  rls_string_id operation, double otherwise)
{
	const char *name = rls_string_pool_get(strings, operation);
	const struct rls_fact_calibration *own =
		find_figure(facts, strings, RLS_FIGURE_POLLUTION, name);

	if (!own)
		own = find_figure(facts, strings, RLS_FIGURE_OPERATION, name);
	return own ? relative_error(own) : otherwise;
}

bool rls_trace_metadata_knows_pollution(const struct rls_trace_metadata *facts,
					const struct rls_string_pool *strings,
					rls_string_id operation)
{
	return find_figure(facts, strings, RLS_FIGURE_POLLUTION,
			   rls_string_pool_get(strings, operation));
}

double rls_trace_metadata_cupti_error(const struct rls_trace_metadata *facts,
				      const struct rls_string_pool *strings)
{
	double worst = 0;

	for (size_t i = 0; i < facts->calibration_count; i++) {
		const struct rls_fact_calibration *figure = &facts->calibration[i];
		const char *name = rls_string_pool_get(strings, figure->name);

		if (!strncmp(name, RLS_FIGURE_CUPTI, strlen(RLS_FIGURE_CUPTI)) &&
		    relative_error(figure) > worst)
			worst = relative_error(figure);
	}
	return worst;
}

bool rls_trace_metadata_knows_cupti(const struct rls_trace_metadata *facts,
				    const struct rls_string_pool *strings, const char *name)
{
	return find_figure(facts, strings, RLS_FIGURE_CUPTI, name);
}

static bool is_of_gpu(const char *buffer)
{
	return !strcmp(buffer, "gpu") || !strncmp(buffer, "gpu_", 4) ||
	       !strncmp(buffer, "cupti", 5);
}

static uint64_t dropped(const struct rls_trace_metadata *facts,
			const struct rls_string_pool *strings, bool of_gpu)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < facts->loss_count; i++) {
		const struct rls_fact_loss *loss = &facts->losses[i];

		if (is_of_gpu(rls_string_pool_get(strings, loss->buffer)) == of_gpu &&
		    __builtin_add_overflow(sum, loss->dropped, &sum))
			return UINT64_MAX;
	}
	return sum;
}

uint64_t rls_trace_metadata_dropped(const struct rls_trace_metadata *facts,
				    const struct rls_string_pool *strings)
{
	return dropped(facts, strings, false);
}

uint64_t rls_trace_metadata_dropped_gpu(const struct rls_trace_metadata *facts,
					const struct rls_string_pool *strings)
{
	return dropped(facts, strings, true);
}
