/* Monitor: every training job on the host, as counters.
 *
 *     recorder (discovery, probes, budget) ─▶ events, names, samples ─┐
 *     kernel side's cells (bpf/totals.bpf.h) ─▶ sweep ────────────────┴▶ jobs ─▶ snapshot
 *
 * It is a recorder without a trace: the kernel side sums up, and the totals are read every few
 * seconds. When a process has ended, its figures are added to its job's and it is forgotten.
 *
 * A CPU row is never cpu+gpu: the kernel has summed up a thread's time before a bridge reports what
 * the GPU did. One thread does everything; others may call only in ticks.
 */
#ifndef RLS_MONITOR_H
#define RLS_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "userspace/monitor/snapshot.h"
#include "userspace/record/recorder.h"

/* What it points to must stay until the monitor is freed. */
struct rls_monitor_options {
	const struct rls_roles *roles;
	const struct rls_selection *selection; /* resolved, not empty */
	uint64_t duration_ns; /* 0: no limit */
	bool follow_children;
	double budget_percent; /* below 0: none */
	bool perf_events; /* attach one by one even where uprobe_multi works */
};

/* Any of them may be NULL. */
struct rls_monitor_hooks {
	/* All probes are live. */
	void (*started)(void *context);
	/* Every few milliseconds; may take a snapshot. Other than 0 ends it: -errno, or a positive
	 * number for a wish to. */
	int (*tick)(void *context, uint64_t time_ns);
	/* SIGINT, SIGTERM, SIGHUP; true: go on. Without it all end it, but a SIGHUP that is ignored. */
	bool (*on_signal)(void *context, int signal);
	void *context;
};

struct rls_monitor;

/* Loads the kernel side, and samples for jobs that run now. 0 or -errno, and has said why. */
int rls_monitor_open(const struct rls_monitor_options *options, struct rls_monitor **out);
void rls_monitor_free(struct rls_monitor *monitor);

/* Until a signal, the duration's end or a tick says stop. 0 or -errno, said. */
int rls_monitor_run(struct rls_monitor *monitor, const struct rls_monitor_hooks *hooks);

/* From a tick, or after the run: all that is known now, valid until the next is taken. 0 or
 * -errno. */
int rls_monitor_snapshot(struct rls_monitor *monitor, const struct rls_snapshot **out);

#endif
