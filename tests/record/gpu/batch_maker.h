/* Batches as a bridge makes them, for tests to send or to spoil. */
#ifndef RLS_TESTS_BATCH_MAKER_H
#define RLS_TESTS_BATCH_MAKER_H

#include <stddef.h>
#include <stdint.h>

#include "cupti_bridge/batch.h"

struct batch_maker {
	struct rls_cupti_batch header;
	struct rls_cupti_record records[RLS_CUPTI_RECORDS_MAX];
	char strings[RLS_CUPTI_STRING_BYTES_MAX];
};

void batch_begin(struct batch_maker *maker, uint64_t sequence);
/* The record, its name set (NULL: none), the rest as given. */
struct rls_cupti_record *batch_add(struct batch_maker *maker, struct rls_cupti_record record,
				   const char *name);
/* Its bytes, into out of RLS_CUPTI_BATCH_BYTES_MAX: their number. */
size_t batch_bytes(const struct batch_maker *maker, void *out);

#endif
