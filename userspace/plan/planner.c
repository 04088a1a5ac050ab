#include "userspace/plan/planner.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/base/grow.h"
#include "userspace/machine_code/code.h"
#include "userspace/plan/brief.h"
#include "userspace/plan/choice.h"
#include "userspace/plan/exits.h"
#include "userspace/plan/lead_in.h"

struct planner {
	const struct rls_library *library;
	struct rls_elf *elf;
	struct rls_plan plan;
	size_t capacity;
	struct rls_addresses callbacks; /* where calls and jumps into Python are seen, sorted */
	struct rls_instruction
		*calls; /* by function: where a callback's call is seen; zeroed for others */
	struct rls_trace_code
		trace; /* the extent of the last single-stepped call; step_count 0: none */
	struct rls_addresses jumps; /* what functions with exits of their own jump to */
	/* The extent read last: functions are sorted, and many callbacks lie in one. */
	struct rls_code code;
	bool has_code;
	uint64_t bytes_left; /* of code to read */
};

/* Of one file: the code of PyTorch's largest library four times over. Beyond it sites are
 * chosen as where no extent is known. */
#define CODE_BYTES_MAX (1ULL << 30)

const char *rls_plan_skip_text(enum rls_plan_skip skip)
{
	switch (skip) {
	case RLS_PLAN_NOT_CODE:
		return "not in executable code";
	case RLS_PLAN_NOT_PROBEABLE:
		return "no instruction there can be probed";
	default:
		return "unknown";
	}
}

void rls_plan_clear(struct rls_plan *plan)
{
	free(plan->sites);
	*plan = (struct rls_plan){0};
}

static int planner_append(struct planner *planner, const struct rls_site *site)
{
	struct rls_plan *plan = &planner->plan;

	if (rls_grow(&plan->sites, &planner->capacity, plan->count))
		return -ENOMEM;
	plan->sites[plan->count++] = *site;
	return 0;
}

static int planner_add(struct planner *planner, struct rls_site site,
		       const struct rls_instruction *instruction)
{
	site.vaddr = instruction->vaddr;
	site.site_class = instruction->site_class;
	if (rls_elf_file_offset(planner->elf, site.vaddr, &site.file_offset) < 0) {
		planner->plan.skipped[RLS_PLAN_NOT_CODE]++;
		return 0;
	}
	return planner_append(planner, &site);
}

/* The extent that holds vaddr, from .eh_frame or else from the function's symbol; NULL
 * when neither tells. */
static int code_at(struct planner *planner, uint64_t vaddr, uint64_t size_bytes,
		   const struct rls_code **out)
{
	const struct rls_elf_extent *extent = rls_elf_extent_at(planner->elf, vaddr);
	uint64_t start = extent ? extent->vaddr : vaddr;
	struct rls_code code;
	int err;

	*out = NULL;
	if (extent)
		size_bytes = extent->size_bytes;
	if (!size_bytes)
		return 0;
	if (planner->has_code && planner->code.start == start) {
		*out = &planner->code;
		return 0;
	}
	err = rls_code_read(planner->elf, start, size_bytes, &planner->bytes_left, &code);
	if (err < 0)
		return err == -EFAULT || err == -EFBIG ? 0 : err;
	rls_code_clear(&planner->code);
	planner->code = code;
	planner->has_code = true;
	*out = &planner->code;
	return 0;
}

/* A C function through which others' exceptions may pass (callbacks, threads that end inside)
 * is watched at its rets, too; where some are out of reach, late times on every call weigh more
 * than an exception that only a function given to it by pointer is likely to throw. */
static bool needs_return_probe(const struct planner *planner, const struct rls_code *code,
			       const struct rls_exits *exits)
{
	return !exits->complete && !planner->library->may_switch_stacks &&
	       !planner->library->may_throw && code && code->complete && !code->indirect_calls &&
	       !code->indirect_exit;
}

static int add_ways_out(struct planner *planner, const char *name,
			const struct rls_way_out *ways_out, size_t count)
{
	struct rls_site site = {
		.name = name,
		.kind = RLS_SITE_LEAVE_RET,
		.exit = RLS_EXIT_NONE,
		.category = rls_role_category(planner->library->role),
	};
	int err = 0;

	for (size_t i = 0; err == 0 && i < count; i++) {
		struct rls_instruction instruction;

		site.slot_bytes = ways_out[i].slot_bytes;
		err = rls_code_decode(planner->elf, ways_out[i].vaddr, &instruction);
		if (err == 0)
			err = planner_add(planner, site, &instruction);
	}
	return err;
}

static int add_returns(struct planner *planner, const char *name, const struct rls_exits *exits)
{
	int err = add_ways_out(planner, name, exits->returns.items, exits->returns.count);

	for (size_t i = 0; err == 0 && i < exits->jumps.count; i++)
		err = rls_addresses_add(&planner->jumps, exits->jumps.items[i]);
	return err;
}

static int add_exits(struct planner *planner, const struct rls_boundary_function *function,
		     const struct rls_code *code, enum rls_site_exit *exit)
{
	struct rls_exits exits;
	int err = rls_exits_find(planner->elf, code, &planner->bytes_left, &exits);

	if (err < 0)
		return err;
	if (needs_return_probe(planner, code, &exits)) {
		*exit = RLS_EXIT_RETURN_PROBE;
	} else {
		*exit = exits.complete ? RLS_EXIT_SITES : RLS_EXIT_UNSEEN;
		err = add_returns(planner, function->name, &exits);
	}
	rls_exits_clear(&exits);
	return err;
}

/* Whether something may leave the function other than by returning: an exception, also one
 * thrown by a function that it was handed, or the end of the thread, which unwinds it. The
 * interpreter's own calls must return, and CUDA promises to. */
static bool may_be_unwound(const struct planner *planner,
			   const struct rls_boundary_function *function,
			   const struct rls_code *code)
{
	if (function->kind != RLS_BOUNDARY_EXPORTED)
		return false;
	if (planner->library->may_throw)
		return true;
	if (planner->library->role == RLS_ROLE_CUDA)
		return false;
	return !code || !code->complete || code->calls || code->indirect_exit || code->exits.count;
}

/* A function that is but a jump into Python needs no site: the jump's own does. */
static bool is_only_callback(const struct planner *planner, uint64_t vaddr)
{
	return rls_addresses_any(&planner->callbacks, vaddr, vaddr);
}

/* 0 when neither its first instruction nor its rets need be probed; -ENOENT. */
static int find_brief(const struct planner *planner, const struct rls_boundary_function *function,
		      const struct rls_code *code, struct rls_brief *out)
{
	if (!code || code->start != function->vaddr)
		return -ENOENT;
	return rls_brief_find(planner->elf, code, &planner->callbacks, out);
}

static int add_brief(struct planner *planner, struct rls_site entry, const struct rls_brief *brief)
{
	int err;

	entry.exit = RLS_EXIT_SITES;
	entry.slot_bytes = RLS_SITE_ENTER_SLOT_BYTES;
	err = planner_add(planner, entry, &brief->entry);
	return err ? err : add_ways_out(planner, entry.name, brief->ways_out, brief->way_out_count);
}

static int plan_entry(struct planner *planner, const struct rls_boundary_function *function)
{
	bool python_calls = function->kind == RLS_BOUNDARY_PYTHON_CALLS;
	struct rls_site site = {
		.name = function->name,
		.kind = RLS_SITE_ENTER,
		.exit = RLS_EXIT_RETURN_PROBE,
		.category = function->kind == RLS_BOUNDARY_CALLBACK_ENTRY
				    ? RLS_CATEGORY_PYTHON
				    : rls_role_category(planner->library->role),
		.from_python = python_calls,
	};
	struct rls_instruction instruction;
	const struct rls_code *code;
	struct rls_brief brief;
	int err = code_at(planner, function->vaddr, function->size_bytes, &code);

	if (err < 0)
		return err;
	if (is_only_callback(planner, function->vaddr))
		return 0;
	err = rls_choose_site(planner->elf, code, function->vaddr, &planner->callbacks,
			      &instruction);
	if (err < 0) {
		planner->plan.skipped[RLS_PLAN_NOT_PROBEABLE]++;
		return 0;
	}
	site.jumped_to = code && code->restarts;
	if (instruction.site_class == RLS_SITE_SINGLE_STEP &&
	    find_brief(planner, function, code, &brief) == 0)
		return add_brief(planner, site, &brief);
	if (planner->library->may_switch_stacks || may_be_unwound(planner, function, code)) {
		err = add_exits(planner, function, code, &site.exit);
		if (err < 0)
			return err;
	}
	return planner_add(planner, site, &instruction);
}

static int plan_jump(struct planner *planner, const struct rls_boundary_function *function)
{
	struct rls_site site = {
		.name = function->name,
		.kind = RLS_SITE_ENTER,
		.exit = planner->library->may_switch_stacks ? RLS_EXIT_UNSEEN
							    : RLS_EXIT_RETURN_PROBE,
		.category = RLS_CATEGORY_PYTHON,
		.jumped_to = true,
	};
	struct rls_instruction instruction;

	if (rls_code_decode(planner->elf, function->vaddr, &instruction) < 0 ||
	    !instruction.probeable) {
		planner->plan.skipped[RLS_PLAN_NOT_PROBEABLE]++;
		return 0;
	}
	return planner_add(planner, site, &instruction);
}

/* Where the thread is known to be back from a call: the cheapest instruction behind it,
 * unless that is the next call into Python, which ends the frame itself. */
static int add_after_call(struct planner *planner, const struct rls_boundary_function *function,
			  uint64_t after, const struct rls_code *code, enum rls_site_exit *exit)
{
	struct rls_site site = {
		.name = function->name,
		.kind = RLS_SITE_LEAVE_AFTER,
		.exit = RLS_EXIT_NONE,
		.category = rls_role_category(planner->library->role),
	};
	struct rls_instruction instruction;

	*exit = RLS_EXIT_UNSEEN;
	if (code && after >= code->end)
		return 0;
	if (rls_choose_site(planner->elf, code, after, NULL, &instruction) < 0)
		return 0;
	/* The next call is the exit: it must end a frame with its own return slot. */
	if (rls_addresses_any(&planner->callbacks, instruction.vaddr, instruction.vaddr))
		return 0;
	*exit = RLS_EXIT_SITES;
	return planner_add(planner, site, &instruction);
}

static int plan_call(struct planner *planner, const struct rls_boundary_function *function)
{
	struct rls_site site = {
		.name = function->name,
		.kind = RLS_SITE_ENTER_CALL,
		.category = RLS_CATEGORY_PYTHON,
	};
	const struct rls_instruction *seen =
		&planner->calls[function - planner->library->functions];
	struct rls_instruction call;
	const struct rls_code *code;
	int err = code_at(planner, function->vaddr, 0, &code);

	if (err < 0)
		return err;
	if (!seen->probeable || rls_code_decode(planner->elf, function->vaddr, &call) < 0) {
		planner->plan.skipped[RLS_PLAN_NOT_PROBEABLE]++;
		return 0;
	}
	err = add_after_call(planner, function, call.vaddr + call.length, code, &site.exit);
	if (err < 0)
		return err;
	return planner_add(planner, site, seen);
}

static int plan_function(struct planner *planner, const struct rls_boundary_function *function)
{
	if (!rls_elf_is_executable(planner->elf, function->vaddr) ||
	    !rls_elf_bytes_left(planner->elf, function->vaddr)) {
		planner->plan.skipped[RLS_PLAN_NOT_CODE]++;
		return 0;
	}
	switch (function->kind) {
	case RLS_BOUNDARY_CALLBACK_CALL:
		return plan_call(planner, function);
	case RLS_BOUNDARY_CALLBACK_JUMP:
		return plan_jump(planner, function);
	default:
		return plan_entry(planner, function);
	}
}

/* The extent around a call, decoded: several calls often lie in one. -ENOENT when it cannot be. */
static int trace_code_at(struct planner *planner, uint64_t vaddr)
{
	const struct rls_elf_extent *extent = rls_elf_extent_at(planner->elf, vaddr);
	struct rls_trace_code code;
	int err;

	if (!extent || extent->size_bytes > planner->bytes_left)
		return -ENOENT;
	if (planner->trace.step_count && planner->trace.vaddr == extent->vaddr)
		return 0;
	planner->bytes_left -= extent->size_bytes;
	err = rls_trace_code_read(planner->elf, extent, planner->library->may_throw, &code);
	if (err < 0)
		return err == -ENOMEM ? err : -ENOENT;
	rls_trace_code_clear(&planner->trace);
	planner->trace = code;
	return 0;
}

/* At the call, or where it is seen coming if that is cheaper. Zeroed: it cannot be probed. 0 or -ENOMEM. */
static int choose_call(struct planner *planner, uint64_t vaddr, struct rls_instruction *out)
{
	int err;

	if (rls_code_decode(planner->elf, vaddr, out) < 0) {
		*out = (struct rls_instruction){0};
		return 0;
	}
	if (out->site_class != RLS_SITE_SINGLE_STEP && out->probeable)
		return 0;
	err = trace_code_at(planner, vaddr);
	if (err == 0)
		rls_lead_in_find(&planner->trace, vaddr, out);
	return err == -ENOMEM ? err : 0;
}

static int collect_callbacks(struct planner *planner)
{
	size_t count = planner->library->function_count;

	planner->calls = calloc(count ? count : 1, sizeof(*planner->calls));
	if (!planner->calls)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct rls_boundary_function *function = &planner->library->functions[i];
		uint64_t vaddr = function->vaddr;

		if (function->kind == RLS_BOUNDARY_CALLBACK_CALL) {
			if (choose_call(planner, vaddr, &planner->calls[i]) < 0)
				return -ENOMEM;
			vaddr = planner->calls[i].length ? planner->calls[i].vaddr : vaddr;
		} else if (function->kind != RLS_BOUNDARY_CALLBACK_JUMP) {
			continue;
		}
		if (rls_addresses_add(&planner->callbacks, vaddr) < 0)
			return -ENOMEM;
	}
	rls_addresses_sort(&planner->callbacks);
	return 0;
}

/* Entries before exits: of two sites at one address the first is kept. */
static int compare_sites(const void *left, const void *right)
{
	const struct rls_site *a = left, *b = right;

	if (a->file_offset != b->file_offset)
		return a->file_offset < b->file_offset ? -1 : 1;
	return (a->kind > b->kind) - (a->kind < b->kind);
}

static void unify(struct rls_plan *plan)
{
	size_t kept = 0;

	if (plan->count)
		qsort(plan->sites, plan->count, sizeof(*plan->sites), compare_sites);
	for (size_t i = 0; i < plan->count; i++) {
		struct rls_site *last = kept ? &plan->sites[kept - 1] : NULL;

		if (!last || last->file_offset != plan->sites[i].file_offset) {
			plan->sites[kept++] = plan->sites[i];
			continue;
		}
		/* A function whose first instruction is its ret: nothing is left to see it by. */
		if (plan->sites[i].kind == RLS_SITE_LEAVE_RET && last->kind == RLS_SITE_ENTER &&
		    last->exit == RLS_EXIT_SITES)
			last->exit = RLS_EXIT_UNSEEN;
	}
	plan->count = kept;
}

/* Functions that others end in. */
static void mark_jumped_to(struct planner *planner)
{
	rls_addresses_sort(&planner->jumps);
	for (size_t i = 0; i < planner->plan.count; i++) {
		struct rls_site *site = &planner->plan.sites[i];
		const struct rls_elf_extent *extent = rls_elf_extent_at(planner->elf, site->vaddr);

		if (site->kind == RLS_SITE_ENTER)
			site->jumped_to |= rls_addresses_any(
				&planner->jumps, extent ? extent->vaddr : site->vaddr, site->vaddr);
	}
}

static void count_sites(struct rls_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++) {
		plan->class_counts[plan->sites[i].site_class]++;
		plan->unseen_exits += plan->sites[i].exit == RLS_EXIT_UNSEEN;
	}
}

int rls_plan_library(const struct rls_library *library, struct rls_elf *elf, struct rls_plan *out)
{
	struct planner planner = {.library = library, .elf = elf, .bytes_left = CODE_BYTES_MAX};
	int err = collect_callbacks(&planner);

	for (size_t i = 0; err == 0 && i < library->function_count; i++)
		err = plan_function(&planner, &library->functions[i]);
	if (err == 0)
		mark_jumped_to(&planner);
	rls_addresses_clear(&planner.callbacks);
	rls_addresses_clear(&planner.jumps);
	rls_code_clear(&planner.code);
	rls_trace_code_clear(&planner.trace);
	free(planner.calls);
	if (err < 0) {
		rls_plan_clear(&planner.plan);
		return err;
	}
	unify(&planner.plan);
	count_sites(&planner.plan);
	*out = planner.plan;
	return 0;
}
