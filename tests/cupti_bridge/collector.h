/* What a profiler would have received: every batch is checked as the recorder checks it, and
 * its records are counted and kept by correlation number. Ends the program with a sentence
 * at the first thing that may not be.
 */
#ifndef RLS_TESTS_COLLECTOR_H
#define RLS_TESTS_COLLECTOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cupti_bridge/batch.h"

#define COLLECTOR_CORRELATIONS (1u << 22)
#define COLLECTOR_KINDS 9

struct collected_launch {
	uint64_t start_ns, end_ns,
		call_ns; /* of the last work; of the runtime's call, or driver's */
	uint32_t tid, name; /* name: the number at the end of a fake kernel's */
	uint8_t works, runtime_calls, driver_calls;
};

struct collector {
	atomic_ulong count[COLLECTOR_KINDS]; /* by kind */
	atomic_ulong batches;
	_Atomic(uint64_t) dropped, refused, unpooled, unclaimed, flushed_ns;
	_Atomic(int64_t) clock_gap_ns;
	atomic_uint status_count, last_status, last_code, cupti_version;
	char sentence[RLS_CUPTI_NAME_BYTES_MAX]; /* of the last status */
	struct collected_launch *launches; /* COLLECTOR_CORRELATIONS of them */
};

extern struct collector collector;

void collector_receive(const void *batch, uint32_t bytes);
void collector_reset(void); /* the counts by kind */
unsigned long collector_records(void); /* all but statuses */

/* Ends the program unless it holds. */
#define REQUIRE(condition) require(condition, #condition, __FILE__, __LINE__)
void require(bool holds, const char *what, const char *file, int line);

#endif
