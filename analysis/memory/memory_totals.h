/* Memory totals: what events say of the memory of processes, kept while a trace is swept.
 *
 *     MEMORY_LINE ─▶ place: sums so far, what is live, the curve of it
 *     MEMORY_AGES ─▶ its blocks by age
 *     MEMORY_USE  ─▶ use of main memory, or of a GPU's: its peak, a reduced timeline
 *     COPY_LINE   ─▶ copies (copies.h)
 *
 * A place is a line of a program in an operation and phase, by source and device. Memory follows the
 * number of places, not the length of the trace.
 */
#ifndef RLS_MEMORY_TOTALS_H
#define RLS_MEMORY_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/base/grow.h"
#include "analysis/base/index_map.h"
#include "analysis/base/text_hash.h"
#include "analysis/event/event.h"
#include "analysis/memory/copies.h"
#include "analysis/memory/lifetimes.h"
#include "analysis/memory/live_curve.h"
#include "analysis/memory/reduce_curve.h"

/* Places of all processes; more are left out. */
#define RLS_MEMORY_PLACES_MAX 65536

/* Main memory of a process, or that of a GPU as the process uses it. */
struct rls_used_memory {
	struct rls_used_memory *next;
	bool gpu;
	uint32_t device;
	bool known; /* an event said how much it is; else only live_bytes holds */
	uint64_t start_bytes, end_bytes; /* resident; of a GPU, allocated */
	uint64_t peak_bytes, peak_ns;
	uint64_t peaks; /* how often there was a new one */
	uint64_t used_bytes, limit_bytes; /* 0: not known */
	bool out_of_memory;
	uint64_t live_bytes; /* of its places, but those whose frees nobody sees */
	bool partial; /* frees of some places were seen for a time only, which are not in live_bytes any more */
	struct rls_live_curve curve;
	RLS_LIST(struct rls_memory_point {
		struct rls_curve_point point;
		uint64_t live_bytes;
	})
	points; /* some of the whole, the peak among them */
};

struct rls_memory_age {
	bool freed;
	uint64_t from_ns, to_ns;
	uint64_t count;
};

struct rls_memory_sums {
	uint64_t allocs, alloc_bytes;
	uint64_t frees, freed_bytes;
	uint64_t temporary_bytes, error_bytes;
};

struct rls_memory_place {
	struct rls_memory_place *next; /* of the process */
	struct rls_memory_place *same_hash;
	struct rls_memory_line of;
	struct rls_used_memory *use; /* that it is a part of */
	struct rls_memory_sums sums; /* so far */
	enum rls_memory_method method;
	uint64_t live_bytes;
	uint64_t peak_bytes;
	uint64_t at_peak_bytes; /* at the peak number peak of the use */
	uint64_t peak;
	struct rls_live_curve curve;
	RLS_LIST(struct rls_memory_age) ages;
};

/* Of one process. Zeroed is empty. */
struct rls_process_memory {
	bool any;
	uint64_t start_ns; /* of the first event */
	uint64_t active_ns; /* of the last one that changed a place's sums */
	struct rls_memory_place *places;
	struct rls_used_memory *uses;
	struct rls_copies copies;
};

/* Of a trace. Zeroed is empty. */
struct rls_memory_totals {
	struct rls_index_map map; /* (process, hash of the place) -> place */
	struct rls_text_seed seed;
	size_t places;
	uint64_t left_out; /* events of places beyond the most */
};

void rls_process_memory_free(struct rls_process_memory *memory);
void rls_memory_totals_free(struct rls_memory_totals *totals);

/* An event of one of those kinds, of the process whose memory it is. 0 or -ENOMEM. */
int rls_memory_totals_add(struct rls_memory_totals *totals, struct rls_process_memory *memory,
			  const struct rls_event *event);

/* The place of that process, or NULL. */
struct rls_memory_place *rls_memory_totals_find(const struct rls_memory_totals *totals,
						const struct rls_process_memory *memory,
						const struct rls_memory_line *of);

/* Whether it is known when blocks of a source are freed that were counted so: blocks of which only windows were counted
 * may be freed between two of them. */
static inline bool rls_memory_follows(enum rls_memory_source source, enum rls_memory_method method)
{
	return source != RLS_MEMORY_MALLOC && method != RLS_MEMORY_SCALED;
}

/* What was live there at the peak of its use. */
uint64_t rls_memory_place_at_peak(const struct rls_memory_place *place);

/* The blocks by age, as far as the trace says. */
void rls_memory_place_lifetimes(const struct rls_memory_place *place, struct rls_lifetimes *out);

#endif
