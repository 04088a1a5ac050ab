/* CUPTI's buffers as the bridge reads them: any bytes, walked by a CUPTI that may answer with
 * any place. The input is a count, so many steps (two bytes each, signed) that its answers
 * take in turn, and the buffer.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "cupti_bridge/decode.h"

static const uint8_t *steps;
static size_t step_count, step_at;

static int next_record(uint8_t *buffer, size_t valid_bytes, uint8_t **record)
{
	int16_t step = 0;

	if (!*record) {
		*record = buffer;
		return valid_bytes < 4 ? 12 : 0;
	}
	memcpy(&step, steps + 2 * (step_at++ % step_count), sizeof(step));
	if (step == INT16_MIN)
		return 21; /* a kind it does not know */
	*record += step;
	return *record >= buffer + valid_bytes && step % 2 ? 12 : 0;
}

static void check_record(const struct rls_cupti_record *record)
{
	fuzz_require(record->kind >= RLS_CUPTI_KERNEL && record->kind <= RLS_CUPTI_API,
		     "a record has a kind");
	if (rls_record_is_possible(record, 1000, 1u << 30))
		fuzz_require(record->start_ns >= 1000 && record->start_ns <= record->end_ns &&
				     record->end_ns <= 1u << 30,
			     "possible times are in order and within");
	fuzz_require(!rls_record_is_work(record) || !record->tid, "work has no thread of its own");
}

static void walk_all(uint8_t *buffer, size_t bytes)
{
	struct rls_walk walk = {.next = next_record, .buffer = buffer, .valid_bytes = bytes};
	size_t length, count = 0;
	const uint8_t *record;

	while (rls_walk_step(&walk, &record, &length) > 0) {
		struct rls_cupti_record decoded;
		const char *name;

		fuzz_require(record >= buffer && length && record + length <= buffer + bytes,
			     "a record lies in its buffer");
		fuzz_require(++count <= bytes, "a walk ends");
		if (rls_record_decode(record, length, &decoded, &name) == RLS_DECODED)
			check_record(&decoded);
	}
	fuzz_require(rls_walk_step(&walk, &record, &length) <= 0, "what has ended stays ended");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *buffer;
	size_t bytes;

	step_count = size ? data[0] : 0;
	step_at = 0;
	if (!step_count || size < 1 + 2 * step_count)
		return 0;
	steps = data + 1;
	bytes = size - 1 - 2 * step_count;
	buffer = malloc(bytes + !bytes); /* exactly: sanitizers see what is read beyond */
	if (!buffer)
		return 0;
	memcpy(buffer, steps + 2 * step_count, bytes);
	walk_all(buffer, bytes);
	free(buffer);
	return 0;
}
