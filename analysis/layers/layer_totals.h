/* Layer totals: a thread's time by layer of its model.
 *
 *     LAYER events ─▶ calls that are open, the outermost first
 *     spans of time ─▶ self: of the innermost open call's layer
 *                      cumulative: of every layer with an open call, once each
 *
 * All of a thread's time is some total's self time: without an open call it is that of layer 0. A total is one
 * (layer, pass, phase, operation). Functions that return int: 0 or -ENOMEM.
 */
#ifndef RLS_LAYER_TOTALS_H
#define RLS_LAYER_TOTALS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/base/index_map.h"
#include "analysis/correct/overhead_correction.h"
#include "analysis/event/event.h"

struct rls_layer_total {
	struct rls_layer_total *next;
	uint32_t layer; /* 0: none */
	enum rls_layer_pass pass;
	rls_string_id phase, operation;
	struct rls_cell cell; /* self */
	uint64_t cumulative_ns;
	uint64_t calls; /* begun */
};

/* A call that is open; the first is there always, for time in no layer. */
struct rls_open_layer {
	uint32_t layer; /* 0: not known, as its begin was lost */
	enum rls_layer_pass pass;
	struct rls_layer_total *total; /* of the phase and operation below; NULL: not looked up */
};

/* Zeroed: in no layer. */
struct rls_thread_layers {
	struct rls_layer_total *totals; /* latest first; owned */
	struct rls_index_map by_key;
	struct rls_open_layer open[1 + RLS_LAYER_DEPTH_MAX];
	uint32_t depth;
	rls_string_id phase, operation; /* of the totals in open */
};

void rls_thread_layers_free(struct rls_thread_layers *layers);

/* The thread's life begins anew: it is in no layer. Its totals stay. */
void rls_thread_layers_restart(struct rls_thread_layers *layers);

/* Adds a stretch of time and gives the cell of its self time, to which it is not added yet. The cell stays. */
int rls_thread_layers_add(struct rls_thread_layers *layers, rls_string_id phase,
			  rls_string_id operation, uint64_t ns, struct rls_cell **self);

/* A LAYER event. All time before it has been added. */
int rls_thread_layers_take(struct rls_thread_layers *layers, rls_string_id phase,
			   rls_string_id operation, const struct rls_event *event);

#endif
