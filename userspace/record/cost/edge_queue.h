/* Edge queue: a thread's changes of operation, which arrive before the hits that follow them.
 * Pure.
 *
 *     control ring       a────────b──a────      all that has been sent so far, read first
 *     transitions ring    x x x x  x x  x x     each is due once the edges before it are taken
 *
 * Edges carry the times that the target wrote. Their order is checked, never assumed.
 */
#ifndef RLS_EDGE_QUEUE_H
#define RLS_EDGE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/event/event.h"

/* A thread can hardly be so far ahead; if it is, the oldest are let go. */
#define RLS_EDGES_QUEUED 4096

struct rls_queued_edge {
	uint64_t time_ns;
	rls_string_id now; /* the innermost operation from then on; 0: none */
	bool gap; /* others may have come just before, unseen */
	bool hit; /* it came with a probe's hit: it is a range's */
};

/* Zeroed: empty. */
struct rls_edge_queue {
	struct rls_queued_edge *edges; /* a ring; NULL until there is one */
	uint32_t first, count;
};

void rls_edge_queue_clear(struct rls_edge_queue *queue);

/* 0 or -ENOMEM. */
int rls_edge_queue_add(struct rls_edge_queue *queue, const struct rls_queued_edge *edge);

/* The next one, if it came no later than that. */
bool rls_edge_queue_take(struct rls_edge_queue *queue, uint64_t until_ns,
			 struct rls_queued_edge *out);

#endif
