#include "userspace/record/cost/edge_queue.h"

#include <errno.h>
#include <stdlib.h>

void rls_edge_queue_clear(struct rls_edge_queue *queue)
{
	free(queue->edges);
	*queue = (struct rls_edge_queue){0};
}

static struct rls_queued_edge *edge_queue_at(const struct rls_edge_queue *queue, uint32_t number)
{
	return &queue->edges[(queue->first + number) % RLS_EDGES_QUEUED];
}

static void drop_first(struct rls_edge_queue *queue)
{
	queue->first = (queue->first + 1) % RLS_EDGES_QUEUED;
	queue->count--;
}

int rls_edge_queue_add(struct rls_edge_queue *queue, const struct rls_queued_edge *edge)
{
	if (!queue->edges) {
		queue->edges = calloc(RLS_EDGES_QUEUED, sizeof(*queue->edges));
		if (!queue->edges)
			return -ENOMEM;
	}
	if (queue->count == RLS_EDGES_QUEUED) {
		drop_first(queue);
		edge_queue_at(queue, 0)->gap = true;
	}
	*edge_queue_at(queue, queue->count++) = *edge;
	return 0;
}

bool rls_edge_queue_take(struct rls_edge_queue *queue, uint64_t until_ns,
			 struct rls_queued_edge *out)
{
	if (!queue->count || edge_queue_at(queue, 0)->time_ns > until_ns)
		return false;
	*out = *edge_queue_at(queue, 0);
	drop_first(queue);
	return true;
}
