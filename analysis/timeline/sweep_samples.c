#include "analysis/timeline/sweep_samples.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/timeline/thread_life.h"

/* ---- category samples ---- */

/* While unseen, the category is that of the latest category sample: the time line shows it. */
static int see(struct rls_timeline *timeline, struct rls_thread *thread, enum rls_category category)
{
	int err;

	if (category == thread->category)
		return 0;
	err = rls_thread_life_close_span(timeline, thread);
	if (!err)
		err = rls_thread_life_show_state(timeline, thread);
	thread->category = category;
	return err;
}

/* A category sample of a thread whose category is traced. Code without a role, called from Python, is native:
 * the trace cannot say so, and does not say otherwise. */
static int sample_traced(struct rls_timeline *timeline, struct rls_thread *thread,
			 enum rls_category inferred, uint64_t waited_ns)
{
	enum rls_category category = thread->category;
	struct rls_scope *scope;

	if (category == RLS_CATEGORY_PYTHON) {
		scope = rls_thread_life_scope(timeline, thread);
		if (scope && !scope->python)
			scope->python = calloc(1, sizeof(*scope->python));
		if (!scope || !scope->python)
			return -ENOMEM;
		if (inferred == RLS_CATEGORY_NATIVE)
			category = inferred;
		rls_category_samples_add(waited_ns ? &scope->python->waiting
						   : &scope->python->running,
					 category, waited_ns);
	}
	if (!waited_ns)
		rls_truth_add(&thread->process->truth, inferred, category, timeline->now_ns,
			      timeline->windows);
	return 0;
}

int rls_sweep_share(struct rls_timeline *timeline, const struct rls_event *event)
{
	enum rls_category inferred = event->share.category;
	struct rls_untraced *unseen;
	struct rls_thread *thread;
	struct rls_scope *scope;
	int err = rls_thread_life_find_thread(timeline, event, &thread);

	if (err || !thread)
		return err;
	if ((unsigned int)inferred >= RLS_CATEGORY_MAX)
		inferred = RLS_CATEGORY_UNKNOWN;
	if (!thread->unseen)
		return sample_traced(timeline, thread, inferred, event->share.waited_ns);
	thread->sampled = true;
	scope = rls_thread_life_scope(timeline, thread);
	unseen = scope ? rls_timeline_scope_untraced(scope) : NULL;
	if (!unseen)
		return -ENOMEM;
	if (event->share.waited_ns) {
		err = rls_thread_life_close_span(timeline, thread);
		rls_span_window_note_wait(&thread->window, timeline->now_ns,
					  event->share.waited_ns);
	}
	timeline->category_samples++;
	rls_category_samples_add(event->share.waited_ns ? &unseen->waiting : &unseen->running,
				 inferred, event->share.waited_ns);
	return err ? err : see(timeline, thread, inferred);
}

/* ---- stack samples ---- */

/* A thread without a state of its own (a helper that never met a probe) counts for what the
 * process's first thread is at. */
static const struct rls_thread *stand_in(struct rls_timeline *timeline,
					 const struct rls_process *process)
{
	const struct rls_thread *first =
		rls_index_map_get(&timeline->thread_map, (uintptr_t)process, process->pid);

	return first && first->alive_link ? first : NULL;
}

/* Outside annotated operations rules say what the sample's stack is in. */
static int apply_rules(struct rls_timeline *timeline, const struct rls_process *process,
		       struct rls_thread *thread, const struct rls_event *event,
		       rls_stack_id *stack)
{
	rls_string_id operation;
	int err = 0;

	if (*stack || !timeline->rules.count || !timeline->strings)
		return 0;
	operation = rls_operation_rules_find(&timeline->rules, timeline->strings,
					     &timeline->samples, event->sample.frame,
					     rls_operation_rules_qualified(rls_string_pool_get(
						     timeline->strings, process->python)));
	if (thread) {
		struct rls_scope *scope = rls_thread_life_scope(timeline, thread);

		err = scope ? rls_operation_samples_add(&scope->sampled, operation,
							thread->category, thread->unseen, event)
			    : -ENOMEM;
	}
	if (!err && operation)
		err = rls_stack_tree_find(&timeline->stacks, &operation, 1, stack);
	return err;
}

/* Without samples, what is not reported stays unknown. */
static bool is_inferred(const struct rls_thread *thread)
{
	return thread->unreported ? thread->sampled : thread->unseen;
}

int rls_sweep_sample(struct rls_timeline *timeline, const struct rls_event *event)
{
	const struct rls_thread *operating;
	struct rls_thread *thread;
	struct rls_process *process;
	struct rls_scope *scope;
	rls_stack_id stack;
	int err = rls_thread_life_find_process(timeline, event, &process);

	if (err || !process)
		return err;
	thread = rls_index_map_get(&timeline->thread_map, (uintptr_t)process, event->tid);
	if (thread && !thread->alive_link)
		thread = NULL;
	operating = thread ? thread : stand_in(timeline, process);
	stack = operating ? operating->stack : 0;
	err = apply_rules(timeline, process, thread, event, &stack);
	if (!err)
		err = rls_timeline_scope(timeline, process, &process->scopes, process->phase, stack,
					 &scope);
	return err ? err
		   : rls_sample_totals_add(&timeline->samples, event, process, scope,
					   thread ? thread->category : RLS_CATEGORY_UNKNOWN,
					   thread ? is_inferred(thread) : timeline->closed);
}

int rls_sweep_frame(struct rls_timeline *timeline, const struct rls_event *event)
{
	return rls_sample_totals_frame(&timeline->samples, event);
}

int rls_sweep_operation_rule(struct rls_timeline *timeline, const struct rls_event *event)
{
	return rls_operation_rules_add(&timeline->rules, event);
}
