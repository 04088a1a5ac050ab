/* Parts of the recorder that keep tables of processes by themselves. Each is called when a target forks, executes or
 * ends. */
#include "userspace/record/gpu/gpu_activity.h"
#include "userspace/record/samples/code_map.h"
#include "userspace/record/samples/stack_samples.h"
#include "userspace/record/session.h"

/* The kernel side itself stops to track what ends. */
static void forget_in_kernel(void *context, struct rls_target *target, enum rls_target_over why,
			     uint64_t time_ns)
{
	const struct rls_recorder *recorder = context;

	if (why == RLS_TARGET_UNFOLLOWED)
		rls_kernel_untrack(recorder->kernel, target->pid);
}

/* The end of the process was reported for the other observers. */
static void forget_threads(void *context, struct rls_target *target, enum rls_target_over why,
			   uint64_t time_ns)
{
	const struct rls_recorder *recorder = context;

	if (why == RLS_TARGET_UNFOLLOWED)
		rls_translator_forget(recorder->translator, (uint32_t)target->pid);
}

static void forget_gpu(void *context, struct rls_target *target, enum rls_target_over why,
		       uint64_t time_ns)
{
	const struct rls_recorder *recorder = context;

	if (why == RLS_TARGET_EXECED)
		rls_gpu_execed(recorder->gpu, (uint32_t)target->pid);
	else if (why != RLS_TARGET_CLOSED)
		rls_gpu_ended(recorder->gpu, (uint32_t)target->pid, time_ns);
}

static void forget_code(void *context, struct rls_target *target, enum rls_target_over why,
			uint64_t time_ns)
{
	const struct rls_recorder *recorder = context;

	if (why != RLS_TARGET_CLOSED)
		rls_code_map_forget(recorder->code_map, target->pid);
}

static int fork_samples(void *context, const struct rls_target *parent, struct rls_target *child,
			uint64_t time_ns)
{
	const struct rls_recorder *recorder = context;

	return parent ? rls_samples_forked(recorder->samples, parent->pid, child->pid, time_ns) : 0;
}

/* Samples that wait in their ring are read while it is known what they are of. */
static void forget_samples(void *context, struct rls_target *target, enum rls_target_over why,
			   uint64_t time_ns)
{
	const struct rls_recorder *recorder = context;

	if (why != RLS_TARGET_CLOSED)
		rls_samples_catch_up(recorder->samples);
}

int rls_recorder_observe_targets(struct rls_recorder *recorder)
{
	const struct rls_target_observer observers[] = {
		{NULL, forget_in_kernel, recorder},
		{NULL, forget_threads, recorder},
		{NULL, forget_gpu, recorder},
		{NULL, forget_code, recorder},
		{fork_samples, forget_samples,
		 recorder}, /* the last to come is the first to forget */
	};
	size_t place;
	int r = 0;

	for (size_t i = 0; !r && i < sizeof(observers) / sizeof(observers[0]); i++)
		r = rls_targets_observe(&recorder->targets, &observers[i], &place);
	return r;
}
