/* Snapshot: what the monitor knows of every job on the host at one moment, as plain data.
 *
 *     engine (kernel maps, discovery, jobs) ──snapshot──▶ metrics/ (page, text file), top
 *
 * All figures are cumulative since the job was first seen and never decrease while it is in the
 * snapshot. Everything is borrowed from the maker of the snapshot and valid until the next one.
 * Texts come from targets: never NULL, NUL-terminated, but of any length and not always UTF-8.
 * Times are nanoseconds; time_ns and the like are on CLOCK_MONOTONIC.
 */
#ifndef RLS_SNAPSHOT_H
#define RLS_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/event/category.h"
#include "analysis/report/rows.h"

/* One for each (phase, operation, category, resource); the sum over threads. Of RLS_RESOURCE_GPU:
 * how long what was launched there kept GPUs busy, the sum over devices. */
struct rls_snapshot_row {
	const char *phase; /* "" when none was set */
	const char *operation; /* the innermost; "" when none was active */
	enum rls_category category; /* meaningless for RLS_RESOURCE_GPU */
	enum rls_resource resource;
	enum rls_method method; /* the worst of what is in it */
	uint64_t wall_ns; /* raw */
	uint64_t on_cpu_ns; /* of wall_ns; 0 where has_on_cpu is false */
	uint64_t corrected_ns; /* without the probes' own cost */
};

/* One for each (operation, from, to); never from or to unknown. */
struct rls_snapshot_transition {
	const char *operation;
	enum rls_category from, to;
	uint64_t count;
};

/* One for each device that the job was seen to use. */
struct rls_snapshot_gpu {
	uint32_t device;
	uint64_t busy_ns; /* the union of its intervals */
	uint64_t kernels;
	uint64_t
		smi_style_ns; /* windows of 1/6 s in which any kernel ran, as nvidia-smi would say */
};

struct rls_snapshot_job {
	uint64_t id; /* from 1, of this job alone as long as the monitor runs */
	const char *name; /* the job label: no two jobs of a snapshot have the same */
	const char *container; /* id, "" on the host */
	const char *unit; /* systemd's, "" when none */
	const char *cgroup; /* path */
	const char *command; /* comm of its first process */
	const char *python; /* "3.11.2", "" when unknown */
	uint64_t started_ns; /* when it was first seen */
	uint64_t ended_ns; /* 0 while any process of it lives */
	uint64_t processes_started;
	uint64_t processes_alive;
	const struct rls_snapshot_row *rows;
	size_t row_count;
	const struct rls_snapshot_transition *transitions;
	size_t transition_count;
	double transitions_error; /* how much of all counts may be wrong: 0 where all were counted */
	const struct rls_snapshot_gpu *gpus;
	size_t gpu_count;
	bool has_on_cpu; /* on_cpu_ns of the rows is known */
	uint64_t hits; /* of probes, silent ones included */
	uint64_t overhead_ns; /* what they cost by the calibration */
};

struct rls_snapshot_loss {
	const char *buffer; /* as in a report's `losses` */
	uint64_t dropped;
};

/* How the monitor itself is doing. */
struct rls_snapshot_health {
	uint64_t rss_bytes;
	uint64_t cpu_ns; /* user and system, of all its threads */
	uint64_t live_jobs;
	uint64_t open_files; /* descriptors */
	uint64_t sites; /* live probes */
	double budget_percent; /* < 0: none, everything is traced */
};

struct rls_snapshot {
	const char *version; /* "0.1.0" */
	uint64_t time_ns; /* when it was taken */
	uint64_t jobs_seen; /* ever, those that are gone included */
	uint64_t jobs_ended;
	const struct rls_snapshot_job *jobs;
	size_t job_count;
	const struct rls_snapshot_loss *losses;
	size_t loss_count;
	struct rls_snapshot_health health;
};

#endif
