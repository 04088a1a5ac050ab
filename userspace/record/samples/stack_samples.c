#include "userspace/record/samples/stack_samples.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/index_map.h"
#include "analysis/event/sample_kind.h"
#include "bpf/wire/record.h"
#include "bpf/wire/stack.h"
#include "userspace/attach/kernel/kernel_rings.h"
#include "userspace/base/clock.h"
#include "userspace/base/log.h"
#include "userspace/cpu/cpu_priority.h"
#include "userspace/record/samples/frame_tree.h"
#include "userspace/record/samples/interpreters.h"
#include "userspace/record/samples/wait_reason.h"

#define COMPILED "[compiled]" /* in place of a file, where the process made the code itself */

/* A wait that has begun. */
struct wait {
	uint64_t since_ns;
	uint32_t pid, tid;
	uint32_t frame, every;
	enum rls_sample_kind kind;
	/* Its Python frames were read from outside by then: those of another wait, if this one was over. 0: they came
	 * with its record. */
	uint64_t walked_ns;
	uint32_t bare; /* the frame without those of Python */
	/* For as long as its process's interpreter is not known: to read them later. */
	bool unwalked;
	uint64_t ip, thread_pointer;
};

struct rls_samples {
	struct rls_kernel *kernel;
	struct rls_event_output *output;
	struct rls_event_sink sink;
	struct rls_frame_tree tree;
	struct rls_interpreters *interpreters;
	struct rls_code_map *code_map;
	struct rls_index_map waits; /* tid → struct wait */
	uint64_t taken; /* stacks, of both sorts */
	uint64_t ends[RLS_STACK_END_MAX];
	uint64_t outlived; /* waits that ended while their frames were read */
	uint64_t framed; /* Python frames of stacks */
	uint64_t nameless; /* of them, those whose code object could not be read */
	uint64_t nowhere; /* leaves that are in no mapping */
	uint64_t indistinct; /* leaves in an interpreter of which it is not known what evaluates */
};

void rls_samples_free(struct rls_samples *samples)
{
	if (!samples)
		return;
	for (size_t i = 0; i < samples->waits.capacity; i++)
		free(samples->waits.entries[i].value);
	rls_index_map_free(&samples->waits);
	rls_frame_tree_free(&samples->tree);
	free(samples);
}

/* Names of what is large are read before anything of it is probed: the first sample would wait for them, and
 * with it all that the recorder has to do. */
#define LARGE_CODE_BYTES (8U << 20)

int rls_samples_began(struct rls_samples *samples, pid_t pid, uint64_t time_ns)
{
	_priority_ = rls_priority_set(RLS_PRIORITY_SPARE);
	int r = samples ? rls_code_map_prepare(samples->code_map, pid, LARGE_CODE_BYTES, time_ns)
			: 0;

	return r == -ENOMEM ? r : 0;
}

int rls_samples_forked(struct rls_samples *samples, pid_t parent, pid_t child, uint64_t time_ns)
{
	return samples ? rls_code_map_fork(samples->code_map, parent, child, time_ns) : 0;
}

void rls_samples_catch_up(struct rls_samples *samples)
{
	if (samples)
		rls_kernel_consume_stacks(samples->kernel);
}

/* ---- frames ---- */

/* Python frames, the outermost first. */
static int add_python_frames(struct rls_samples *samples, const struct rls_wire_stack *stack,
			     uint32_t *leaf)
{
	*leaf = 0;
	samples->framed += stack->frames;
	for (unsigned int i = stack->frames; i > 0; i--) {
		struct rls_frame frame;
		int r = rls_interpreters_name(samples->interpreters, (pid_t)stack->header.pid,
					      &stack->frame[i - 1], &frame);

		samples->nameless += r == -ENOENT;
		if (r == -ENOENT || r == 1)
			continue;
		if (!r)
			r = rls_frame_tree_id(&samples->tree, *leaf, &frame, stack->header.time_ns,
					      leaf);
		if (r)
			return r;
	}
	return 0;
}

/* Where a thread is: the place, and what is there. */
struct leaf {
	struct rls_code_place place;
	struct rls_native_file *file; /* NULL: memory of no file, or one that cannot be read */
	uint64_t vaddr;
};

/* The name of a native function: its symbol, else where it is. */
static int name_native(struct rls_samples *samples, const struct rls_wire_stack *stack,
		       const struct leaf *at, struct rls_frame *frame)
{
	const char *name = NULL, *path = at->place.mapping->path;
	char address[32];
	uint64_t start = at->vaddr;
	int r;

	if (at->file)
		name = rls_native_file_function(at->file, at->vaddr, &start);
	else
		name = rls_code_map_compiled(samples->code_map, (pid_t)stack->header.pid,
					     stack->header.time_ns, &at->place, &start);
	if (name && !at->file)
		path = COMPILED;
	if (!name)
		name = "";
	if (!*name && at->file) {
		snprintf(address, sizeof(address), "0x%" PRIx64, start);
		name = address;
	}
	frame->native = true;
	frame->line = 0;
	r = rls_emit_intern(&samples->sink, name, strlen(name), &frame->function);
	return r ? r : rls_emit_intern(&samples->sink, path, strlen(path), &frame->file);
}

static enum rls_sample_kind kind_of(const struct rls_wire_stack *stack, const struct leaf *at)
{
	if (stack->header.flags & RLS_STACK_STOPPED)
		return RLS_SAMPLE_WAIT_OTHER;
	if (stack->header.flags & RLS_STACK_WAITS)
		return rls_wait_reason((int32_t)stack->syscall, stack->argument,
				       stack->header.flags & RLS_STACK_PREEMPTED);
	if (stack->header.flags & RLS_SAMPLE_KERNEL)
		return RLS_SAMPLE_SYSTEM;
	if (!at->file || !rls_native_file_is_interpreter(at->file))
		return RLS_SAMPLE_NATIVE;
	return rls_native_file_evaluates(at->file, at->vaddr) ? RLS_SAMPLE_PYTHON
							      : RLS_SAMPLE_RUNTIME;
}

/* Where the thread is; nowhere when its process is gone. 0 or -ENOMEM. */
static int find_leaf(struct rls_samples *samples, const struct rls_wire_stack *stack,
		     struct leaf *out)
{
	struct leaf at = {.place = {.address = stack->ip}};
	pid_t pid = (pid_t)stack->header.pid;
	int r = rls_code_map_find(samples->code_map, pid, stack->header.time_ns, stack->ip, true,
				  &at.place);

	if (r == -ENOMEM)
		return r;
	if (!r)
		at.file = rls_code_map_native(samples->code_map, pid, &at.place, &at.vaddr);
	*out = at;
	return 0;
}

/* Below its Python frames the stack has the function that really runs; the evaluation loop
 * itself is no function of the program's. */
static int add_leaf(struct rls_samples *samples, const struct rls_wire_stack *stack,
		    const struct leaf *at, enum rls_sample_kind kind, uint32_t *leaf)
{
	struct rls_frame frame;
	int r;

	if (!at->place.mapping) {
		samples->nowhere++;
		return 0;
	}
	samples->indistinct +=
		kind == RLS_SAMPLE_RUNTIME && rls_native_file_hides_evaluation(at->file);
	if (kind == RLS_SAMPLE_PYTHON || kind == RLS_SAMPLE_WAIT_CPU)
		return 0;
	r = name_native(samples, stack, at, &frame);
	return r ? r
		 : rls_frame_tree_id(&samples->tree, *leaf, &frame, stack->header.time_ns, leaf);
}

/* ---- samples ---- */

/* What running code is judged by: a probe, or a library with a role. */
static void stack_samples_judge(const struct rls_wire_stack *stack,
				const struct rls_code_place *place, struct rls_event *event)
{
	enum rls_code_kind code = rls_code_kind_of(place->mapping, place->role, stack->ip,
						   stack->header.flags & RLS_SAMPLE_KERNEL);

	if (code == RLS_CODE_PROBE)
		event->sample.kind = RLS_SAMPLE_PROBE;
	else
		(void)rls_code_kind_has_category(code, &event->sample.code);
}

static int emit_running(struct rls_samples *samples, const struct rls_wire_stack *stack,
			const struct rls_code_place *place, uint32_t frame,
			enum rls_sample_kind kind)
{
	struct rls_event event = rls_event_at(RLS_EVENT_SAMPLE, stack->header.pid,
					      stack->header.tid, stack->header.time_ns);

	event.sample.frame = frame;
	event.sample.kind = kind;
	event.sample.ns = stack->argument;
	stack_samples_judge(stack, place, &event);
	return rls_emit(&samples->sink, &event);
}

static int end_wait(struct rls_samples *samples, const struct wait *wait, uint64_t time_ns)
{
	struct rls_event event = rls_event_at(RLS_EVENT_SAMPLE, wait->pid, wait->tid, time_ns);

	event.sample.frame = wait->frame;
	if (wait->walked_ns > time_ns) {
		event.sample.frame = wait->bare;
		samples->outlived++;
	}
	event.sample.kind = wait->kind;
	event.sample.ns = time_ns > wait->since_ns ? (time_ns - wait->since_ns) * wait->every : 0;
	event.sample.every = wait->every > 1 ? wait->every : 0;
	return rls_emit(&samples->sink, &event);
}

static int begin_wait(struct rls_samples *samples, const struct rls_wire_stack *stack,
		      uint32_t frame, enum rls_sample_kind kind, struct wait **out)
{
	uint32_t tid = stack->header.tid;
	struct wait *wait = rls_index_map_get(&samples->waits, tid, 0);
	int r;

	if (!wait) {
		wait = malloc(sizeof(*wait));
		r = wait ? rls_index_map_put(&samples->waits, tid, 0, wait) : -ENOMEM;
		if (r) {
			free(wait);
			return r;
		}
	}
	*wait = (struct wait){.since_ns = stack->header.time_ns,
			      .pid = stack->header.pid,
			      .tid = tid,
			      .frame = frame,
			      .every = stack->every,
			      .kind = kind,
			      .unwalked = stack->end == RLS_STACK_NO_INTERPRETER,
			      .ip = stack->ip,
			      .thread_pointer = stack->thread_pointer};
	*out = wait;
	return 0;
}

static int on_waited(struct rls_samples *samples, const struct rls_wire_waited *record)
{
	struct wait *wait = rls_index_map_get(&samples->waits, record->header.tid, 0);
	int r = 0;

	if (!wait)
		return 0;
	if (wait->since_ns == record->since_ns)
		r = end_wait(samples, wait, record->header.time_ns);
	rls_index_map_remove(&samples->waits, record->header.tid, 0);
	free(wait);
	return r;
}

/* Names of all frames, and what the thread is at. */
static int name_stack(struct rls_samples *samples, const struct rls_wire_stack *stack,
		      struct leaf *at, enum rls_sample_kind *kind, uint32_t *leaf)
{
	int r;

	samples->ends[stack->end]++;
	r = add_python_frames(samples, stack, leaf);
	if (!r)
		r = find_leaf(samples, stack, at);
	if (r)
		return r;
	*kind = kind_of(stack, at);
	return add_leaf(samples, stack, at, *kind, leaf);
}

/* A wait of which the kernel side could not walk the stack, now that it is known how. */
static int walk_open_wait(struct rls_samples *samples, struct wait *wait)
{
	struct rls_wire_stack stack = {
		.header = {.pid = wait->pid, .tid = wait->tid, .time_ns = wait->since_ns},
		.ip = wait->ip,
		.thread_pointer = wait->thread_pointer,
	};
	uint64_t walked_ns;
	struct leaf at;
	uint32_t frame;
	int r;

	rls_interpreters_walk(samples->interpreters, &stack);
	walked_ns = rls_monotonic_ns();
	if (!stack.frames)
		return 0;
	r = add_python_frames(samples, &stack, &frame);
	if (!r)
		r = find_leaf(samples, &stack, &at);
	if (!r)
		r = add_leaf(samples, &stack, &at, wait->kind, &frame);
	if (r)
		return r;
	wait->bare = wait->frame;
	wait->frame = frame;
	wait->walked_ns = walked_ns;
	return 0;
}

static int on_stack(struct rls_samples *samples, const struct rls_wire_stack *stack)
{
	enum rls_sample_kind kind;
	struct wait *wait;
	struct leaf at;
	uint32_t leaf;
	int r;

	samples->taken++;
	if (stack->end == RLS_STACK_NO_INTERPRETER)
		r = rls_interpreters_miss(samples->interpreters, (pid_t)stack->header.pid,
					  stack->header.time_ns);
	else /* a child may be sampled before its fork is reported */
		r = rls_interpreters_check(samples->interpreters, (pid_t)stack->header.pid,
					   stack->header.time_ns);
	if (!r)
		r = name_stack(samples, stack, &at, &kind, &leaf);
	if (r)
		return r;
	if (!(stack->header.flags & RLS_STACK_WAITS))
		return emit_running(samples, stack, &at.place, leaf, kind);
	r = begin_wait(samples, stack, leaf, kind, &wait);
	if (r || !wait->unwalked ||
	    !rls_interpreters_knows(samples->interpreters, (pid_t)wait->pid))
		return r;
	wait->unwalked = false; /* the interpreter was found since */
	return walk_open_wait(samples, wait);
}

int rls_samples_open_wait(struct rls_samples *samples, const struct rls_wire_stack *stack,
			  uint64_t walked_ns)
{
	enum rls_sample_kind kind;
	struct wait *wait;
	struct leaf at;
	uint32_t leaf, bare = 0;
	int r = name_stack(samples, stack, &at, &kind, &leaf);

	samples->taken++;
	if (!r)
		r = add_leaf(samples, stack, &at, kind, &bare);
	if (!r)
		r = begin_wait(samples, stack, leaf, kind, &wait);
	if (r)
		return r;
	wait->walked_ns = walked_ns;
	wait->bare = bare;
	return 0;
}

int rls_samples_add(struct rls_samples *samples, const struct rls_wire_header *record, size_t size)
{
	const struct rls_wire_stack *stack = (const struct rls_wire_stack *)record;

	if (record->kind == RLS_WIRE_WAITED && size >= sizeof(struct rls_wire_waited))
		return on_waited(samples, (const struct rls_wire_waited *)record);
	if (record->kind != RLS_WIRE_STACK || size < RLS_STACK_HEAD_BYTES ||
	    stack->frames > RLS_WALK_FRAMES_MAX || stack->end >= RLS_STACK_END_MAX ||
	    size < RLS_STACK_HEAD_BYTES + stack->frames * sizeof(stack->frame[0]))
		return 0;
	return on_stack(samples, stack);
}

static void walk_open_waits(void *context, pid_t pid)
{
	struct rls_samples *samples = context;

	for (size_t i = 0; i < samples->waits.capacity; i++) {
		struct wait *wait = samples->waits.entries[i].value;

		if (!wait || !wait->unwalked || wait->pid != (uint32_t)pid)
			continue;
		wait->unwalked = false;
		if (walk_open_wait(samples, wait))
			return;
	}
}

/* ---- opening ---- */

int rls_samples_new(struct rls_kernel *kernel, struct rls_interpreters *interpreters,
		    struct rls_code_map *code_map, struct rls_event_output *output,
		    struct rls_samples **out)
{
	struct rls_samples *samples = calloc(1, sizeof(*samples));

	if (!samples)
		return -ENOMEM;
	samples->kernel = kernel;
	samples->output = output;
	samples->code_map = code_map;
	samples->sink = rls_event_output_sink(output);
	samples->tree.sink = &samples->sink;
	samples->interpreters = interpreters;
	rls_interpreters_on_found(interpreters, walk_open_waits, samples);
	*out = samples;
	return 0;
}

/* ---- finishing ---- */

/* A few samples lack something in any recording: of processes that begin or end, say. Below this
 * share it moves no figure by more than its error. */
#define SHARE_TO_WARN_OF 0.05

static bool is_much(uint64_t count, uint64_t whole)
{
	return (double)count > SHARE_TO_WARN_OF * (double)whole;
}

static int stack_samples_warn(struct rls_samples *samples, uint64_t time_ns, uint64_t count,
			      const char *what)
{

	if (!is_much(count, samples->taken))
		return 0;
	return rls_event_output_warn(samples->output, time_ns,
				     "samples: of %" PRIu64 ", %" PRIu64 " %s", samples->taken,
				     count, what);
}

static int warn_of_nameless(struct rls_samples *samples, uint64_t time_ns)
{

	if (!is_much(samples->nameless, samples->framed))
		return 0;
	return rls_event_output_warn(samples->output, time_ns,
				     "samples: of %" PRIu64 " Python frames, %" PRIu64
				     " were of code that was gone before it could be named",
				     samples->framed, samples->nameless);
}

static int warn_of_full_tree(struct rls_samples *samples, uint64_t time_ns)
{

	if (!samples->tree.full)
		return 0;
	return rls_event_output_warn(
		samples->output, time_ns,
		"samples: %u places in the program are distinguished, not more",
		RLS_FRAME_TREE_MAX);
}

int rls_samples_finish(struct rls_samples *samples, uint64_t stop_ns)
{
	int r = 0;

	for (size_t i = 0; !r && i < samples->waits.capacity; i++) {
		if (samples->waits.entries[i].value)
			r = end_wait(samples, samples->waits.entries[i].value, stop_ns);
	}
	if (!r)
		r = stack_samples_warn(samples, stop_ns,
				       rls_interpreters_missed(samples->interpreters),
				       "were taken before their Python interpreter was known: they "
				       "lack its frames");
	if (!r)
		r = stack_samples_warn(samples, stop_ns,
				       rls_interpreters_refused(samples->interpreters),
				       "were of Python builds whose stacks cannot be walked: they "
				       "lack Python's frames");
	if (!r)
		r = stack_samples_warn(
			samples, stop_ns, samples->ends[RLS_STACK_FAULT],
			"met memory that could not be read then: their outer frames are missing");
	if (!r)
		r = stack_samples_warn(
			samples, stop_ns, samples->outlived,
			"waits ended while their stacks were read from outside: they "
			"lack Python's frames");
	if (!r)
		r = stack_samples_warn(samples, stop_ns, samples->ends[RLS_STACK_ENTERING],
				       "were of threads that were entering Python from C just "
				       "then: they lack its frames");
	if (!r)
		r = stack_samples_warn(
			samples, stop_ns, samples->ends[RLS_STACK_TOO_DEEP],
			"were of deeper stacks than are walked: their outer frames are missing");
	if (!r)
		r = warn_of_nameless(samples, stop_ns);
	if (!r)
		r = stack_samples_warn(samples, stop_ns, samples->nowhere,
				       "were in memory that is no longer known");
	if (!r)
		r = stack_samples_warn(samples, stop_ns, samples->indistinct,
				       "were in a Python built without an evaluation loop and "
				       "stripped: evaluating code counts as its runtime's");
	return r ? r : warn_of_full_tree(samples, stop_ns);
}
