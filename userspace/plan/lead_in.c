#include "userspace/plan/lead_in.h"

#include <errno.h>

#include "analysis/base/search.h"

enum { EDGES_MAX = 4 /* to one instruction */ };

/* Instructions from which nothing but the call can be reached. */
struct region {
	const struct rls_trace_code *code;
	size_t steps[RLS_LEAD_IN_STEPS];
	size_t count;
};

static bool lead_in_holds(const struct region *region, size_t step)
{
	for (size_t i = 0; i < region->count; i++)
		if (region->steps[i] == step)
			return true;
	return false;
}

static bool jumps_into(const struct region *region, size_t source)
{
	const struct rls_trace_code *code = region->code;

	for (size_t i = 0; i < region->count; i++) {
		size_t target = region->steps[i];

		for (size_t edge = rls_trace_edges(code, target);
		     edge < code->edge_count && code->edges[edge].target == target; edge++)
			if (code->edges[edge].source == source)
				return true;
	}
	return false;
}

/* Whether all that follows the step is in the region, and rsp is the same there. */
static bool leads_in(const struct region *region, size_t step)
{
	struct rls_effect effect;

	switch (region->code->steps[step].flow) {
	case RLS_FLOW_NEXT:
		if (!lead_in_holds(region, step + 1))
			return false;
		break;
	case RLS_FLOW_JUMP:
		if (!jumps_into(region, step))
			return false;
		break;
	case RLS_FLOW_BRANCH:
		if (!lead_in_holds(region, step + 1) || !jumps_into(region, step))
			return false;
		break;
	default:
		return false;
	}
	return rls_trace_effect(region->code, step, &effect) == 0 &&
	       !(effect.written & 1U << RLS_RSP);
}

static bool is_padding(const struct rls_trace_code *code, size_t step)
{
	struct rls_effect effect;

	return rls_trace_effect(code, step, &effect) == 0 && effect.nop;
}

/* The steps that may come right before; -ENOENT when there are too many, or some that are not known. */
static int find_before(const struct rls_trace_code *code, size_t step, size_t before[EDGES_MAX + 1],
		       size_t *count)
{
	size_t edge = rls_trace_edges(code, step);

	*count = 0;
	if (!step)
		return -ENOENT;
	if (rls_trace_falls_through(code, step - 1))
		before[(*count)++] = step - 1;
	for (; edge < code->edge_count && code->edges[edge].target == step; edge++) {
		if (*count > EDGES_MAX)
			return -ENOENT;
		before[(*count)++] = code->edges[edge].source;
	}
	return *count || is_padding(code, step) ? 0 : -ENOENT;
}

struct border {
	size_t entry, entry_count; /* steps that the region is entered by, the last of them */
	size_t before; /* a step that leads in */
	bool has_before;
};

static struct border find_border(const struct region *region)
{
	struct border border = {0};

	for (size_t i = 0; i < region->count; i++) {
		size_t before[EDGES_MAX + 1], count;
		bool entered = find_before(region->code, region->steps[i], before, &count) < 0;

		if (entered)
			count = 0;
		for (size_t k = 0; k < count; k++) {
			if (lead_in_holds(region, before[k]))
				continue;
			entered = true;
			if (!border.has_before && leads_in(region, before[k])) {
				border.before = before[k];
				border.has_before = true;
			}
		}
		border.entry_count += entered;
		if (entered)
			border.entry = region->steps[i];
	}
	return border;
}

static int find_step(const struct rls_trace_code *code, uint64_t vaddr, size_t *out)
{
	size_t low =
		rls_first_not(code->step_count, i, code->vaddr + code->steps[i].offset < vaddr);

	if (low == code->step_count || code->vaddr + code->steps[low].offset != vaddr)
		return -ENOENT;
	*out = low;
	return 0;
}

static int lead_in_decode(const struct rls_trace_code *code, size_t step,
			  struct rls_instruction *out)
{
	uint32_t offset = code->steps[step].offset;

	return rls_decode(code->bytes + offset, code->steps[step].length, code->vaddr + offset,
			  out);
}

int rls_lead_in_find(const struct rls_trace_code *code, uint64_t call_vaddr,
		     struct rls_instruction *out)
{
	struct region region = {.code = code, .count = 1};
	struct rls_instruction instruction;

	if (find_step(code, call_vaddr, &region.steps[0]) < 0)
		return -ENOENT;
	for (;;) {
		struct border border = find_border(&region);

		if (border.entry_count == 1 &&
		    lead_in_decode(code, border.entry, &instruction) == 0 &&
		    instruction.probeable && instruction.site_class == RLS_SITE_EMULATED) {
			*out = instruction;
			return 0;
		}
		if (!border.has_before || region.count == RLS_LEAD_IN_STEPS)
			return -ENOENT;
		region.steps[region.count++] = border.before;
	}
}
