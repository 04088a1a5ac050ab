#include "analysis/layers/layer_totals.h"

#include <errno.h>
#include <stdlib.h>

void rls_thread_layers_free(struct rls_thread_layers *layers)
{
	while (layers->totals) {
		struct rls_layer_total *total = layers->totals;

		layers->totals = total->next;
		free(total);
	}
	rls_index_map_free(&layers->by_key);
	*layers = (struct rls_thread_layers){0};
}

void rls_thread_layers_restart(struct rls_thread_layers *layers)
{
	layers->depth = 0;
	layers->open[0] = (struct rls_open_layer){0};
}

static int make_total(struct rls_thread_layers *layers, const struct rls_open_layer *open,
		      struct rls_layer_total **out)
{
	uint64_t layer = (uint64_t)open->pass << 32 | open->layer;
	uint64_t place = (uint64_t)layers->phase << 32 | layers->operation;
	struct rls_layer_total *total = rls_index_map_get(&layers->by_key, layer, place);
	int err;

	if (!total) {
		total = calloc(1, sizeof(*total));
		if (!total)
			return -ENOMEM;
		err = rls_index_map_put(&layers->by_key, layer, place, total);
		if (err) {
			free(total);
			return err;
		}
		total->layer = open->layer;
		total->pass = open->pass;
		total->phase = layers->phase;
		total->operation = layers->operation;
		total->next = layers->totals;
		layers->totals = total;
	}
	*out = total;
	return 0;
}

static int layer_total(struct rls_thread_layers *layers, struct rls_open_layer *open)
{
	return open->total ? 0 : make_total(layers, open, &open->total);
}

static void move_to(struct rls_thread_layers *layers, rls_string_id phase, rls_string_id operation)
{
	if (layers->phase == phase && layers->operation == operation)
		return;
	layers->phase = phase;
	layers->operation = operation;
	for (uint32_t i = 0; i <= layers->depth; i++)
		layers->open[i].total = NULL;
}

/* A layer may call itself, by others too. */
static bool is_counted(const struct rls_thread_layers *layers, uint32_t at)
{
	for (uint32_t i = 1; i < at; i++)
		if (layers->open[i].total == layers->open[at].total)
			return true;
	return false;
}

int rls_thread_layers_add(struct rls_thread_layers *layers, rls_string_id phase,
			  rls_string_id operation, uint64_t ns, struct rls_cell **self)
{
	struct rls_open_layer *innermost = &layers->open[layers->depth];
	int err;

	move_to(layers, phase, operation);
	err = layer_total(layers, innermost);
	for (uint32_t i = 1; !err && i <= layers->depth; i++) {
		struct rls_open_layer *open = &layers->open[i];

		if (!open->layer && open != innermost)
			continue;
		err = layer_total(layers, open);
		if (!err && open->layer && !is_counted(layers, i))
			open->total->cumulative_ns += ns;
	}
	if (!err && !innermost->layer)
		innermost->total->cumulative_ns += ns;
	if (!err)
		*self = &innermost->total->cell;
	return err;
}

int rls_thread_layers_take(struct rls_thread_layers *layers, rls_string_id phase,
			   rls_string_id operation, const struct rls_event *event)
{
	uint32_t depth = event->layer.depth;
	struct rls_open_layer *innermost;
	int err = 0;

	if (depth > RLS_LAYER_DEPTH_MAX)
		depth = RLS_LAYER_DEPTH_MAX;
	/* Those whose begins were lost are not known. */
	while (layers->depth < depth)
		layers->open[++layers->depth] = (struct rls_open_layer){0};
	layers->depth = depth;
	innermost = &layers->open[depth];
	if (innermost->layer != event->layer.id || innermost->pass != event->layer.pass)
		*innermost = (struct rls_open_layer){.layer = event->layer.id,
						     .pass = event->layer.pass};
	move_to(layers, phase, operation);
	if (event->layer.begun && event->layer.id)
		err = layer_total(layers, innermost);
	if (!err && event->layer.begun && event->layer.id)
		innermost->total->calls++;
	return err;
}
