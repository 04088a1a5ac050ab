#include "fake_buffers.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOUR_NS 3600000000000

struct fake_buffers fake_buffers;
static struct fake_work *pending;
static size_t pending_count, pending_room, pending_written = 4096;
static uint64_t record_number, work_number;

uint64_t fake_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

static void deliver(struct fake_place *place)
{
	struct fake_place full = *place;

	*place = (struct fake_place){0};
	if (full.buffer)
		fake_buffers.complete(NULL, 0, full.buffer, full.size, full.used);
}

void fake_buffers_store(size_t place_number, const void *record, size_t bytes)
{
	struct fake_place *place = &fake_buffers.places[place_number];
	size_t records_max = 0;

	if (!fake_buffers.request)
		return; /* it has left since this call was found to be one to be recorded */
	if (fake_buffers.drop_every && ++record_number % fake_buffers.drop_every == 0) {
		fake_buffers.dropped++;
		fake_buffers.dropped_in_all++;
		return;
	}
	if (place->buffer && place->used + bytes > place->size)
		deliver(place);
	if (!place->buffer) {
		fake_buffers.request(&place->buffer, &place->size, &records_max);
		place->used = 0;
	}
	if (!place->buffer || place->size < bytes) {
		fake_buffers.dropped++;
		fake_buffers.dropped_in_all++;
		return;
	}
	memcpy(place->buffer + place->used, record, bytes);
	place->used += bytes;
	fake_buffers.stored++;
}

static bool is_nth(uint64_t every)
{
	return every && work_number % every == 0;
}

/* The times as the client's clock has them, and as the settings spoil them. */
static void store_work(struct fake_work work, bool is_complete)
{
	uint8_t record[FAKE_RECORD_BYTES_MAX];
	bool is_gpu = work.kind != FAKE_SYNC;

	work.start_ns += fake_buffers.clock_shift_ns;
	work.end_ns += fake_buffers.clock_shift_ns;
	if (is_gpu) {
		work_number++;
		if (!is_complete || is_nth(fake_buffers.zero_every))
			work.start_ns = work.end_ns = 0;
		else if (is_nth(fake_buffers.backward_every))
			work.end_ns = work.start_ns - 1;
		else if (is_nth(fake_buffers.early_every))
			work.start_ns -= SECOND_NS;
		else if (is_nth(fake_buffers.future_every))
			work.end_ns += HOUR_NS;
	}
	fake_buffers_store(0, record, fake_record_work(&work, record));
}

void fake_buffers_write_work(bool is_forced)
{
	uint64_t now = fake_monotonic_ns();
	size_t kept = 0;

	for (size_t i = 0; i < pending_count; i++) {
		bool has_ended = pending[i].end_ns <= now;

		if (has_ended || is_forced)
			store_work(pending[i], has_ended);
		else
			pending[kept++] = pending[i];
	}
	pending_count = kept;
}

bool fake_buffers_add_work(const struct fake_work *work)
{
	if (pending_count == pending_room) {
		pending_room = pending_room ? 2 * pending_room : 1024;
		pending = realloc(pending, pending_room * sizeof(*pending));
		if (!pending)
			return false;
	}
	pending[pending_count++] = *work;
	if (pending_count >= pending_written) {
		fake_buffers_write_work(false);
		pending_written = pending_count > 2048 ? 2 * pending_count : 4096;
	}
	return true;
}

void fake_buffers_deliver_all(bool is_forced)
{
	size_t count = sizeof(fake_buffers.places) / sizeof(fake_buffers.places[0]);

	for (size_t i = 0; i < count; i++) {
		struct fake_place *place =
			&fake_buffers.places[fake_buffers.is_reversed ? count - 1 - i : i];

		if (place->used || is_forced)
			deliver(place);
	}
}
