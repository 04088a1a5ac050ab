/* Activity records as the fake libcupti writes and walks them: CUPTI's public layouts, by
 * offset, with the sizes that this major version's have. Our own statement of them, apart
 * from the bridge's, so that both can be held against NVIDIA's parser (test_real_libraries).
 */
#ifndef RLS_TESTS_FAKE_RECORDS_H
#define RLS_TESTS_FAKE_RECORDS_H

#include "fake_cuda.h"

#define FAKE_RECORD_BYTES_MAX 256
enum {
	FAKE_DRIVER_API = 4,
	FAKE_RUNTIME_API = 5,
	FAKE_OVERHEAD = 17,
	FAKE_MEMCPY2 = 22,
	FAKE_EXTERNAL_CORRELATION = 39,
};

struct fake_api_record {
	enum fake_domain domain;
	uint32_t cbid, pid, tid, correlation;
	uint64_t start_ns, end_ns;
};

/* The size of a record of this kind; 0: no such kind. */
size_t fake_record_bytes(uint32_t kind);

/* Both write into FAKE_RECORD_BYTES_MAX zeroed bytes and return the size. */
size_t fake_record_work(const struct fake_work *work, void *record);
size_t fake_record_api(const struct fake_api_record *api, void *record);
size_t fake_record_overhead(uint32_t overhead_kind, uint32_t pid, uint32_t tid, uint64_t start_ns,
			    uint64_t end_ns, void *record);

/* CUPTI's numbers of these faults. */
enum { FAKE_END_OF_BUFFER = 12, FAKE_INVALID_KIND = 21 };

/* The record of a buffer behind *record, the first behind NULL. 0 or one of these. */
int fake_record_next(uint8_t *buffer, size_t valid_size, uint8_t **record);

#endif
