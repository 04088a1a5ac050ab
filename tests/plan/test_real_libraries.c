/* Every function of the libraries installed here: what a site must be is checked with
 * Zydis used another way than the planner does (operands, categories, absolute targets).
 */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <Zydis/Zydis.h>

#include "userspace/plan/choice.h"
#include "userspace/plan/planner.h"

static const char *const patterns[] = {
	SB3_VENV "/lib/python3*/site-packages/torch/lib/libtorch_python.so",
	SB3_VENV "/lib/python3*/site-packages/mujoco/libmujoco.so.*",
	SB3_VENV "/lib/python3*/site-packages/mujoco/_functions*.so",
	SB3_VENV "/lib/python3*/site-packages/numpy/_core/_multiarray_umath*.so",
	"/usr/lib/x86_64-linux-gnu/libtorch_python.so.*.*.*",
	"/usr/lib/python3/dist-packages/numpy/core/_multiarray_umath*.so",
	"~/.pyenv/versions/3.*/lib/libpython3.*.so.1.0",
	"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
	"/usr/lib/x86_64-linux-gnu/libc.so.6",
	"/lib64/libc.so.6",
};

/* Every function a test run looks at would be minutes under a sanitizer. */
#if defined(__SANITIZE_ADDRESS__)
#define STRIDE 20
#else
#define STRIDE 1
#endif

struct reading {
	ZydisDecoder decoder;
	ZydisDecodedInstruction instruction;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

static bool read_one(struct reading *reading, const uint8_t *bytes, size_t available)
{
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&reading->decoder, bytes, available,
						   &reading->instruction, reading->operands));
}

static bool writes_rsp(const struct reading *reading)
{
	for (unsigned int i = 0; i < reading->instruction.operand_count; i++) {
		const ZydisDecodedOperand *operand = &reading->operands[i];

		if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    !(operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		switch (operand->reg.value) {
		case ZYDIS_REGISTER_RSP:
		case ZYDIS_REGISTER_ESP:
		case ZYDIS_REGISTER_SP:
		case ZYDIS_REGISTER_SPL:
			return true;
		default:
			break;
		}
	}
	return false;
}

/* By how much rsp is lower behind it: of what such functions have. */
static int64_t deeper_by(const struct reading *reading)
{
	if (!writes_rsp(reading))
		return 0;
	switch (reading->instruction.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
		return 8;
	case ZYDIS_MNEMONIC_POP:
		return -8;
	case ZYDIS_MNEMONIC_SUB:
		return reading->operands[1].imm.value.s;
	case ZYDIS_MNEMONIC_ADD:
		return -reading->operands[1].imm.value.s;
	default:
		fail_msg("%s of rsp", ZydisMnemonicGetString(reading->instruction.mnemonic));
		return 0;
	}
}

static bool branches(const struct reading *reading)
{
	switch (reading->instruction.meta.category) {
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_SYSCALL:
		return true;
	default:
		return false;
	}
}

/* Not so: rip-relative operands, which Zydis calls relative too. */
static bool is_direct_branch(const struct reading *reading)
{
	return branches(reading) && reading->operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	       reading->operands[0].imm.is_relative;
}

static enum rls_site_class class_of(const struct reading *reading)
{
	const ZydisDecodedInstruction *instruction = &reading->instruction;

	switch (instruction->mnemonic) {
	case ZYDIS_MNEMONIC_NOP:
		if (instruction->length == 1)
			return RLS_SITE_EMULATED;
		if (instruction->length == 5 && instruction->raw.disp.value == 0)
			return RLS_SITE_NOP5;
		return RLS_SITE_SINGLE_STEP;
	case ZYDIS_MNEMONIC_PUSH:
		return reading->operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER
			       ? RLS_SITE_EMULATED
			       : RLS_SITE_SINGLE_STEP;
	case ZYDIS_MNEMONIC_JRCXZ:
	case ZYDIS_MNEMONIC_JECXZ:
	case ZYDIS_MNEMONIC_LOOP:
	case ZYDIS_MNEMONIC_LOOPE:
	case ZYDIS_MNEMONIC_LOOPNE:
	case ZYDIS_MNEMONIC_XBEGIN:
		return RLS_SITE_SINGLE_STEP;
	default:
		return is_direct_branch(reading) ? RLS_SITE_EMULATED : RLS_SITE_SINGLE_STEP;
	}
}

/* The stretch from the function's start to its site: instruction after instruction, none of
 * which moves rsp, but as far as the site says, or branches. */
static void check_stretch(struct reading *reading, struct rls_elf *elf,
			  const struct rls_elf_extent *extent, const struct rls_site *site)
{
	const uint8_t *bytes = rls_elf_bytes(elf, extent->vaddr, extent->size_bytes);
	uint64_t offset = site->vaddr - extent->vaddr, at = 0;
	int64_t depth_bytes = 0;

	assert_non_null(bytes);
	assert_true(site->slot_bytes || offset < RLS_CHOICE_BYTES);
	while (at < offset) {
		assert_true(read_one(reading, bytes + at, extent->size_bytes - at));
		assert_true(site->slot_bytes || !writes_rsp(reading));
		depth_bytes += deeper_by(reading);
		assert_false(branches(reading));
		at += reading->instruction.length;
	}
	assert_int_equal(at, offset);
	assert_int_equal(depth_bytes, site->slot_bytes);
	assert_true(read_one(reading, bytes + at, extent->size_bytes - at));
	assert_int_equal(class_of(reading), site->site_class);
}

static const struct rls_site *site_at(const struct rls_plan *plan, uint64_t vaddr)
{
	for (size_t low = 0, high = plan->count; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (plan->sites[middle].vaddr == vaddr)
			return &plan->sites[middle];
		if (plan->sites[middle].vaddr < vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* A function seen from within: what its sites say of the return address is so on each way from vaddr
 * on, each passes a way out, and behind that nothing is called. Returns how many ways there are. */
static size_t check_ways(struct rls_elf *elf, const struct rls_plan *plan,
			 const struct rls_elf_extent *extent, uint64_t vaddr, int64_t depth_bytes,
			 bool left)
{
	const uint64_t end = extent->vaddr + extent->size_bytes;
	struct reading reading;
	size_t ways = 0;

	ZydisDecoderInit(&reading.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (;; vaddr += reading.instruction.length) {
		const struct rls_site *site = site_at(plan, vaddr);
		ZyanU64 target = 0;

		assert_true(vaddr < end);
		assert_true(
			read_one(&reading, rls_elf_bytes(elf, vaddr, end - vaddr), end - vaddr));
		if (site && site->kind == RLS_SITE_LEAVE_RET) {
			assert_int_equal(site->slot_bytes, depth_bytes);
			assert_int_equal(site->site_class, RLS_SITE_EMULATED);
			left = true;
		}
		if (reading.instruction.meta.category == ZYDIS_CATEGORY_RET) {
			assert_true(left);
			assert_int_equal(depth_bytes, 0);
			return ways + 1;
		}
		if (reading.instruction.meta.category == ZYDIS_CATEGORY_CALL) {
			assert_false(left);
			continue;
		}
		depth_bytes += deeper_by(&reading);
		if (!branches(&reading))
			continue;
		assert_true(is_direct_branch(&reading));
		ZydisCalcAbsoluteAddress(&reading.instruction, &reading.operands[0], vaddr,
					 &target);
		if (target < extent->vaddr || target >= end) {
			assert_true(left && depth_bytes == 0);
			ways++;
		} else {
			assert_true(target > vaddr);
			ways += check_ways(elf, plan, extent, target, depth_bytes, left);
		}
		if (reading.instruction.meta.category == ZYDIS_CATEGORY_UNCOND_BR)
			return ways;
	}
}

static void check_jumps(struct reading *reading, struct rls_elf *elf,
			const struct rls_elf_extent *extent, const struct rls_site *site)
{
	const uint8_t *bytes = rls_elf_bytes(elf, extent->vaddr, extent->size_bytes);

	for (uint64_t at = 0; at < extent->size_bytes; at += reading->instruction.length) {
		ZyanU64 target;

		assert_true(read_one(reading, bytes + at, extent->size_bytes - at));
		if (!is_direct_branch(reading))
			continue;
		assert_true(ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&reading->instruction,
								  &reading->operands[0],
								  extent->vaddr + at, &target)));
		assert_false(target > extent->vaddr && target <= site->vaddr);
	}
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

/* One in STRIDE functions; every function is one that Python calls, so each has one entry. */
static size_t make_functions(struct rls_elf *elf, struct rls_boundary_function **out)
{
	const struct rls_elf_extent *extents;
	size_t count = rls_elf_extents(elf, &extents), made = 0;

	*out = calloc(count + 1, sizeof(**out));
	assert_non_null(*out);
	for (size_t i = 0; i < count; i += STRIDE)
		if (rls_elf_is_executable(elf, extents[i].vaddr))
			(*out)[made++] = (struct rls_boundary_function){
				.vaddr = extents[i].vaddr,
				.size_bytes = extents[i].size_bytes,
				.name = "function",
				.kind = RLS_BOUNDARY_PYTHON_CALLS,
			};
	return made;
}

/* Returns how many functions are seen from within. */
static size_t check_plan(struct rls_elf *elf, const struct rls_plan *plan, size_t *entries)
{
	struct reading reading;
	size_t within = 0;

	ZydisDecoderInit(&reading.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t i = 0; i < plan->count; i++) {
		const struct rls_site *site = &plan->sites[i];
		const struct rls_elf_extent *extent = rls_elf_extent_at(elf, site->vaddr);

		assert_non_null(extent);
		if (site->kind != RLS_SITE_ENTER)
			continue;
		++*entries;
		if (site->slot_bytes) {
			assert_true(check_ways(elf, plan, extent, extent->vaddr, 0, false) > 0);
			within++;
		}
		check_stretch(&reading, elf, extent, site);
		if (site->vaddr > extent->vaddr)
			check_jumps(&reading, elf, extent, site);
	}
	return within;
}

static void check_library(const char *path)
{
	struct rls_library library = {.role = RLS_ROLE_BACKEND};
	struct rls_boundary_function *functions;
	struct rls_plan plan;
	struct rls_elf *elf;
	size_t entries = 0, within;
	double start_ms, took_ms;

	assert_int_equal(rls_elf_open(path, &elf), 0);
	library.function_count = make_functions(elf, &functions);
	library.functions = functions;
	start_ms = now_ms();
	assert_int_equal(rls_plan_library(&library, elf, &plan), 0);
	took_ms = now_ms() - start_ms;
	within = check_plan(elf, &plan, &entries);
	print_message("%6zu functions, %zu seen from within, %5.1f %% emulated, %zu not probeable, "
		      "%.1f ms: %s\n",
		      library.function_count, within,
		      100.0 * plan.class_counts[RLS_SITE_EMULATED] / (plan.count + !plan.count),
		      plan.skipped[RLS_PLAN_NOT_PROBEABLE], took_ms, path);
	assert_int_equal(entries + plan.skipped[RLS_PLAN_NOT_PROBEABLE], library.function_count);
	assert_int_equal(plan.skipped[RLS_PLAN_NOT_CODE], 0);
	rls_plan_clear(&plan);
	free(functions);
	rls_elf_close(elf);
}

static void sites_of_every_function_are_safe(void **state)
{
	const glob_t *found = *state;

	for (size_t i = 0; i < found->gl_pathc; i++)
		check_library(found->gl_pathv[i]);
}

int main(void)
{
	glob_t found = {0};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(sites_of_every_function_are_safe, &found),
	};
	int status;

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		glob(patterns[i], GLOB_TILDE | (i ? GLOB_APPEND : 0), NULL, &found);
	if (!found.gl_pathc) {
		printf("skipped: none of the libraries it knows is installed\n");
		return 77;
	}
	status = cmocka_run_group_tests(tests, NULL, NULL);
	globfree(&found);
	return status;
}
