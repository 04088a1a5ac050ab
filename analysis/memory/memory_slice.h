/* Memory slice: the part of a line's sums that lies in a slice of a trace (slice_source.h).
 *
 * Sums are from the recording's beginning on. Those of the slice are what they grew by since it began.
 * Blocks that were allocated before do not count as live in it, and their frees cannot be distinguished from
 * others: at most as many bytes are freed as were allocated in the slice.
 */
#ifndef RLS_MEMORY_SLICE_H
#define RLS_MEMORY_SLICE_H

#include "analysis/memory/memory_totals.h"

/* Makes a MEMORY_LINE, MEMORY_AGES or COPY_LINE event of a process the part of it after what the totals have. False:
 * there is none. */
bool rls_memory_slice(const struct rls_memory_totals *before,
		      const struct rls_process_memory *memory, struct rls_event *event);

#endif
