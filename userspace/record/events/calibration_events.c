#include "userspace/record/events/calibration_events.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/grow.h"
#include "userspace/record/events/host_events.h"

struct rls_figure {
	char *name;
	double ns, error_ns, lasting_error_ns;
};

void rls_figures_clear(struct rls_figures *figures)
{
	for (size_t i = 0; i < figures->count; i++)
		free(figures->items[i].name);
	free(figures->items);
	*figures = (struct rls_figures){ 0 };
}

/* The one of that name, or a new one; NULL when there is no memory for it. */
static struct rls_figure *have(struct rls_figures *figures, const char *name)
{
	struct rls_figure *figure;

	for (size_t i = 0; i < figures->count; i++)
		if (!strcmp(figures->items[i].name, name))
			return &figures->items[i];
	if (rls_grow(&figures->items, &figures->room, figures->count))
		return NULL;
	figure = &figures->items[figures->count];
	figure->name = strdup(name);
	if (!figure->name)
		return NULL;
	figures->count++;
	return figure;
}

int rls_figures_add(struct rls_figures *figures, struct rls_trace_output *output, const char *name, double ns,
		    double error_ns, double lasting_error_ns, uint64_t time_ns)
{
	struct rls_figure *figure = have(figures, name);

	if (!figure)
		return -ENOMEM;
	figure->ns = ns;
	figure->error_ns = error_ns;
	figure->lasting_error_ns = fmin(lasting_error_ns, error_ns);
	return rls_host_figure(output, name, ns, error_ns, time_ns);
}

/* What of its error is the moment's is less by the root of how many of these there were. */
static double error_through(const struct rls_figure *figure, double spells)
{
	double lasting = figure->lasting_error_ns * figure->lasting_error_ns;

	return sqrt(lasting + (figure->error_ns * figure->error_ns - lasting) / spells);
}

int rls_figures_settle(const struct rls_figures *figures, struct rls_trace_output *output, double spells,
		       uint64_t time_ns)
{
	int r = 0;

	for (size_t i = 0; !r && i < figures->count; i++) {
		const struct rls_figure *figure = &figures->items[i];

		r = rls_host_figure(output, figure->name, figure->ns, error_through(figure, spells), time_ns);
	}
	return r;
}
