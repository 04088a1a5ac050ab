#include "userspace/record/events/losses.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/base/grow.h"

#define THREADS_KEPT 1024 /* bounds memory where thousands of threads come and go */
#define THREADS_NAMED 5

void rls_losses_clear(struct rls_losses *losses)
{
	free(losses->threads);
	*losses = (struct rls_losses){0};
}

/* NULL when there is no place for one more; *r says whether for want of memory. */
static struct rls_thread_losses *thread_get(struct rls_losses *losses,
					    const struct rls_wire_header *header, int *r)
{
	struct rls_thread_losses *thread;

	*r = 0;
	for (size_t i = 0; i < losses->count; i++) {
		thread = &losses->threads[i];
		if (thread->tid == header->tid && thread->pid == header->pid)
			return thread;
	}
	if (losses->count == THREADS_KEPT)
		return NULL;
	*r = rls_grow(&losses->threads, &losses->room, losses->count);
	if (*r)
		return NULL;
	thread = &losses->threads[losses->count++];
	*thread = (struct rls_thread_losses){.pid = header->pid, .tid = header->tid};
	return thread;
}

int rls_losses_add(struct rls_losses *losses, const struct rls_wire_header *record, size_t size)
{
	const struct rls_wire_loss *loss = (const struct rls_wire_loss *)record;
	struct rls_thread_losses *thread;
	int r;

	if (record->kind != RLS_WIRE_LOSS || size < sizeof(*loss))
		return 0;
	thread = thread_get(losses, record, &r);
	if (!thread) {
		losses->others += !r;
		return r;
	}
	thread->events += loss->lost;
	thread->stretches++;
	if (record->time_ns > loss->since_ns)
		thread->unknown_ns += record->time_ns - loss->since_ns;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct rls_thread_losses *left = a, *right = b;

	return (left->unknown_ns < right->unknown_ns) - (left->unknown_ns > right->unknown_ns);
}

static int warn_of_thread(const struct rls_thread_losses *thread, struct rls_event_output *output,
			  uint64_t start_ns, uint64_t stop_ns)
{

	return rls_event_output_warn(
		output, stop_ns,
		"thread %u of process %u: %" PRIu64 " transitions lost (gaps: %" PRIu64
		"); what it did then was not traced: %.3f s, %.1f %% of the recording",
		thread->tid, thread->pid, thread->events, thread->stretches,
		(double)thread->unknown_ns / 1e9,
		100 * (double)thread->unknown_ns / (double)(stop_ns - start_ns + 1));
}

static int warn_of_rest(const struct rls_losses *losses, struct rls_event_output *output,
			uint64_t stop_ns)
{
	uint64_t unknown_ns = 0, stretches = losses->others;

	for (size_t i = THREADS_NAMED; i < losses->count; i++) {
		unknown_ns += losses->threads[i].unknown_ns;
		stretches += losses->threads[i].stretches;
	}
	if (!stretches)
		return 0;
	return rls_event_output_warn(output, stop_ns,
				     "other threads lost transitions too (gaps: %" PRIu64
				     "): %.3f s or more",
				     stretches, (double)unknown_ns / 1e9);
}

const char *rls_drop_name(enum rls_drop_counter which)
{
	static const char *const buffers[RLS_DROP_MAX] = {
		[RLS_DROP_TRANSITIONS] = "transitions",
		[RLS_DROP_CONTROL] = "control",
		[RLS_DROP_EDGES] = "operations",
		[RLS_DROP_THREADS] = "threads",
		[RLS_DROP_GPU] = "gpu",
		[RLS_DROP_SAMPLES] = "samples",
		[RLS_DROP_CELLS] = "cells",
	};

	return buffers[which];
}

int rls_losses_note(struct rls_losses *losses, const uint64_t drops[RLS_DROP_MAX],
		    struct rls_event_output *output, uint64_t time_ns)
{
	int r = 0;

	/* Cells are not of a recording. */
	for (int i = 0; !r && i < RLS_DROP_CELLS; i++) {
		if (drops[i] == losses->noted[i])
			continue;
		losses->noted[i] = drops[i];
		r = rls_event_output_loss(output, time_ns, rls_drop_name((enum rls_drop_counter)i),
					  drops[i]);
	}
	return r;
}

int rls_losses_report(struct rls_losses *losses, const uint64_t drops[RLS_DROP_MAX],
		      struct rls_event_output *output, uint64_t start_ns, uint64_t stop_ns)
{
	int r = 0;

	/* Cells are not of a recording. */
	for (int i = 0; !r && i < RLS_DROP_CELLS; i++)
		r = rls_event_output_loss(output, stop_ns, rls_drop_name((enum rls_drop_counter)i),
					  drops[i]);
	if (losses->count)
		qsort(losses->threads, losses->count, sizeof(*losses->threads), by_time);
	for (size_t i = 0; !r && i < losses->count && i < THREADS_NAMED; i++)
		r = warn_of_thread(&losses->threads[i], output, start_ns, stop_ns);
	return r ? r : warn_of_rest(losses, output, stop_ns);
}
