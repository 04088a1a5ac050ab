/* Batch validation: checks what a CUPTI bridge sends (cupti_bridge/batch.h) against the rules of
 * its format.
 *
 * The target writes a batch, so nothing in it is trusted. A batch with a wrong frame is refused
 * whole; in a sound frame each record is checked by itself. Pure: no state, no allocation, no read
 * outside the bytes, which may have any alignment.
 */
#ifndef RLS_BATCH_VALIDATE_H
#define RLS_BATCH_VALIDATE_H

#include <stddef.h>
#include <stdint.h>

#include "cupti_bridge/batch.h"

struct rls_batch_view {
	struct rls_cupti_batch header;
	const uint8_t *records; /* header.count of them, unaligned */
	const char *strings; /* header.string_bytes, the last one a NUL */
	int64_t clock_ahead_ns; /* what is subtracted from all times; see rls_batch_shift */
};

enum rls_batch_fault {
	RLS_BATCH_SOUND = 0,
	RLS_BATCH_SHORT, /* not even a header */
	RLS_BATCH_FOREIGN, /* not a batch */
	RLS_BATCH_VERSION, /* of a bridge of another version */
	RLS_BATCH_SIZE, /* its parts do not make up its size, or are too many */
	RLS_BATCH_STRINGS, /* the last is not ended */
};

/* What is wrong with a batch of exactly these bytes; *out is filled when it is sound. */
enum rls_batch_fault rls_batch_validate(const void *bytes, size_t size, struct rls_batch_view *out);

/* The bridge's clock is so far ahead of ours (a time namespace): times in the header and in the records are on ours from
 * here on. What is 0 is no time, and stays so. */
void rls_batch_shift(struct rls_batch_view *view, int64_t clock_ahead_ns);

/* Static storage: "of another version", ... */
const char *rls_batch_fault_text(enum rls_batch_fault fault);

struct rls_batch_record {
	struct rls_cupti_record record;
	const char *name; /* in the view's strings, "" for none */
	size_t name_bytes; /* without its NUL */
};

/* Record i, i < count. 0; -EINVAL for a kind that is none, a name that is not in the strings
 * or too long, a time of 0, above INT64_MAX, or an end before its start. What is not a span
 * of time (a status) has no times to check. */
int rls_batch_record(const struct rls_batch_view *view, size_t i, struct rls_batch_record *out);

#endif
