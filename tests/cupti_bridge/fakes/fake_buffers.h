/* Buffers of the fake CUPTI: what is recorded, until the client has it. All of it is under fake_libcupti.c's lock. */
#ifndef FAKE_BUFFERS_H
#define FAKE_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_records.h"

#define FAKE_THREADS_MAX 64
#define SECOND_NS 1000000000

typedef void (*buffer_requested)(uint8_t **buffer, size_t *size, size_t *records_max);
typedef void (*buffer_completed)(void *context, uint32_t stream, uint8_t *buffer, size_t size,
				 size_t valid_size);

/* A buffer that is being filled. Of all the first is the GPU's; the others are the callers', one
 * a thread from CUPTI 13 on and one for all before. */
struct fake_place {
	uint8_t *buffer;
	size_t size, used;
};

extern struct fake_buffers {
	struct fake_place places[1 + FAKE_THREADS_MAX];
	buffer_requested request;
	buffer_completed complete;
	int64_t clock_shift_ns; /* client's clock minus CLOCK_MONOTONIC, at the last flush */
	uint64_t dropped, dropped_in_all, stored;
	/* Settings, see fake_libcupti.c; 0: none. */
	uint64_t drop_every, zero_every, backward_every, early_every, future_every;
	bool is_reversed;
} fake_buffers;

uint64_t fake_monotonic_ns(void);

void fake_buffers_store(size_t place, const void *record, size_t bytes);
/* To be recorded when it has ended. False: no memory. */
bool fake_buffers_add_work(const struct fake_work *work);
/* Work that has ended by now becomes a record; all of it when forced. */
void fake_buffers_write_work(bool is_forced);
/* Those that have something in them; all when forced. */
void fake_buffers_deliver_all(bool is_forced);

#endif
