#include "userspace/record/targets/target_table.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/base/grow.h"
#include "userspace/record/targets/process_info.h"

void rls_targets_clear(struct rls_targets *targets)
{
	for (size_t i = 0; i < targets->count; i++)
		free(targets->all[i]);
	free(targets->all);
	rls_index_map_free(&targets->by_pid);
	*targets = (struct rls_targets){0};
}

/* ---- observers ---- */

int rls_targets_observe(struct rls_targets *targets, const struct rls_target_observer *observer,
			size_t *place)
{
	if (targets->observer_count == RLS_TARGET_OBSERVERS_MAX)
		return -ENOSPC;
	*place = targets->observer_count;
	targets->observers[targets->observer_count++] = *observer;
	return 0;
}

static void have_forgotten(const struct rls_targets *targets, size_t place,
			   struct rls_target *target, enum rls_target_over why, uint64_t time_ns)
{
	const struct rls_target_observer *observer = &targets->observers[place];

	if (observer->forget)
		observer->forget(observer->context, target, why, time_ns);
	target->state[place] = NULL;
}

void rls_targets_leave(struct rls_targets *targets, size_t place)
{
	for (size_t i = 0; i < targets->count; i++)
		have_forgotten(targets, place, targets->all[i], RLS_TARGET_CLOSED, 0);
	targets->observers[place] = (struct rls_target_observer){0};
	while (targets->observer_count && !targets->observers[targets->observer_count - 1].forget)
		targets->observer_count--;
}

/* What came later may stand on what was there before. */
static void target_table_forget(const struct rls_targets *targets, struct rls_target *target,
				enum rls_target_over why, uint64_t time_ns)
{
	for (size_t place = targets->observer_count; place-- > 0;)
		have_forgotten(targets, place, target, why, time_ns);
}

/* ---- targets ---- */

struct rls_target *rls_targets_find(const struct rls_targets *targets, pid_t pid)
{
	return rls_index_map_get(&targets->by_pid, (uint64_t)pid, 0);
}

static int target_table_add(struct rls_targets *targets, pid_t pid, struct rls_target **out)
{
	struct rls_target *target = rls_targets_find(targets, pid);

	if (target) {
		*out = target;
		return 0;
	}
	if (rls_grow(&targets->all, &targets->room, targets->count))
		return -ENOMEM;
	target = calloc(1, sizeof(*target));
	if (!target || rls_index_map_put(&targets->by_pid, (uint64_t)pid, 0, target)) {
		free(target);
		return -ENOMEM;
	}
	target->pid = pid;
	target->index = targets->count;
	targets->all[targets->count++] = target;
	*out = target;
	return 0;
}

int rls_targets_add(struct rls_targets *targets, pid_t pid, bool root)
{
	struct rls_target *target;
	int r = target_table_add(targets, pid, &target);

	if (r)
		return r;
	target->root |= root;
	if (!target->start_ticks)
		rls_process_start(pid, &target->start_ticks);
	return 0;
}

static void target_table_drop(struct rls_targets *targets, struct rls_target *target,
			      enum rls_target_over why, uint64_t time_ns)
{
	struct rls_target *last = targets->all[targets->count - 1];

	target_table_forget(targets, target, why, time_ns);
	rls_index_map_remove(&targets->by_pid, (uint64_t)target->pid, 0);
	targets->all[target->index] = last;
	last->index = target->index;
	targets->count--;
	free(target);
}

size_t rls_targets_roots(const struct rls_targets *targets)
{
	size_t roots = 0;

	for (size_t i = 0; i < targets->count; i++)
		roots += targets->all[i]->root;
	return roots;
}

static void target_table_check(struct rls_target *target, uint64_t when_ns)
{
	if (!target->scan_ns || when_ns < target->scan_ns)
		target->scan_ns = when_ns;
}

void rls_targets_scan_at(struct rls_targets *targets, pid_t pid, uint64_t when_ns)
{
	struct rls_target *one = rls_targets_find(targets, pid);

	if (one)
		target_table_check(one, when_ns);
	for (size_t i = 0; !pid && i < targets->count; i++)
		target_table_check(targets->all[i], when_ns);
}

/* ---- their lives ---- */

/* One that is there already was found in /proc before its fork was reported; or it is another, whose
 * end was missed. */
static bool is_another(const struct rls_target *target)
{
	uint64_t start_ticks;

	return !target->start_ticks || rls_process_start(target->pid, &start_ticks) ||
	       start_ticks != target->start_ticks;
}

int rls_targets_forked(struct rls_targets *targets, pid_t parent, pid_t child, uint64_t time_ns)
{
	const struct rls_target *from = rls_targets_find(targets, parent);
	struct rls_target *target = rls_targets_find(targets, child);
	int r, first;

	if (target && target != from && is_another(target))
		target_table_drop(targets, target, RLS_TARGET_ENDED, time_ns);
	first = target_table_add(targets, child, &target);
	if (first)
		return first;
	for (size_t place = 0; place < targets->observer_count; place++) {
		const struct rls_target_observer *observer = &targets->observers[place];

		r = observer->forked ? observer->forked(observer->context, from, target, time_ns)
				     : 0;
		first = first ? first : r;
	}
	return first;
}

int rls_targets_execed(struct rls_targets *targets, pid_t pid, uint64_t time_ns)
{
	struct rls_target *target;
	int r = target_table_add(targets, pid, &target);

	if (r)
		return r;
	target_table_forget(targets, target, RLS_TARGET_EXECED, time_ns);
	target->called_ns = 0;
	target->execed_ns = target->mapped_ns = time_ns;
	target->blind_reported = false;
	target->warned_of_tracer = false;
	return 0;
}

static void drop_if_there(struct rls_targets *targets, pid_t pid, enum rls_target_over why,
			  uint64_t time_ns)
{
	struct rls_target *target = rls_targets_find(targets, pid);

	if (target)
		target_table_drop(targets, target, why, time_ns);
}

void rls_targets_ended(struct rls_targets *targets, pid_t pid, uint64_t time_ns)
{
	drop_if_there(targets, pid, RLS_TARGET_ENDED, time_ns);
}

void rls_targets_unfollow(struct rls_targets *targets, pid_t pid, uint64_t time_ns)
{
	drop_if_there(targets, pid, RLS_TARGET_UNFOLLOWED, time_ns);
}
