/* CUPTI's activity records → records of a batch. Pure functions on bytes: no CUPTI, no state.
 *
 * Fields are read at fixed offsets, which are the same in CUPTI 11.8 to 13.5 because its
 * records grow at their ends only. Where a record ends is known from CUPTI's own walk alone.
 */
#ifndef RLS_CUPTI_DECODE_H
#define RLS_CUPTI_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cupti_bridge/batch.h"

/* CUPTI's kinds of records, those that are asked for; and its records of waits, which another tool may ask for. */
enum rls_activity_kind {
	RLS_ACTIVITY_MEMCPY = 1,
	RLS_ACTIVITY_MEMSET = 2,
	RLS_ACTIVITY_KERNEL = 3,
	RLS_ACTIVITY_DRIVER = 4,
	RLS_ACTIVITY_RUNTIME = 5,
	RLS_ACTIVITY_CONCURRENT_KERNEL = 10,
	RLS_ACTIVITY_OVERHEAD = 17,
	RLS_ACTIVITY_MEMCPY_PEER = 22,
	RLS_ACTIVITY_SYNCHRONIZATION = 38,
	RLS_ACTIVITY_GRAPH_TRACE = 51,
};

enum rls_decoded {
	RLS_DECODED, /* a record */
	RLS_DECODE_SKIPPED, /* a call that launches nothing */
	RLS_DECODE_UNKNOWN, /* of another kind */
	RLS_DECODE_SHORT, /* shorter than its kind can be */
};

/* `length` bytes are one record. On RLS_DECODED `out` is filled but for its name, and `name`
 * is where CUPTI keeps that in memory, NULL if it has none: not to be trusted. */
enum rls_decoded rls_record_decode(const uint8_t *bytes, size_t length,
				   struct rls_cupti_record *out, const char **name);

/* Has it an end, a beginning not after that, and both within these? */
bool rls_record_is_possible(const struct rls_cupti_record *record, uint64_t earliest_ns,
			    uint64_t latest_ns);

/* Is it work of the GPU's, which some call has launched? */
bool rls_record_is_work(const struct rls_cupti_record *record);

/* CUPTI's cuptiActivityGetNextRecord. */
typedef int (*rls_next_record)(uint8_t *buffer, size_t valid_bytes, uint8_t **record);

/* A walk over a buffer's records. Zero but for the first three, to begin with. */
struct rls_walk {
	rls_next_record next;
	uint8_t *buffer;
	size_t valid_bytes;
	uint8_t *ahead; /* CUPTI's last answer: the record after the one given out */
	bool has_begun, has_ended;
	int result; /* CUPTI's last */
	int error; /* what ends the walk, or 0 */
};

/* 1: the next record, of `length` bytes. 0: the end. -EBADMSG: CUPTI cannot read on, or has
 * answered with what lies outside of the buffer or goes back; what is left is lost. */
int rls_walk_step(struct rls_walk *walk, const uint8_t **record, size_t *length);

#endif
