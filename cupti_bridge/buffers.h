/* Buffers: those that CUPTI fills. They are lent to it, queued by its threads when they come back,
 * and taken by our thread. CUPTI's threads do nothing else here and never wait for ours.
 *
 * Memory is bounded: RLS_BUFFERS_LARGE of RLS_BUFFER_BYTES, and when all are out or waiting
 * (a CUPTI that gives each thread its own, and very many threads) small ones up to
 * RLS_BUFFERS_MAX. Beyond that the oldest that waits is used again, its records counted as
 * lost. Each is a heap block of its own: another tool that takes CUPTI's callbacks over gets
 * our buffers too, and may free() them; one that is out is never touched by us again.
 */
#ifndef RLS_CUPTI_BUFFERS_H
#define RLS_CUPTI_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cupti_bridge/decode.h"

#define RLS_BUFFER_BYTES (1u << 20)
#define RLS_BUFFER_SMALL_BYTES (64u << 10)
#define RLS_BUFFERS_LARGE 64
#define RLS_BUFFERS_MAX 256
#define RLS_BUFFERS_MANY 16 /* that wait: not to be left until the next poll */

struct rls_buffer {
	uint8_t *bytes;
	size_t size;
	size_t valid_bytes;
	uint64_t order; /* of its coming back */
	uint8_t state;
};

/* CUPTI's callbacks; any thread, any number at once. */
void rls_buffers_requested(uint8_t **buffer, size_t *size, size_t *records_max);
void rls_buffers_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size,
			   size_t valid_bytes);

/* By which the records of a buffer that is used again are counted. Before registering. */
void rls_buffers_set_walk(rls_next_record next);

/* Our thread. Takes those that have come back by now, oldest first: up to RLS_BUFFERS_MAX.
 * They are ours until given back. */
size_t rls_buffers_take(struct rls_buffer **taken);
void rls_buffers_give_back(struct rls_buffer **taken, size_t count);

/* Frees the memory of those that are neither out nor waiting. */
void rls_buffers_trim(void);

/* Waits until many have come back, rls_buffers_wake is called, or CLOCK_MONOTONIC is this.
 * True in the first case. */
bool rls_buffers_wait(uint64_t until_ns);
void rls_buffers_wake(void);

/* Records lost because none was left, and buffers that are not ours and so were not read. */
uint64_t rls_buffers_lost(void);

/* In a forked child: nothing is lent or taken any more, and no lock touched. */
void rls_buffers_abandon(void);

#endif
