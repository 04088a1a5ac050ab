/* Stack samples: records of stacks (bpf/wire/stack.h) become FRAME and SAMPLE events.
 *
 *     stack ─▶ names of its frames (interpreters, code map) ─▶ frame tree ─▶ SAMPLE
 *     wait begins ─▶ kept, by thread ─▶ it is over ──────────────────▶ SAMPLE
 *
 * A running sample stands for the time since the previous tick of its CPU. A sampled wait stands
 * for itself, and for the waits that were not sampled.
 */
#ifndef RLS_STACK_STACK_SAMPLES_H
#define RLS_STACK_STACK_SAMPLES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire/stack.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/record/events/event_output.h"
#include "userspace/record/samples/code_map.h"

struct rls_interpreters;
struct rls_samples;

/* interpreters, code_map: borrowed, stay; interpreters gives names. */
int rls_samples_new(struct rls_kernel *kernel, struct rls_interpreters *interpreters,
		    struct rls_code_map *code_map, struct rls_event_output *output,
		    struct rls_samples **out);
void rls_samples_free(struct rls_samples *samples);

/* One record of kind RLS_WIRE_STACK or RLS_WIRE_WAITED. 0 or -errno. */
int rls_samples_add(struct rls_samples *samples, const struct rls_wire_header *record, size_t size);

/* A wait that began before its recording did, with frames that were read from outside by walked_ns: it counts from its
 * header's time on. 0 or -errno. */
int rls_samples_open_wait(struct rls_samples *samples, const struct rls_wire_stack *stack,
			  uint64_t walked_ns);

/* Each may be called with samples NULL. */
int rls_samples_began(struct rls_samples *samples, pid_t pid, uint64_t time_ns); /* 0 or -ENOMEM */
int rls_samples_forked(struct rls_samples *samples, pid_t parent, pid_t child, uint64_t time_ns);
/* Takes what waits on the samples' own ring: for what a process was seen doing before it is forgotten. */
void rls_samples_catch_up(struct rls_samples *samples);

/* Waits that are not over yet end with the recording; says what could not be walked, on
 * stderr and in the trace. 0 or -errno. */
int rls_samples_finish(struct rls_samples *samples, uint64_t stop_ns);

#endif
