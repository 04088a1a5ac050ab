#include "userspace/machine_code/pointer_trace.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/base/grow.h"
#include "analysis/base/search.h"

enum {
	EXTENT_BYTES_MAX = 1 << 20,
	WORD_BYTES = 8,
	/* rax, rcx, rdx, rsi, rdi, r8 to r11 */
	CALL_CLOBBERS = 0x0fc7,
};

/* A question: what spot holds before the step. */
struct question {
	size_t step;
	struct rls_spot spot;
};

struct search {
	const struct rls_trace_code *code;
	uint64_t *steps_left;
	unsigned int steps;
	bool base; /* what is searched is an address, no word's content */
	struct question open[RLS_TRACE_BRANCHES];
	struct question asked[RLS_TRACE_BRANCHES]; /* of steps that are jumped to */
	struct question
		pointers[RLS_TRACE_ORIGINS]; /* words behind a pointer, to be searched in turn */
	size_t open_count, asked_count, pointer_count;
	struct rls_origins *origins;
};

static int compare_edges(const void *left, const void *right)
{
	const struct rls_trace_edge *a = left, *b = right;

	return a->target != b->target ? (a->target > b->target) - (a->target < b->target)
				      : (a->source > b->source) - (a->source < b->source);
}

static int add_step(struct rls_trace_code *code, const struct rls_instruction *instruction,
		    uint64_t size)
{
	uint64_t target = instruction->target - code->vaddr;

	if (rls_grow(&code->steps, &code->step_capacity, code->step_count))
		return -ENOMEM;
	code->steps[code->step_count] = (struct rls_trace_step){
		.offset = (uint32_t)(instruction->vaddr - code->vaddr),
		.length = instruction->length,
		.flow = (uint8_t)instruction->flow,
	};
	if ((instruction->flow == RLS_FLOW_JUMP || instruction->flow == RLS_FLOW_BRANCH) &&
	    target < size) {
		if (rls_grow(&code->edges, &code->edge_capacity, code->edge_count))
			return -ENOMEM;
		/* An offset until all steps are known. */
		code->edges[code->edge_count++] = (struct rls_trace_edge){
			.target = (uint32_t)target, .source = (uint32_t)code->step_count};
	}
	code->step_count++;
	return 0;
}

/* From sorted offsets to steps; jumps into the middle of an instruction lead nowhere. */
static void number_targets(struct rls_trace_code *code)
{
	size_t kept = 0, step = 0;

	for (size_t i = 0; i < code->edge_count; i++) {
		struct rls_trace_edge edge = code->edges[i];

		while (step < code->step_count && code->steps[step].offset < edge.target)
			step++;
		if (step == code->step_count || code->steps[step].offset != edge.target)
			continue;
		edge.target = (uint32_t)step;
		code->edges[kept++] = edge;
	}
	code->edge_count = kept;
}

int rls_trace_code_read(const struct rls_elf *elf, const struct rls_elf_extent *extent,
			bool has_landing_pads, struct rls_trace_code *out)
{
	size_t left = rls_elf_bytes_left(elf, extent->vaddr);
	size_t size = extent->size_bytes < left ? extent->size_bytes : left;
	struct rls_trace_code code = {.vaddr = extent->vaddr, .has_landing_pads = has_landing_pads};
	struct rls_instruction instruction = {0};

	int err = 0;

	code.bytes =
		size && size <= EXTENT_BYTES_MAX ? rls_elf_bytes(elf, extent->vaddr, size) : NULL;
	if (!code.bytes)
		return -EFAULT;
	for (size_t at = 0; err == 0 && at < size; at += instruction.length) {
		err = rls_decode(code.bytes + at, size - at, code.vaddr + at, &instruction);
		if (err == 0)
			err = add_step(&code, &instruction, size);
	}
	if (err < 0) {
		rls_trace_code_clear(&code);
		return err;
	}
	if (code.edge_count)
		qsort(code.edges, code.edge_count, sizeof(*code.edges), compare_edges);
	number_targets(&code);
	*out = code;
	return 0;
}

void rls_trace_code_clear(struct rls_trace_code *code)
{
	free(code->steps);
	free(code->edges);
	*code = (struct rls_trace_code){0};
}

int rls_trace_effect(const struct rls_trace_code *code, size_t step, struct rls_effect *out)
{
	uint32_t offset = code->steps[step].offset;

	return rls_decode_effect(code->bytes + offset, code->steps[step].length,
				 code->vaddr + offset, out);
}

static int add_origin(struct rls_origins *origins, struct rls_trace_origin origin)
{
	for (size_t i = 0; i < origins->count; i++)
		if (origins->items[i].kind == origin.kind &&
		    origins->items[i].vaddr == origin.vaddr &&
		    origins->items[i].table == origin.table)
			return 0;
	if (origins->count == RLS_TRACE_ORIGINS)
		return -ENOENT;
	origins->items[origins->count++] = origin;
	return 0;
}

static bool is_constant(const struct rls_spot *spot)
{
	return spot->base == RLS_NO_REGISTER && spot->index == RLS_NO_REGISTER;
}

static bool is_in_frame(const struct rls_spot *spot)
{
	return (spot->base == RLS_RSP || spot->base == RLS_RBP) && spot->index == RLS_NO_REGISTER;
}

static bool is_same_spot(const struct rls_spot *a, const struct rls_spot *b)
{
	return a->kind == b->kind && a->base == b->base && a->index == b->index &&
	       (a->kind == RLS_SPOT_REGISTER || a->displacement == b->displacement);
}

static int add_question(struct question *questions, size_t *count, size_t limit, size_t step,
			const struct rls_spot *spot)
{
	if (*count == limit)
		return -ENOENT;
	questions[(*count)++] = (struct question){step, *spot};
	return 0;
}

static int ask(struct search *search, size_t step, const struct rls_spot *spot)
{
	return add_question(search->open, &search->open_count, RLS_TRACE_BRANCHES, step, spot);
}

/* The value is that of source before the step. */
static int pointer_trace_follow(struct search *search, size_t step, const struct rls_spot *source)
{
	switch (source->kind) {
	case RLS_SPOT_ZERO:
		return search->base ? -ENOENT : 0;
	case RLS_SPOT_REGISTER:
		return ask(search, step, source);
	case RLS_SPOT_ADDRESS:
		if (!search->base || !is_constant(source))
			return -ENOENT;
		break;
	case RLS_SPOT_MEMORY:
		if (is_in_frame(source))
			return ask(search, step, source);
		if (search->base)
			return -ENOENT;
		if (!is_constant(source))
			return add_question(search->pointers, &search->pointer_count,
					    RLS_TRACE_ORIGINS, step, source);
		break;
	default:
		return -ENOENT;
	}
	return add_origin(search->origins,
			  (struct rls_trace_origin){.kind = source->kind,
						    .vaddr = (uint64_t)source->displacement});
}

/* Of a word in the frame, before a step that does not put the value there. */
static int pass_by_frame(struct search *search, size_t step, struct rls_spot spot,
			 const struct rls_effect *effect)
{
	const struct rls_spot *stored = &effect->stored;

	if (spot.base == RLS_RSP) {
		if (!effect->stack_known)
			return -ENOENT;
		spot.displacement -= effect->lowered_bytes;
	} else if (effect->written & 1U << spot.base) {
		return -ENOENT;
	}
	if (stored->kind == RLS_SPOT_MEMORY && stored->base == spot.base && is_in_frame(stored) &&
	    stored->displacement < spot.displacement + WORD_BYTES &&
	    spot.displacement < stored->displacement + effect->stored_bytes)
		return -ENOENT;
	return ask(search, step, &spot);
}

/* spot: where the value is after the step. */
static int pass_back(struct search *search, size_t step, const struct rls_spot *spot)
{
	bool is_register = spot->kind == RLS_SPOT_REGISTER;
	enum rls_flow flow = search->code->steps[step].flow;
	struct rls_effect effect;
	int err;

	if (search->steps++ == RLS_TRACE_STEPS || !*search->steps_left)
		return -ENOENT;
	--*search->steps_left;
	if (flow == RLS_FLOW_CALL || flow == RLS_FLOW_CALL_INDIRECT)
		return is_register && (CALL_CLOBBERS >> spot->base & 1) ? -ENOENT
									: ask(search, step, spot);
	if (rls_trace_effect(search->code, step, &effect) < 0)
		return -ENOENT;
	if (is_same_spot(&effect.target, spot)) {
		err = effect.may_keep ? ask(search, step, spot) : 0;
		return err ? err : pointer_trace_follow(search, step, &effect.source);
	}
	if (!is_register)
		return pass_by_frame(search, step, *spot, &effect);
	return effect.written >> spot->base & 1 ? -ENOENT : ask(search, step, spot);
}

/* Code that no visible jump reaches. */
static int pass_back_unseen(struct search *search, const struct question *question)
{
	const struct rls_trace_code *code = search->code;
	struct rls_effect effect;
	size_t found = 0;

	/* Padding behind a jump or a ret. */
	if (rls_trace_effect(code, question->step, &effect) == 0 && effect.nop)
		return 0;
	if (*search->steps_left < code->step_count)
		return -ENOENT;
	*search->steps_left -= code->step_count;
	for (size_t i = 0; i < code->step_count; i++) {
		enum rls_flow flow = code->steps[i].flow;
		bool is_call = flow == RLS_FLOW_CALL || flow == RLS_FLOW_CALL_INDIRECT;

		if (flow != RLS_FLOW_JUMP_INDIRECT && !(is_call && code->has_landing_pads))
			continue;
		if (pass_back(search, i, &question->spot) < 0)
			return -ENOENT;
		found++;
	}
	return found ? 0 : -ENOENT;
}

bool rls_trace_falls_through(const struct rls_trace_code *code, size_t step)
{
	return rls_flow_falls_through(code->steps[step].flow);
}

size_t rls_trace_edges(const struct rls_trace_code *code, size_t step)
{
	return rls_first_not(code->edge_count, i, code->edges[i].target < step);
}

static bool was_asked(const struct search *search, const struct question *question)
{
	for (size_t i = 0; i < search->asked_count; i++)
		if (search->asked[i].step == question->step &&
		    is_same_spot(&search->asked[i].spot, &question->spot))
			return true;
	return false;
}

static int answer(struct search *search, struct question question)
{
	const struct rls_trace_code *code = search->code;
	size_t step = question.step, edge = rls_trace_edges(code, step);
	bool is_target = edge < code->edge_count && code->edges[edge].target == step;
	int err = 0;

	if (!step)
		return -ENOENT; /* it is the caller's */
	if (!is_target && rls_trace_falls_through(code, step - 1))
		return pass_back(search, step - 1, &question.spot);
	if (was_asked(search, &question))
		return 0;
	err = add_question(search->asked, &search->asked_count, RLS_TRACE_BRANCHES, step,
			   &question.spot);
	if (err == 0 && !is_target)
		return pass_back_unseen(search, &question);
	if (err == 0 && rls_trace_falls_through(code, step - 1))
		err = pass_back(search, step - 1, &question.spot);
	for (; err == 0 && edge < code->edge_count && code->edges[edge].target == step; edge++)
		err = pass_back(search, code->edges[edge].source, &question.spot);
	return err;
}

static int pointer_trace_run(struct search *search)
{
	int err = 0;

	while (err == 0 && search->open_count)
		err = answer(search, search->open[--search->open_count]);
	return err;
}

/* A word behind a pointer is known where the pointer always is the same address. */
static int add_behind_pointer(const struct search *outer, const struct question *pointer)
{
	const struct rls_spot *word = &pointer->spot;
	struct rls_spot base = {
		.kind = RLS_SPOT_REGISTER, .base = word->base, .index = RLS_NO_REGISTER};
	bool table = word->index != RLS_NO_REGISTER;
	struct rls_origins bases = {0};
	struct search search = {.code = outer->code,
				.steps_left = outer->steps_left,
				.base = true,
				.open = {{pointer->step, base}},
				.open_count = 1,
				.origins = &bases};

	if (base.base == RLS_NO_REGISTER || (table && word->scale != WORD_BYTES))
		return -ENOENT;
	if (pointer_trace_run(&search) < 0 || bases.count != 1)
		return -ENOENT;
	return add_origin(outer->origins,
			  (struct rls_trace_origin){
				  .kind = RLS_SPOT_MEMORY,
				  .table = table,
				  .vaddr = bases.items[0].vaddr + (uint64_t)word->displacement,
			  });
}

int rls_trace(const struct rls_trace_code *code, size_t step, const struct rls_spot *spot,
	      uint64_t *steps_left, struct rls_origins *out)
{
	struct search search = {.code = code, .steps_left = steps_left, .origins = out};
	int err;

	out->count = 0;
	err = pointer_trace_follow(&search, step, spot);
	if (err == 0)
		err = pointer_trace_run(&search);
	for (size_t i = 0; err == 0 && i < search.pointer_count; i++)
		err = add_behind_pointer(&search, &search.pointers[i]);
	return err;
}
