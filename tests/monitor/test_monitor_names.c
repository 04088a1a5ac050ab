/* Texts behind numbers, kept as long as they may be asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/monitor/names.h"

static struct rls_names names;

static int clear(void **state)
{
	rls_names_clear(&names);
	return 0;
}

static void add(uint32_t id, uint32_t pid, const char *text, uint32_t length)
{
	struct rls_wire_name name = {.header.pid = pid, .id = id, .length = length};

	memcpy(name.text, text, strlen(text));
	assert_int_equal(rls_names_add(&names, &name), 0);
}

static bool even_are_over(void *context, uint32_t pid)
{
	return pid % 2 == 0;
}

static void texts_are_found(void **state)
{
	add(1, 7, "step", 4);
	add(2, 7, "cut here", 3);
	add(3, 7, "as long as it says", 4000000);
	add(0, 7, "no name", 7);
	assert_string_equal(rls_names_text(&names, 1), "step");
	assert_string_equal(rls_names_text(&names, 2), "cut");
	assert_string_equal(rls_names_text(&names, 3), "as long as it says");
	assert_string_equal(rls_names_text(&names, 0), "");
	assert_string_equal(rls_names_text(&names, RLS_TOTALS_UNREADABLE), "(unreadable)");
	assert_string_equal(rls_names_text(&names, RLS_TOTALS_OTHER), RLS_NAMES_OTHER);
	assert_null(rls_names_text(&names, 4));
}

static void names_go_when_nobody_asks_any_more(void **state)
{
	add(1, 7, "alive", 5);
	add(2, 8, "over", 4);
	rls_names_age(&names, even_are_over, NULL); /* both are new */
	assert_string_equal(rls_names_text(&names, 2), "over"); /* a child is still in it */
	rls_names_age(&names, even_are_over, NULL);
	rls_names_age(&names, even_are_over, NULL);
	assert_null(rls_names_text(&names, 2));
	assert_string_equal(rls_names_text(&names, 1), "alive");
	assert_int_equal(names.map.count, 1);
}

static void made_up_names_are_bounded(void **state)
{
	for (uint32_t i = 1; i < RLS_NAMES_MAX + 1000; i++)
		add(i, 7, "x", 1);
	assert_int_equal(names.map.count, RLS_NAMES_MAX);
	assert_null(rls_names_text(&names, RLS_NAMES_MAX + 500));
}

#define TEST(test) cmocka_unit_test_teardown(test, clear)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(texts_are_found),
		TEST(names_go_when_nobody_asks_any_more),
		TEST(made_up_names_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
