/* Sender: records → batches → the site. One thread.
 *
 * A batch is sent when it is full, and by rls_sender_send. It holds each name once. Names are
 * read from CUPTI's memory, which may have been unmapped.
 */
#ifndef RLS_CUPTI_SENDER_H
#define RLS_CUPTI_SENDER_H

#include "cupti_bridge/batch.h"

#define RLS_SENDER_NAME_SLOTS 256 /* a power of two, and twice the records of a batch */

struct rls_sender {
	struct rls_cupti_batch header; /* totals, clock and versions: set by the caller */
	struct rls_cupti_record records[RLS_CUPTI_RECORDS_MAX];
	char strings[RLS_CUPTI_STRING_BYTES_MAX];
	/* Names of this batch: where CUPTI has them → where `strings` does. */
	struct {
		const char *source;
		uint32_t offset; /* + 1; 0: cannot be read */
	} names[RLS_SENDER_NAME_SLOTS];
	char batch[RLS_CUPTI_BATCH_BYTES_MAX]; /* as it is sent */
};

/* `name` may be NULL, and may point to nothing. */
void rls_sender_add(struct rls_sender *sender, const struct rls_cupti_record *record,
		    const char *name);

/* A record about the bridge itself; `sentence` is ours, and cut to RLS_CUPTI_NAME_BYTES_MAX. */
void rls_sender_add_status(struct rls_sender *sender, enum rls_cupti_status status, uint64_t value,
			   uint64_t time_ns, const char *sentence);

/* Sends what there is, be it nothing. */
void rls_sender_send(struct rls_sender *sender);

#endif
