/* Records: how events are written inside an EVENTS chunk (trace_format.h says how).
 * Encoder and decoder stand side by side; each chunk starts both afresh.
 */
#ifndef RLS_TRACE_RECORD_H
#define RLS_TRACE_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/event/event.h"
#include "analysis/event/event_store.h"

struct rls_record_encoder;

/* NULL when out of memory. */
struct rls_record_encoder *rls_record_encoder_new(void);
void rls_record_encoder_free(struct rls_record_encoder *encoder);

/* Encodes a sorted store of at least one event. 0 and the bytes, which stay the encoder's
 * and good until its next use; or -ENOMEM. */
int rls_record_encode(struct rls_record_encoder *encoder, const struct rls_event_store *store,
		      const uint8_t **bytes, size_t *count);

/* A thread as the records of one chunk know it. */
struct rls_record_thread {
	uint32_t pid, tid;
	uint64_t unit_cost_ns; /* of its last HITS */
};

/* What file ids mean: the pool's id by the file's id, [0] being 0. */
struct rls_record_strings {
	const rls_string_id *ids;
	uint32_t count;
};

struct rls_record_decoder {
	const uint8_t *at, *end;
	uint64_t time_ns;
	uint64_t passed_ns; /* since the record before */
	struct rls_record_thread *threads;
	uint32_t thread_count;
	size_t thread_room;
	uint32_t thread; /* of the record before */
	bool hits_pending; /* the second half of a CATEGORY_HITS is due */
	struct rls_event hits; /* that half */
};

/* bytes stay the caller's and must outlive the decoder. */
void rls_record_decoder_init(struct rls_record_decoder *decoder, const uint8_t *bytes, size_t count,
			     uint64_t min_time_ns);
void rls_record_decoder_clear(struct rls_record_decoder *decoder);

/* 1 and *out, 0 at the end of the bytes, -EBADMSG for bytes that no encoder wrote, -ENOMEM.
 * Whatever it gives has passed rls_event_check. */
int rls_record_decode(struct rls_record_decoder *decoder, const struct rls_record_strings *strings,
		      struct rls_event *out);

#endif
