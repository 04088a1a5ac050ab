/* Ledger: a job's figures, added up from the kernel side's totals and from samples.
 *
 *     growth of cells ──┬─ of a category ─────────────────────▶ rows, transitions
 *                       └─ untraced time ─▶ divide by samples ─▶ rows, transitions in proportion
 *     samples ──────────── while traced: how good inferred categories are; else: the category
 *
 * Only growth is added, so no figure decreases. Untraced time is divided as
 * analysis/timeline/untraced_state.h says, but each interval between two divisions by itself. Waiting is
 * divided as the operation's threads waited while they were traced, since a long wait is not sampled.
 * Time that nothing is known of waits until something is; at the job's end it is unknown.
 *
 * Memory is bounded: RLS_LEDGER_OPERATIONS names of operations and RLS_LEDGER_PHASES of phases,
 * the rest have the name RLS_LEDGER_OTHER, and RLS_LEDGER_SCOPES pairs of both. One thread.
 */
#ifndef RLS_MONITOR_LEDGER_H
#define RLS_MONITOR_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/event/category.h"
#include "analysis/gpu/gpu_busy.h"
#include "analysis/timeline/untraced_state.h"
#include "bpf/wire/totals.h"
#include "userspace/monitor/names.h"
#include "userspace/monitor/rate.h"
#include "userspace/monitor/snapshot.h"

#define RLS_LEDGER_OPERATIONS 200
#define RLS_LEDGER_PHASES 20
#define RLS_LEDGER_SCOPES 1000
#define RLS_LEDGER_OTHER RLS_NAMES_OTHER

/* One operation in one phase. */
struct rls_ledger_scope {
	uint16_t operation, phase; /* places in the ledger's names */
	uint64_t wall_ns[RLS_CATEGORY_MAX];
	uint64_t off_cpu_ns[RLS_CATEGORY_MAX]; /* of that, waiting */
	uint64_t sampled_ns[RLS_CATEGORY_MAX]; /* of what ran, divided by samples */
	bool traced_lately; /* since rates were aged */
	bool is_sampled[RLS_CATEGORY_MAX]; /* some of it was closed time */
	uint64_t cost_ns[RLS_CATEGORY_MAX];
	uint64_t corrected_ns[RLS_CATEGORY_MAX]; /* as shown last */
	uint64_t transitions[RLS_CATEGORY_MAX][RLS_CATEGORY_MAX];
	double scaled[RLS_CATEGORY_MAX][RLS_CATEGORY_MAX]; /* more of them, in closed time */
	double rate_counts[RLS_CATEGORY_MAX][RLS_CATEGORY_MAX]; /* lately, while traced */
	double rate_ns,
		rate_cost_ns; /* in how much running time that was, and what probes cost of it */
	struct rls_rate rate; /* of all of them together */
	struct {
		double count, ran_ns, cost_ns;
	} traced; /* since that was reported */
	struct rls_truth truth; /* of inferred categories in this scope */
	double waits_ns[RLS_CATEGORY_MAX]; /* waiting lately, while traced */
	struct {
		uint64_t ran_ns, waited_ns, cost_ns;
	} closed; /* to be divided */
	double unscaled_ns; /* divided, its transitions not reported yet */
	double samples_ns[RLS_CATEGORY_MAX]; /* by what they seemed to show, lately */
	struct rls_gpu_busy *gpus; /* what was launched in it, by the device's place */
	size_t gpu_count, gpu_room;
};

struct rls_ledger_names {
	char **texts;
	size_t count, room;
};

struct rls_ledger {
	struct rls_ledger_names operations, phases;
	bool has_others; /* some are RLS_LEDGER_OTHER, for want of room */
	struct rls_ledger_scope **scopes;
	size_t count, room;
	struct rls_truth truth; /* of inferred categories in all of them */
	uint64_t hits, cost_ns;
	/* For whoever reads; valid until the next rls_ledger_show. */
	struct rls_snapshot_row *rows;
	size_t row_count, row_room;
	struct rls_snapshot_transition *transitions;
	size_t transition_count, transition_room;
	double transitions_error; /* how much of the counts may be wrong */
};

void rls_ledger_clear(struct rls_ledger *ledger);

/* Its scope, made if it is not there; it stays where it is. NULL for a name: not known, other.
 * 0 or -ENOMEM. */
int rls_ledger_scope(struct rls_ledger *ledger, const char *operation, const char *phase,
		     struct rls_ledger_scope **out);

/* A cell of the scope has grown by this. */
void rls_ledger_add(struct rls_ledger *ledger, struct rls_ledger_scope *scope, uint32_t category,
		    const struct rls_wire_cell *more);

/* A sample that stands for so much time. category: what it is added to, RLS_TOTALS_CLOSED or the
 * truth. */
void rls_ledger_sample(struct rls_ledger *ledger, struct rls_ledger_scope *scope, uint32_t category,
		       enum rls_category inferred, uint64_t ns);

/* What the scope launched was busy on the job's device in this place. By start. 0 or -ENOMEM. */
int rls_ledger_gpu(struct rls_ledger_scope *scope, size_t place, uint64_t start_ns,
		   uint64_t end_ns);

/* Divides what has come since. last: nothing more will. */
void rls_ledger_apportion(struct rls_ledger *ledger, bool last);

/* Fills rows and transitions, and the error (95 %) of the latter: of counts that were scaled from windows,
 * by how windows differ and by the error of the calibration. 0 or -ENOMEM. */
int rls_ledger_show(struct rls_ledger *ledger);

#endif
