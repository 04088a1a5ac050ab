/* Reference: the same figures as the sweep's, by looking at every instant.
 *
 * Slow and plain on purpose: it follows the definitions word by word, for small whole times
 * (REFERENCE_TIMES) and the few names of reference_name(), and shares no code with the sweep.
 * It expects traces as test_properties.c makes them: one life per process and thread, at most
 * one event of a kind per thread and instant, an end mark.
 */
#ifndef RLS_TEST_REFERENCE_H
#define RLS_TEST_REFERENCE_H

#include "tests/analysis/breakdown/script.h"

enum {
	REFERENCE_TIMES = 64,
	REFERENCE_PIDS = 2, /* 1, 2 */
	REFERENCE_TIDS = 3, /* 1..3 in each */
	REFERENCE_NAMES = 4, /* "", "a", "b", "c", for phases and operations */
};

struct reference_cell {
	uint64_t wall[2]; /* cpu, cpu+gpu */
	uint64_t subtracted;
	uint64_t off_cpu; /* of both */
};

struct reference {
	/* [pid - 1][tid - 1][phase][operation][category] */
	struct reference_cell cells[REFERENCE_PIDS][REFERENCE_TIDS][REFERENCE_NAMES]
				   [REFERENCE_NAMES][RLS_CATEGORY_MAX];
	uint64_t transitions[REFERENCE_PIDS][REFERENCE_TIDS][REFERENCE_NAMES][REFERENCE_NAMES]
			    [RLS_CATEGORY_MAX][RLS_CATEGORY_MAX];
	uint64_t gpu_alone[REFERENCE_PIDS][REFERENCE_NAMES];
	uint64_t busy[REFERENCE_PIDS];
	uint64_t launched[REFERENCE_PIDS][REFERENCE_NAMES][REFERENCE_NAMES];
};

const char *reference_name(int index);
void reference_compute(const struct script *script, struct reference *out);

#endif
