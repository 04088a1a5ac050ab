/* Trace metadata: what a trace says beside its timeline: host, calibration, losses, warnings.
 *
 * Strings stay ids of the source's pool here; the report copies them (report/build_report.c).
 */
#ifndef RLS_TRACE_METADATA_H
#define RLS_TRACE_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/base/index_map.h"
#include "analysis/base/string_pool.h"
#include "analysis/event/event.h"

/* More warnings than these are only counted: a broken trace must not bury the report. */
#define RLS_WARNINGS_MAX 200

struct rls_fact_loss {
	rls_string_id buffer;
	uint64_t dropped;
};

struct rls_fact_calibration {
	rls_string_id name;
	double value_ns;
	double error_ns;
};

/* Figures that speak of whole workloads: the mean hit, by the machine's calibration and by
 * running the program itself with and without probes. */
#define RLS_FIGURE_HIT "hit"
#define RLS_FIGURE_WORKLOAD "workload.hit"
/* The same of hits in the operation of the name that follows; of none: outside any. */
#define RLS_FIGURE_OPERATION "workload.hit."
/* What hits elsewhere cost each piece of the operation of the name that follows. */
#define RLS_FIGURE_POLLUTION "workload.spill."
/* What a call into CUDA of the name that follows takes longer while CUPTI is armed. */
#define RLS_FIGURE_CUPTI "cupti."

/* No figure: where the others are from follows, by the names of enum rls_calibration_source. */
#define RLS_FIGURE_SOURCE "source."

/* How CLOCK_REALTIME lay to CLOCK_MONOTONIC on the host, by the readings of one boot. */
struct rls_host_clock {
	bool known;
	rls_string_id boot;
	int64_t offset_ns; /* realtime - monotonic, at the first reading */
	uint64_t width_ns; /* the widest reading, */
	uint64_t change_ns; /* and how far the offset was from the first since */
};

/* Zeroed: none yet. */
struct rls_trace_metadata {
	rls_string_id kernel;
	rls_string_id gpus;
	rls_string_id tool;
	uint32_t cpus;

	struct rls_host_clock clock;
	bool budgeted;
	struct rls_fact_budget {
		double percent, given_up_percent;
		uint32_t windowed_sites, given_up_sites;
	} budget;
	struct rls_fact_loss *losses; /* one per buffer, the largest total seen */
	size_t loss_count, loss_capacity;
	struct rls_fact_calibration *calibration; /* one per name, the latest */
	size_t calibration_count, calibration_capacity;
	rls_string_id warnings[RLS_WARNINGS_MAX]; /* each once */
	size_t warning_count;
	uint64_t warnings_left_out;
	struct rls_index_map map; /* (list, string) -> 1 + index */
};

void rls_trace_metadata_free(struct rls_trace_metadata *facts);

/* Takes a host, loss, calibration, budget or warning event. 0, or -ENOMEM. */
int rls_trace_metadata_add(struct rls_trace_metadata *facts, const struct rls_event *event);

/* The relative error, 0..1, of what all hits are said to cost: of the figure that was measured
 * for it, that of the workload rather than that of the machine; without either the worst among
 * the figures; 0.25 when there are none. */
double rls_trace_metadata_calibration_error(const struct rls_trace_metadata *facts,
					    const struct rls_string_pool *strings);
/* The same of hits in one operation, by its own figure: of what others' hits cost it, where that is
 * known, as it has hardly any. Without a figure: otherwise, the error of all hits. */
double rls_trace_metadata_operation_error(const struct rls_trace_metadata *facts,
					  const struct rls_string_pool *strings,
					  rls_string_id operation, double otherwise);
/* What others' hits cost the operation was charged. */
bool rls_trace_metadata_knows_pollution(const struct rls_trace_metadata *facts,
					const struct rls_string_pool *strings,
					rls_string_id operation);
/* The worst of the figures of CUPTI's costs; 0 without any. */
double rls_trace_metadata_cupti_error(const struct rls_trace_metadata *facts,
				      const struct rls_string_pool *strings);

/* What CUPTI costs calls of that name was charged. */
bool rls_trace_metadata_knows_cupti(const struct rls_trace_metadata *facts,
				    const struct rls_string_pool *strings, const char *name);

/* Total over the buffers of what threads do, and over those of GPU work: "gpu" and what begins
 * with "gpu_" or "cupti". */
uint64_t rls_trace_metadata_dropped(const struct rls_trace_metadata *facts,
				    const struct rls_string_pool *strings);
uint64_t rls_trace_metadata_dropped_gpu(const struct rls_trace_metadata *facts,
					const struct rls_string_pool *strings);

#endif
