#include "userspace/record/samples/open_waits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "bpf/wire/record.h"
#include "userspace/attach/kernel/kernel_sampling.h"
#include "userspace/base/clock.h"
#include "userspace/base/log.h"
#include "userspace/process/space.h"
#include "userspace/record/samples/infer_category.h"
#include "userspace/record/samples/interpreters.h"

/* For walking; and for all of it. */
#define WALK_NS_MAX 1000000000ULL
#define READ_NS_MAX 1500000000ULL

/* A wait whose stack has been walked. */
struct walked_wait {
	struct rls_wire_stack *stack; /* as long as its frames need; owned */
	uint64_t walked_ns;
};

struct walked_waits {
	struct walked_wait *all;
	size_t count;
	size_t left_out; /* stacks, for want of time */
	uint32_t *in_python; /* tids of those that are; room for all */
	size_t in_python_count;
	uint64_t begun_ns;
};

static void walked_waits_clear(struct walked_waits *walked)
{
	for (size_t i = 0; i < walked->count; i++)
		free(walked->all[i].stack);
	free(walked->all);
	free(walked->in_python);
}

static int walk(const struct rls_open_waits *waits, const struct rls_open_wait *from,
		struct walked_waits *walked)
{
	struct walked_wait *wait = &walked->all[walked->count];
	struct rls_wire_stack stack;
	size_t bytes;

	memcpy(&stack, from->head, sizeof(from->head));
	stack.frames = 0;
	if (rls_monotonic_ns() - walked->begun_ns < WALK_NS_MAX)
		rls_interpreters_walk(waits->interpreters, &stack);
	else
		walked->left_out++;
	bytes = RLS_STACK_HEAD_BYTES + stack.frames * sizeof(stack.frame[0]);
	wait->stack = malloc(sizeof(stack) < bytes ? sizeof(stack) : bytes);
	if (!wait->stack)
		return -ENOMEM;
	memcpy(wait->stack, &stack, bytes);
	wait->walked_ns = rls_monotonic_ns();
	walked->count++;
	return 0;
}

static int walk_all(const struct rls_open_waits *waits, struct walked_waits *walked)
{
	_cleanup_free_ struct rls_open_wait *heads = NULL;
	size_t count = rls_kernel_take_waiting(waits->kernel, &heads);
	int r = 0;

	if (!count || !waits->samples)
		return 0;
	walked->all = calloc(count, sizeof(*walked->all));
	walked->in_python = calloc(count, sizeof(*walked->in_python));
	if (!walked->all || !walked->in_python)
		return -ENOMEM;
	for (size_t i = 0; !r && i < count; i++)
		r = walk(waits, &heads[i], walked);
	return r;
}

/* What a thread that has Python frames is in: Python, or a library that it called. */
static int infer(const struct rls_open_waits *waits, const struct rls_wire_stack *stack,
		 enum rls_category *out)
{
	struct rls_wire_category_sample sample = {.header = stack->header, .ip = stack->ip};
	struct rls_inferred inferred;
	int r;

	sample.header.flags = RLS_SAMPLE_KERNEL;
	(void)rls_live_read((pid_t)stack->header.pid, stack->stack_pointer, sample.words,
			    sizeof(sample.words));
	r = rls_infer_category(waits->code_map, &sample, &inferred);
	if (r == -ENOMEM)
		return r;
	/* No probe would tell when it leaves code without a role: samples do. */
	*out = r || inferred.roleless || inferred.category == RLS_CATEGORY_UNKNOWN
		       ? RLS_CATEGORY_PYTHON
		       : inferred.category;
	return 0;
}

static int begin_in_python(const struct rls_open_waits *waits, const struct rls_wire_stack *stack,
			   struct walked_waits *walked)
{
	struct rls_event_sink sink = rls_event_output_sink(waits->output);
	enum rls_category category;
	int r = infer(waits, stack, &category);

	if (r)
		return r;
	walked->in_python[walked->in_python_count++] = stack->header.tid;
	return rls_emit_category(&sink, stack->header.pid, stack->header.tid, stack->header.time_ns,
				 category);
}

static int name_all(const struct rls_open_waits *waits, struct walked_waits *walked)
{
	int r = 0;

	for (size_t i = 0; !r && i < walked->count; i++) {
		struct rls_wire_stack *stack = walked->all[i].stack;
		bool late = rls_monotonic_ns() - walked->begun_ns > READ_NS_MAX;

		if (stack->frames && !late)
			r = begin_in_python(waits, stack, walked);
		if (stack->frames && late) {
			walked->left_out++;
			stack->frames = 0;
		}
		if (!r)
			r = rls_samples_open_wait(waits->samples, stack, walked->all[i].walked_ns);
	}
	return r;
}

static int report(const struct rls_open_waits *waits, const struct walked_waits *walked)
{

	if (!walked->left_out)
		return 0;
	return rls_event_output_warn(
		waits->output, walked->begun_ns,
		"samples: of %zu threads that waited when their recording began, the Python "
		"frames of %zu were not read: there was no time for more",
		walked->count, walked->left_out);
}

int rls_open_waits_read(const struct rls_open_waits *waits)
{
	struct walked_waits walked = {.begun_ns = rls_monotonic_ns()};
	int r = walk_all(waits, &walked);

	if (!r)
		r = name_all(waits, &walked);
	if (!r && walked.in_python_count)
		r = rls_kernel_announce(waits->kernel, walked.in_python, walked.in_python_count);
	if (!r)
		r = report(waits, &walked);
	rls_debug("%zu threads waited, %zu of them in Python; reading took %" PRIu64 " us",
		  walked.count, walked.in_python_count,
		  (rls_monotonic_ns() - walked.begun_ns) / 1000);
	walked_waits_clear(&walked);
	return r;
}
