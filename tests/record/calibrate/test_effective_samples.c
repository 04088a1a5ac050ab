/* Through how many ups and downs a recording goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "userspace/record/calibrate/effective_samples.h"

#define S 1000000000ULL
#define START (100 * S)

static double count_of(const uint64_t (*windows)[2], size_t count)
{
	struct rls_spells spells;

	rls_spells_begin(&spells, START);
	for (size_t i = 0; i < count; i++) {
		rls_spells_edge(&spells, true, START + windows[i][0]);
		rls_spells_edge(&spells, false, START + windows[i][1]);
	}
	return rls_spells_count(&spells);
}

static double count_of_one(uint64_t from_ns, uint64_t to_ns)
{
	const uint64_t window[1][2] = { { from_ns, to_ns } };

	return count_of(window, 1);
}

static void all_of_it_is_as_many_as_it_is_long(void **state)
{
	assert_true(count_of_one(0, S / 1000) == 1);
	assert_true(count_of_one(0, RLS_SPELL_NS) == 1);
	assert_true(count_of_one(0, 2 * RLS_SPELL_NS) == 2);
	assert_true(count_of_one(0, 15 * RLS_SPELL_NS) == 15);
	/* A little more is no other spell. */
	assert_true(count_of_one(0, RLS_SPELL_NS + S / 100) < 1.01);
	assert_true(count_of_one(0, RLS_SPELL_NS + RLS_SPELL_NS / 2) == 1.5 * 1.5 / 1.25);
}

static void none_is_one(void **state)
{
	struct rls_spells spells = { 0 };

	assert_true(rls_spells_count(&spells) == 1);
	rls_spells_begin(&spells, START);
	assert_true(rls_spells_count(&spells) == 1);
	rls_spells_edge(&spells, true, START);
	rls_spells_edge(&spells, false, START);
	assert_true(rls_spells_count(&spells) == 1);
}

static void windows_count_by_the_spells_they_lie_in(void **state)
{
	const uint64_t one[][2] = { { 0, S / 50 }, { S, S + S / 50 }, { 2 * S, 2 * S + S / 50 } };
	const uint64_t three[][2] = { { S, S + S / 50 }, { 21 * S, 21 * S + S / 50 }, { 41 * S, 41 * S + S / 50 } };
	/* As a budget has it: a first stretch, and then windows. */
	const uint64_t uneven[][2] = { { 0, S }, { 21 * S, 21 * S + S / 10 }, { 41 * S, 41 * S + S / 10 } };

	assert_true(count_of(one, 3) == 1);
	assert_true(count_of(three, 3) == 3);
	assert_true(count_of(uneven, 3) > 1.4 && count_of(uneven, 3) < 1.42);
}

static void the_same_edge_again_changes_nothing(void **state)
{
	struct rls_spells spells;

	rls_spells_begin(&spells, START);
	rls_spells_edge(&spells, false, START);
	rls_spells_edge(&spells, true, START);
	rls_spells_edge(&spells, true, START + 5 * S);
	rls_spells_edge(&spells, false, START + 8 * S);
	rls_spells_edge(&spells, false, START + 80 * S);
	assert_true(rls_spells_count(&spells) == 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_of_it_is_as_many_as_it_is_long),
		cmocka_unit_test(none_is_one),
		cmocka_unit_test(windows_count_by_the_spells_they_lie_in),
		cmocka_unit_test(the_same_edge_again_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
