/* Pointer trace: where a value that a function uses comes from. Pure.
 *
 * The search goes backwards over all ways that lead to an instruction, through registers, the
 * function's stack frame, mov, cmov, push and pop, to the loads and addresses it began as. It gives
 * up where one way leads to anything else: an argument, a sum, what a call returned, memory behind
 * another pointer. So an answer says what the value always is, not what it may be.
 *
 * Targets of jump tables are not known: code that no visible jump reaches is taken to be
 * reached from every indirect jump of the function, and where the library has exception tables from
 * behind every call too. What writes through a pointer is taken not to change the frame's words that
 * hold the value. Values that cross between a function and its split-off cold part are not followed.
 */
#ifndef RLS_POINTER_TRACE_H
#define RLS_POINTER_TRACE_H

#include "userspace/elf/elf.h"
#include "userspace/machine_code/decoder.h"
#include "userspace/machine_code/effect.h"

/* More than that, and the value counts as unknown; real code stays far below. */
#define RLS_TRACE_ORIGINS 8
#define RLS_TRACE_BRANCHES 64
#define RLS_TRACE_STEPS 4096

struct rls_trace_step {
	uint32_t offset; /* from the extent's start */
	uint8_t length;
	uint8_t flow; /* enum rls_flow */
};

struct rls_trace_edge {
	uint32_t target, source; /* steps */
};

/* One extent of machine code, decoded. */
struct rls_trace_code {
	const uint8_t *bytes; /* borrowed from the file */
	uint64_t vaddr;
	struct rls_trace_step *steps;
	struct rls_trace_edge *edges; /* direct jumps, by target */
	size_t step_count, step_capacity, edge_count, edge_capacity;
	bool has_landing_pads;
};

/* has_landing_pads: exceptions may be caught in it. 0; -EFAULT when it is not in the file or larger than
 * 1 MiB, -EILSEQ when part of it is no code, -ENOMEM. On failure *out is as it was. */
int rls_trace_code_read(const struct rls_elf *elf, const struct rls_elf_extent *extent,
			bool has_landing_pads, struct rls_trace_code *out);
void rls_trace_code_clear(struct rls_trace_code *code);

/* 0, or -EILSEQ. */
int rls_trace_effect(const struct rls_trace_code *code, size_t step, struct rls_effect *out);

/* Whether the next step may be what follows. */
bool rls_trace_falls_through(const struct rls_trace_code *code, size_t step);
/* The first of the edges that lead to the step or to a later one; edge_count: there is none. */
size_t rls_trace_edges(const struct rls_trace_code *code, size_t step);

struct rls_origins {
	struct rls_trace_origin {
		enum rls_spot_kind kind; /* MEMORY: the word at vaddr; ADDRESS: vaddr itself */
		bool table; /* MEMORY: one of the words from vaddr on, picked by an index */
		uint64_t vaddr;
	} items[RLS_TRACE_ORIGINS]; /* unique */
	size_t count; /* 0: always a null pointer */
};

/* What spot holds just before the step. steps_left: what may still be read of this file, for hostile
 * ones. 0, or -ENOENT when some way leads to something else; then *out is undefined. */
int rls_trace(const struct rls_trace_code *code, size_t step, const struct rls_spot *spot,
	      uint64_t *steps_left, struct rls_origins *out);

#endif
