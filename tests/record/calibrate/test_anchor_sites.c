/* Which sites stay on while the others go on and off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "userspace/record/calibrate/anchor_sites.h"

#define SECONDS 2.56
#define HIT_NS 1000.0
#define SITES 64

static struct rls_site_use use;
static struct rls_marks marks;
static bool chosen[SITES];

/* A site with so many calls, spread over these slots, so many of them amid no other; silent: its
 * other hits. */
static void nested_site(uint32_t id, uint64_t calls, uint64_t outermost, size_t from, size_t to,
			uint64_t silent)
{
	const struct rls_site_count count = { .hits = 2 * calls + silent, .calls = calls };

	assert_int_equal(rls_site_use_more(&use, id, &count), 0);
	for (uint64_t i = 0; i < outermost; i++)
		assert_int_equal(rls_marks_add(&marks, id, from + i % (to - from)), 0);
}

static void site(uint32_t id, uint64_t calls, size_t from, size_t to, uint64_t silent)
{
	nested_site(id, calls, calls, from, to, silent);
}

static void choose(void)
{
	assert_int_equal(rls_marks_choose(&marks, &use, HIT_NS, SECONDS, chosen), 0);
}

static int clear(void **state)
{
	(void)state;
	rls_site_use_clear(&use);
	rls_marks_clear(&marks);
	return 0;
}

static double share_of_chosen(void)
{
	double sum = 0, whole = 0;

	for (size_t i = 0; i < use.count; i++) {
		whole += (double)use.sites[i].hits;
		sum += chosen[i] ? (double)use.sites[i].hits : 0;
	}
	return sum / whole;
}

static void takes_rare_sites_that_are_everywhere(void **state)
{
	(void)state;
	site(1, 1000000, 0, RLS_MARK_SLOTS, 0);
	site(2, 2000, 0, RLS_MARK_SLOTS, 0);
	choose();
	assert_true(chosen[2]);
	assert_false(chosen[1]);
}

/* Many cheap ones in one part of the work must not take the room of the only one in another. */
static void reaches_each_part_of_the_work(void **state)
{
	(void)state;
	site(1, 1000000, 0, RLS_MARK_SLOTS, 0);
	for (uint32_t id = 10; id < 60; id++)
		site(id, 900, 0, 100, 0);
	site(60, 9000, 100, RLS_MARK_SLOTS, 0);
	choose();
	assert_true(chosen[60]);
	assert_true(chosen[10] || chosen[11]);
	assert_true(share_of_chosen() <= 0.01);
}

/* A callback into Python is not seen once what calls it is not. */
static void takes_none_amid_other_calls(void **state)
{
	(void)state;
	site(1, 1000000, 0, RLS_MARK_SLOTS, 0);
	nested_site(2, 500, 0, 0, RLS_MARK_SLOTS, 0);
	nested_site(3, 500, 400, 0, RLS_MARK_SLOTS, 0);
	nested_site(4, 900, 895, 0, RLS_MARK_SLOTS, 0);
	choose();
	assert_false(chosen[2]);
	assert_false(chosen[3]);
	assert_true(chosen[4]);
}

/* What a part of the work needs may cost more than what is merely good to have. */
static void pays_for_a_part_not_for_a_slot(void **state)
{
	(void)state;
	site(1, 1000000, 0, RLS_MARK_SLOTS, 0);
	site(2, 2000, 0, 120, 0);
	site(3, 6000, 100, 250, 0);
	site(4, 1900, 245, 255, 0);
	choose();
	assert_true(chosen[2]);
	assert_true(chosen[3]);
	assert_false(chosen[4]);
	assert_true(share_of_chosen() <= 0.01);
}

static void takes_none_that_is_silent_or_seldom(void **state)
{
	(void)state;
	site(1, 1000000, 0, RLS_MARK_SLOTS, 0);
	site(2, 2000, 0, RLS_MARK_SLOTS, 500);
	site(3, 20, 0, 20, 0);
	site(4, 3000, 0, RLS_MARK_SLOTS, 0);
	choose();
	assert_false(chosen[2]);
	assert_false(chosen[3]);
	assert_true(chosen[4]);
}

static void goes_by_what_a_hit_costs(void **state)
{
	(void)state;
	site(1, 1000000, 0, RLS_MARK_SLOTS, 0);
	site(2, 2000, 0, RLS_MARK_SLOTS, 0);
	site(3, 4000, 0, RLS_MARK_SLOTS, 0);
	use.sites[2].hit_ns = 25 * HIT_NS;
	choose();
	assert_false(chosen[2]);
	assert_true(chosen[3]);
}

static void a_job_of_one_busy_site_has_a_mark(void **state)
{
	(void)state;
	site(5, 1000000, 0, RLS_MARK_SLOTS, 0);
	choose();
	assert_true(chosen[5]);
}

/* Marks slow down what they are to be compared with: none where operations will do. */
static void leaves_to_operations_what_they_divide(void **state)
{
	(void)state;
	site(1, 1000000, 0, RLS_MARK_SLOTS, 0);
	site(2, 500, 0, 100, 0);
	site(3, 500, 100, RLS_MARK_SLOTS, 0);
	site(4, 500, 0, RLS_MARK_SLOTS - 4, 0);
	for (size_t i = 0; i < RLS_MARK_SLOTS / 64; i++)
		marks.turned[i] = UINT64_MAX;
	choose();
	assert_false(chosen[2] || chosen[3] || chosen[4]);
	marks.turned[RLS_MARK_SLOTS / 64 - 1] = 0;
	choose();
	assert_true(chosen[3]);
	assert_false(chosen[2] || chosen[4]);
}

static void nothing_called_is_nothing_chosen(void **state)
{
	(void)state;
	choose();
	assert_int_equal(rls_marks_add(&marks, 3, RLS_MARK_SLOTS), 0);
	assert_int_equal(rls_marks_add(&marks, UINT32_MAX, 0), 0);
	assert_int_equal(marks.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(takes_rare_sites_that_are_everywhere, clear),
		cmocka_unit_test_teardown(reaches_each_part_of_the_work, clear),
		cmocka_unit_test_teardown(takes_none_amid_other_calls, clear),
		cmocka_unit_test_teardown(pays_for_a_part_not_for_a_slot, clear),
		cmocka_unit_test_teardown(takes_none_that_is_silent_or_seldom, clear),
		cmocka_unit_test_teardown(goes_by_what_a_hit_costs, clear),
		cmocka_unit_test_teardown(a_job_of_one_busy_site_has_a_mark, clear),
		cmocka_unit_test_teardown(leaves_to_operations_what_they_divide, clear),
		cmocka_unit_test_teardown(nothing_called_is_nothing_chosen, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
