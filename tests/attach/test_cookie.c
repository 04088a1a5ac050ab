#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bpf/wire/cookie.h"
#include "userspace/annotate/foreign_ranges.h"
#include "userspace/attach/cookie.h"

static void assert_unpacks(const struct rls_site *site, uint32_t id, uint32_t cost_ns)
{
	uint64_t cookie = rls_site_cookie(site, id, cost_ns);

	assert_int_equal(RLS_COOKIE_SITE(cookie), id);
	assert_int_equal(RLS_COOKIE_KIND(cookie), site->kind);
	assert_int_equal(RLS_COOKIE_COST_NS(cookie), cost_ns);
	assert_false(RLS_COOKIE_WINDOWED(cookie));
	assert_true(RLS_COOKIE_WINDOWED(RLS_COOKIE_AS_WINDOWED(cookie)));
	if (site->kind == RLS_SITE_LEAVE_RET) {
		assert_int_equal(RLS_COOKIE_SLOT_BYTES(cookie), site->slot_bytes);
		return;
	}
	assert_int_equal(RLS_COOKIE_CATEGORY(cookie), site->category);
	assert_int_equal(RLS_COOKIE_FROM_PYTHON(cookie), site->from_python);
	assert_int_equal(RLS_COOKIE_CLASS(cookie), site->site_class);
	assert_int_equal(RLS_COOKIE_EXIT(cookie), site->exit);
	assert_int_equal(RLS_COOKIE_WITHIN(cookie),
			 site->kind == RLS_SITE_ENTER && site->slot_bytes);
}

/* Each value of each field, with the others at their extremes: none may touch another. */
static void every_field_comes_back(void **state)
{
	static const uint32_t ids[] = {0, 1, 0x80000000, UINT32_MAX};
	static const uint32_t costs[] = {0, 1, 1000, 4095, 4095U << 15};
	struct rls_site site = {0};

	for (int category = 0; category < RLS_CATEGORY_MAX; category++)
		for (int kind = 0; kind < RLS_SITE_KIND_MAX; kind++)
			for (int class = 0; class < RLS_SITE_CLASS_MAX; class ++)
				for (int exit = 0; exit <= RLS_EXIT_NONE; exit++)
					for (int i = 0; i < 4 * 5 * 2; i++) {
						site.category = (enum rls_category)category;
						site.kind = (enum rls_site_kind)kind;
						site.site_class = (enum rls_site_class) class;
						site.exit = (enum rls_site_exit)exit;
						site.from_python = i & 1;
						site.slot_bytes =
							i & 1   ? RLS_SITE_SLOT_BYTES_MAX - 8
							: i & 2 ? 8
								: 0;
						assert_unpacks(&site, ids[i / 2 % 4], costs[i / 8]);
					}
}

static uint32_t kept(uint32_t cost_ns)
{
	return RLS_COOKIE_COST_NS((uint64_t)rls_cookie_cost(cost_ns) << 48);
}

/* A hit in a hot loop, a single step of a virtual machine, and far beyond. */
static void costs_are_kept_to_one_in_4096(void **state)
{
	for (uint32_t ns = 0; ns <= 4095; ns++)
		assert_int_equal(kept(ns), ns);
	for (uint64_t ns = 4096; ns <= 4095ULL << 15; ns += 1 + ns / 1000) {
		int64_t off = (int64_t)kept((uint32_t)ns) - (int64_t)ns;

		assert_true(4096 * (off < 0 ? -off : off) <= (int64_t)ns);
	}
	assert_in_range(kept(73000), 73000 - 8, 73000 + 8);
}

static void costs_are_saturated(void **state)
{
	assert_int_equal(kept((4095U << 15) + 1), 4095U << 15);
	assert_int_equal(kept(4096U << 15), 4095U << 15);
	assert_int_equal(kept(UINT32_MAX), 4095U << 15);
}

static void the_offsets_and_name_of_a_site_are_not_in_it(void **state)
{
	struct rls_site site = {.category = RLS_CATEGORY_BACKEND};
	uint64_t cookie = rls_site_cookie(&site, 1, 2);

	site.file_offset = site.vaddr = UINT64_MAX;
	site.name = "name";
	assert_int_equal(rls_site_cookie(&site, 1, 2), cookie);
}

/* As bpf/operation.bpf.c takes it apart. */
static void range_cookies(void **state)
{
	uint64_t cookie =
		RLS_RANGE_COOKIE(RLS_RANGE_POP, RLS_RANGE_NO_ARGUMENT, 3, rls_cookie_cost(1234));

	assert_int_equal((uint8_t)cookie, RLS_RANGE_POP);
	assert_int_equal((uint8_t)(cookie >> 8), RLS_RANGE_NO_ARGUMENT);
	assert_int_equal((uint8_t)(cookie >> 16), 3);
	assert_int_equal(RLS_COOKIE_COST_NS(cookie), 1234);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_comes_back),
		cmocka_unit_test(costs_are_kept_to_one_in_4096),
		cmocka_unit_test(costs_are_saturated),
		cmocka_unit_test(the_offsets_and_name_of_a_site_are_not_in_it),
		cmocka_unit_test(range_cookies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
