/* What --verify makes of samples: whose code an address is, and the sentences. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/record/samples/code_kind.h"
#include "userspace/record/samples/verify_text.h"

static const char maps[] =
	"400000-500000 r-xp 00001000 08:01 11 /usr/bin/python3.11\n"
	"7f0000000000-7f0000100000 r-xp 00010000 08:01 12 /lib/libmujoco.so\n"
	"7f0000200000-7f0000300000 r-xp 00000000 08:01 13 /lib/libtorch_python.so\n"
	"7f0000400000-7f0000500000 r-xp 00000000 08:01 14 /lib/libc.so.6\n"
	"7ffff7f00000-7ffff7f01000 r-xp 00000000 00:00 0 [uprobes-trampoline]\n"
	"7fffffffe000-7ffffffff000 --xp 00000000 00:00 0 [uprobes]\n";

static const uint64_t python_sites[] = { 0x9000 };
static const uint64_t mujoco_sites[] = { 0x10020, 0x10400 };
static const uint64_t torch_sites[] = { 0x40, 0x90, 0x1000 };

static const struct rls_leaf_file python_file = {
	RLS_ROLE_PYTHON, python_sites, 1, { { { 0x2000, 0x1000 }, { 0x6000, 0x40 } }, 2 } };
static const struct rls_leaf_file mujoco_file = {
	RLS_ROLE_SIMULATOR, mujoco_sites, 2, { .count = 0 } };
static const struct rls_leaf_file torch_file = {
	RLS_ROLE_BACKEND, torch_sites, 3, { .count = 0 } };

static const struct rls_leaf_file *file_of(const struct rls_mapping *mapping)
{
	if (!mapping)
		return NULL;
	if (strstr(mapping->path, "python3.11"))
		return &python_file;
	if (strstr(mapping->path, "mujoco"))
		return &mujoco_file;
	return strstr(mapping->path, "torch_python") ? &torch_file : NULL;
}

static enum rls_leaf leaf_at(const struct rls_mappings *mappings, uint64_t address, bool in_kernel)
{
	const struct rls_mapping *mapping = rls_mappings_at(mappings, address);

	return rls_leaf_of(mapping, file_of(mapping), address, in_kernel);
}

static void test_leaf_is_whose_code_it_is(void **state)
{
	static const struct {
		uint64_t address;
		bool in_kernel;
		enum rls_leaf leaf;
	} rows[] = {
		{ 0x400fff, false, RLS_LEAF_INTERPRETER },
		{ 0x401000, false, RLS_LEAF_EVALUATION }, /* file offset 0x2000 */
		{ 0x401fff, false, RLS_LEAF_EVALUATION },
		{ 0x402000, false, RLS_LEAF_INTERPRETER },
		{ 0x404fff, false, RLS_LEAF_INTERPRETER },
		{ 0x405000, false, RLS_LEAF_EVALUATION }, /* what is set aside of the loop */
		{ 0x40503f, false, RLS_LEAF_EVALUATION },
		{ 0x405040, false, RLS_LEAF_INTERPRETER },
		{ 0x408000, false, RLS_LEAF_PROBE },      /* a probe in the interpreter */
		{ 0x7f0000000000, false, RLS_LEAF_SIMULATOR },
		{ 0x7f0000000020, false, RLS_LEAF_PROBE },
		{ 0x7f0000000021, false, RLS_LEAF_SIMULATOR },
		{ 0x7f0000000021, true, RLS_LEAF_PROBE }, /* the trap is one byte long */
		{ 0x7f0000000022, true, RLS_LEAF_KERNEL },
		{ 0x7f0000000400, true, RLS_LEAF_PROBE },
		{ 0x7f0000200090, false, RLS_LEAF_PROBE },
		{ 0x7f0000200091, false, RLS_LEAF_BACKEND },
		{ 0x7f0000201000, false, RLS_LEAF_PROBE },
		{ 0x7f00002fffff, false, RLS_LEAF_BACKEND },
		{ 0x7f0000400040, false, RLS_LEAF_OTHER }, /* no role: no site at that offset either */
		{ 0x7f0000400040, true, RLS_LEAF_KERNEL },
		{ 0x7ffff7f00010, false, RLS_LEAF_PROBE },
		{ 0x7fffffffe080, false, RLS_LEAF_PROBE },
		{ 0x7fffffffe080, true, RLS_LEAF_PROBE },
		{ 0x600000, false, RLS_LEAF_OTHER },       /* nothing mapped */
		{ 0x600000, true, RLS_LEAF_KERNEL },
	};
	struct rls_mappings mappings;

	assert_int_equal(rls_mappings_parse(strdup(maps), strlen(maps), &mappings), 0);
	assert_int_equal(mappings.count, 6);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum rls_leaf leaf = leaf_at(&mappings, rows[i].address, rows[i].in_kernel);

		if (leaf != rows[i].leaf)
			fail_msg("row %zu: leaf %d, not %d", i, leaf, rows[i].leaf);
	}
	rls_mappings_release(&mappings);
}

static void test_only_libraries_with_a_role_bind_a_leaf(void **state)
{
	enum rls_category category = RLS_CATEGORY_UNKNOWN;

	assert_true(rls_leaf_has_category(RLS_LEAF_SIMULATOR, &category));
	assert_int_equal(category, RLS_CATEGORY_SIMULATOR);
	assert_true(rls_leaf_has_category(RLS_LEAF_CUDA_API, &category));
	assert_int_equal(category, RLS_CATEGORY_CUDA_API);
	assert_false(rls_leaf_has_category(RLS_LEAF_INTERPRETER, &category));
	assert_false(rls_leaf_has_category(RLS_LEAF_EVALUATION, &category));
	assert_false(rls_leaf_has_category(RLS_LEAF_KERNEL, &category));
	assert_false(rls_leaf_has_category(RLS_LEAF_PROBE, &category));
}

/* Against the interval's defining equation: its ends are the shares p for which the
 * observed one is z standard deviations away. */
static void test_interval_solves_its_equation(void **state)
{
	static const struct { uint64_t hits, trials; } rows[] = {
		{ 1, 10 }, { 52, 12345 }, { 5000, 10000 }, { 9, 10 } };
	const double z = 1.959964;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double n = (double)rows[i].trials, share = (double)rows[i].hits / n, ends[2];

		rls_share_interval(rows[i].hits, rows[i].trials, &ends[0], &ends[1]);
		assert_true(ends[0] < share && share < ends[1]);
		for (int end = 0; end < 2; end++) {
			double p = ends[end], left = (share - p) * (share - p);

			assert_true(fabs(left - z * z * p * (1 - p) / n) < 1e-9);
		}
	}
}

static void test_interval_at_the_edges(void **state)
{
	double low = -1, high = -1;

	rls_share_interval(0, 0, &low, &high);
	assert_true(low == 0 && high == 1);
	rls_share_interval(0, 1000, &low, &high);
	assert_true(low == 0 && high > 0.003 && high < 0.004); /* nothing seen is not nothing there */
	rls_share_interval(1000, 1000, &low, &high);
	assert_true(low > 0.996 && high <= 1);
}

static const struct rls_verify_counts counted = {
	.by = {
		[RLS_CATEGORY_PYTHON] = { [RLS_LEAF_EVALUATION] = 500, [RLS_LEAF_OTHER] = 90,
					  [RLS_LEAF_BACKEND] = 7, [RLS_LEAF_SIMULATOR] = 3,
					  [RLS_LEAF_PROBE] = 150 },
		[RLS_CATEGORY_BACKEND] = { [RLS_LEAF_BACKEND] = 300, [RLS_LEAF_OTHER] = 46,
					   [RLS_LEAF_EVALUATION] = 4, [RLS_LEAF_KERNEL] = 50 },
		[RLS_CATEGORY_SIMULATOR] = { [RLS_LEAF_SIMULATOR] = 50 },
	},
	.untraced = 12,
};

static void expect_text(char *text, const char *const *parts)
{
	assert_non_null(text);
	for (; *parts; parts++) {
		if (!strstr(text, *parts))
			fail_msg("no \"%s\" in \"%s\"", *parts, text);
	}
	free(text);
}

static void test_blind_spot_in_words(void **state)
{
	static const struct rls_hot_function functions[] = {
		{ "libtorch.so", "linear", 0x1000, 4 }, { "libtorch.so", NULL, 0xabc0, 3 },
		{ "libmujoco.so", "mj_a", 0, 1 }, { "libmujoco.so", "mj_b", 0, 1 },
		{ "libmujoco.so", "mj_c", 0, 1 }, { "libmujoco.so", "mj_sixth", 0, 1 } };
	char *text = rls_verify_blind_text(&counted, functions, 6);

	/* 10 of 600 + 350 + 50; probes and kernel are left out. */
	assert_non_null(text);
	assert_null(strstr(text, "mj_sixth"));
	expect_text(text, (const char *const[]){ "blind spot 1.00 % (95 % interval 0.54 to 1.83 %)",
						 "10 of 1000 samples",
						 "most in linear of libtorch.so (4)",
						 "0xabc0 of libtorch.so (3)", NULL });
}

static void test_other_sentences(void **state)
{
	expect_text(rls_verify_missed_callbacks_text(&counted),
		    (const char *const[]){ "missed callbacks 0.40 %", "4 of 1000", "backend 4",
					   NULL });
	expect_text(rls_verify_shares_text(&counted),
		    (const char *const[]){ "simulator 5.3 %, backend 30.7 %, the rest 64.0 %",
					   "by the trace: backend 35.0 %, simulator 5.0 %, python 60.0 %",
					   "12.5 % probes' own, 4.2 % kernel",
					   "12 of threads that met no probe", NULL });
}

static void test_nothing_sampled_is_said(void **state)
{
	static const struct rls_verify_counts none;

	expect_text(rls_verify_blind_text(&none, NULL, 0),
		    (const char *const[]){ "blind spot not measured", NULL });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leaf_is_whose_code_it_is),
		cmocka_unit_test(test_only_libraries_with_a_role_bind_a_leaf),
		cmocka_unit_test(test_interval_solves_its_equation),
		cmocka_unit_test(test_interval_at_the_edges),
		cmocka_unit_test(test_blind_spot_in_words),
		cmocka_unit_test(test_other_sentences),
		cmocka_unit_test(test_nothing_sampled_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
