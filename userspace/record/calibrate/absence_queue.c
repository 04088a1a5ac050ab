#include "userspace/record/calibrate/absence_queue.h"

#include <errno.h>
#include <stdlib.h>

void rls_absence_queue_clear(struct rls_absence_queue *queue)
{
	free(queue->absences);
	*queue = (struct rls_absence_queue){0};
}

static struct rls_queued_absence *absence_queue_at(const struct rls_absence_queue *queue,
						   uint32_t number)
{
	return &queue->absences[(queue->first + number) % RLS_ABSENCES_QUEUED];
}

static void absence_queue_drop(struct rls_absence_queue *queue, uint32_t count)
{
	queue->first = (queue->first + count) % RLS_ABSENCES_QUEUED;
	queue->count -= count;
}

int rls_absence_queue_add(struct rls_absence_queue *queue, uint64_t until_ns, uint64_t away_ns)
{
	if (!queue->absences) {
		queue->absences = calloc(RLS_ABSENCES_QUEUED, sizeof(*queue->absences));
		if (!queue->absences)
			return -ENOMEM;
	}
	if (queue->count == RLS_ABSENCES_QUEUED)
		absence_queue_drop(queue, 1);
	*absence_queue_at(queue, queue->count++) = (struct rls_queued_absence){until_ns, away_ns};
	return 0;
}

static uint64_t sum(const struct rls_absence_queue *queue, uint64_t until_ns, uint32_t *count)
{
	uint64_t away_ns = 0;

	for (*count = 0;
	     *count < queue->count && absence_queue_at(queue, *count)->until_ns <= until_ns;
	     (*count)++)
		away_ns += absence_queue_at(queue, *count)->away_ns;
	return away_ns;
}

uint64_t rls_absence_queue_sum(const struct rls_absence_queue *queue, uint64_t until_ns)
{
	uint32_t count;

	return sum(queue, until_ns, &count);
}

uint64_t rls_absence_queue_take(struct rls_absence_queue *queue, uint64_t until_ns)
{
	uint32_t count;
	uint64_t away_ns = sum(queue, until_ns, &count);

	absence_queue_drop(queue, count);
	return away_ns;
}
