#include "userspace/plan/brief.h"

#include <errno.h>

struct step {
	struct rls_instruction instruction;
	int lowered_bytes; /* by it: rsp, for those behind */
	size_t target; /* where it jumps to, or NOWHERE */
	bool reached;
	bool inside; /* on some way there no way out was passed */
	bool calls; /* it, or something behind it */
	uint32_t
		depth_bytes; /* how far above rsp the return address lies before it; where reached */
};

struct reading {
	struct step steps[RLS_BRIEF_INSTRUCTIONS];
	size_t count;
};

#define NOWHERE RLS_BRIEF_INSTRUCTIONS

static bool is_cheap(const struct step *step)
{
	return step->instruction.probeable && step->instruction.site_class == RLS_SITE_EMULATED;
}

static bool falls_through(const struct step *step)
{
	return rls_flow_falls_through(step->instruction.flow);
}

/* ---- reading ---- */

static int read_step(const struct rls_elf *elf, uint64_t vaddr, struct step *out)
{
	struct step step = {.target = NOWHERE};
	int err = rls_code_decode(elf, vaddr, &step.instruction);
	const uint8_t *bytes;

	if (err < 0)
		return err;
	if (step.instruction.flow == RLS_FLOW_NEXT) {
		bytes = rls_elf_bytes(elf, vaddr, step.instruction.length);
		if (!bytes || rls_decode_lowers_stack(bytes, step.instruction.length,
						      &step.lowered_bytes) < 0)
			return -ENOENT;
	}
	*out = step;
	return 0;
}

static bool is_within(const struct rls_code *code, uint64_t vaddr)
{
	return vaddr >= code->start && vaddr < code->end;
}

/* -ENOENT when it jumps back, or to between two instructions. */
static int find_target(const struct reading *reading, size_t from, uint64_t target, size_t *out)
{
	for (size_t i = from + 1; i < reading->count; i++) {
		if (reading->steps[i].instruction.vaddr != target)
			continue;
		*out = i;
		return 0;
	}
	return -ENOENT;
}

static int find_targets(struct reading *reading, const struct rls_code *code)
{
	int err = 0;

	for (size_t i = 0; err == 0 && i < reading->count; i++) {
		struct step *step = &reading->steps[i];
		uint64_t target = step->instruction.target;

		switch (step->instruction.flow) {
		case RLS_FLOW_CALL: /* itself it may call, from its beginning */
			err = is_within(code, target) && target != code->start ? -ENOENT : 0;
			break;
		case RLS_FLOW_BRANCH: /* where it leaves, it does so by one way out of two */
			err = find_target(reading, i, target, &step->target);
			break;
		case RLS_FLOW_JUMP:
			if (is_within(code, target))
				err = find_target(reading, i, target, &step->target);
			break;
		default:
			break;
		}
	}
	return err;
}

static int read_all(const struct rls_elf *elf, const struct rls_code *code, struct reading *reading)
{
	uint64_t at = code->start;

	while (at < code->end) {
		struct step *step = &reading->steps[reading->count];

		if (reading->count == RLS_BRIEF_INSTRUCTIONS || read_step(elf, at, step) < 0)
			return -ENOENT;
		at += step->instruction.length;
		reading->count++;
	}
	return find_targets(reading, code);
}

/* ---- passing through ---- */

static int reach(struct reading *reading, size_t i, uint32_t depth_bytes)
{
	struct step *step = &reading->steps[i];

	if (i >= reading->count || (step->reached && step->depth_bytes != depth_bytes))
		return -ENOENT;
	step->reached = true;
	step->depth_bytes = depth_bytes;
	return 0;
}

/* How deep the stack is before each step that is reached. -ENOENT when that is not certain, or it is
 * left otherwise than by a ret or a direct jump with the return address at rsp. */
static int find_depths(struct reading *reading)
{
	int err = reach(reading, 0, 0);

	for (size_t i = 0; err == 0 && i < reading->count; i++) {
		const struct step *step = &reading->steps[i];
		int64_t depth_bytes = (int64_t)step->depth_bytes + step->lowered_bytes;
		bool leaves;

		if (!step->reached)
			continue;
		leaves = step->instruction.flow == RLS_FLOW_RETURN ||
			 (step->instruction.flow == RLS_FLOW_JUMP && step->target == NOWHERE);
		if (depth_bytes < 0 || depth_bytes >= RLS_SITE_SLOT_BYTES_MAX || depth_bytes % 8 ||
		    (leaves && depth_bytes))
			return -ENOENT;
		if (!leaves && !falls_through(step) && step->target == NOWHERE)
			return -ENOENT;
		if (falls_through(step))
			err = reach(reading, i + 1, (uint32_t)depth_bytes);
		if (err == 0 && step->target != NOWHERE)
			err = reach(reading, step->target, (uint32_t)depth_bytes);
	}
	return err;
}

static void find_calls(struct reading *reading)
{
	for (size_t i = reading->count; i-- > 0;) {
		struct step *step = &reading->steps[i];

		step->calls = step->instruction.flow == RLS_FLOW_CALL ||
			      step->instruction.flow == RLS_FLOW_CALL_INDIRECT ||
			      (falls_through(step) && i + 1 < reading->count &&
			       reading->steps[i + 1].calls) ||
			      (step->target != NOWHERE && reading->steps[step->target].calls);
	}
}

/* The first cheap step on the one way in, as deep as an entry may be. */
static int find_entry(const struct reading *reading, size_t *out)
{
	for (size_t i = 0; i < reading->count; i++) {
		const struct step *step = &reading->steps[i];

		if (is_cheap(step)) {
			if (step->depth_bytes != RLS_SITE_ENTER_SLOT_BYTES)
				return -ENOENT;
			*out = i;
			return 0;
		}
		if (step->instruction.flow != RLS_FLOW_NEXT)
			return -ENOENT;
	}
	return -ENOENT;
}

static bool is_way_out(const struct step *step)
{
	return is_cheap(step) && !step->calls;
}

static int add_way_out(struct rls_brief *brief, const struct step *step)
{
	if (brief->way_out_count == RLS_BRIEF_WAYS_OUT)
		return -ENOENT;
	brief->ways_out[brief->way_out_count++] = (struct rls_way_out){
		.vaddr = step->instruction.vaddr,
		.slot_bytes = step->depth_bytes,
	};
	return 0;
}

/* Each way from the entry to its first way out. */
static int find_ways_out(struct reading *reading, size_t entry, struct rls_brief *brief)
{
	reading->steps[0].inside = true;
	for (size_t i = 0; i < reading->count; i++) {
		const struct step *step = &reading->steps[i];

		if (!step->inside)
			continue;
		if (i != entry && is_way_out(step)) {
			if (add_way_out(brief, step) < 0)
				return -ENOENT;
			continue;
		}
		if (step->instruction.flow == RLS_FLOW_RETURN)
			return -ENOENT;
		if (falls_through(step))
			reading->steps[i + 1].inside = true;
		if (step->target != NOWHERE)
			reading->steps[step->target].inside = true;
	}
	return 0;
}

static bool is_taken(const struct rls_addresses *taken, const struct rls_brief *brief)
{
	bool any = rls_addresses_any(taken, brief->entry.vaddr, brief->entry.vaddr);

	for (size_t i = 0; i < brief->way_out_count; i++)
		any |= rls_addresses_any(taken, brief->ways_out[i].vaddr, brief->ways_out[i].vaddr);
	return any;
}

int rls_brief_find(const struct rls_elf *elf, const struct rls_code *code,
		   const struct rls_addresses *taken, struct rls_brief *out)
{
	struct rls_brief brief = {0};
	struct reading reading = {0};
	size_t entry;

	if (!code->complete || read_all(elf, code, &reading) < 0 || find_depths(&reading) < 0 ||
	    find_entry(&reading, &entry) < 0)
		return -ENOENT;
	find_calls(&reading);
	if (find_ways_out(&reading, entry, &brief) < 0)
		return -ENOENT;
	brief.entry = reading.steps[entry].instruction;
	if (taken && is_taken(taken, &brief))
		return -ENOENT;
	*out = brief;
	return 0;
}
