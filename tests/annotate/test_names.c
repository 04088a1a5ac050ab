/* Interned names: one address per text, bounded in length and in number. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rlscope_annotate.h"
#include "userspace/annotate/names.h"

static const struct rls_name *intern(const char *text)
{
	return rls_name_intern(text, strlen(text));
}

static void test_one_text_is_one_name(void **state)
{
	char copy[] = "inference";

	assert_ptr_equal(intern("inference"), intern(copy));
	assert_ptr_not_equal(intern("inference"), intern("inferenc"));
	assert_ptr_equal(rls_name_intern("inference", 8), intern("inferenc"));
	assert_string_equal(intern(copy)->text, copy);
	assert_int_equal(intern("")->length, 0);
	assert_ptr_equal(rls_name_intern("a\0b", 3), intern("a"));
}

static void test_long_names_are_cut_between_characters(void **state)
{
	char text[RLS_NAME_BYTES + 8];

	memset(text, 'a', sizeof(text));
	assert_int_equal(rls_name_intern(text, 127)->length, 127);
	assert_int_equal(rls_name_intern(text, 128)->length, 127);
	memcpy(text + 126, "\xc3\xa9", 2); /* two bytes, of which one would fit */
	assert_int_equal(rls_name_intern(text, 130)->length, 126);
	memcpy(text + 124, "\xf0\x9f\x98\x80", 4); /* four, of which three would fit */
	assert_int_equal(rls_name_intern(text, 130)->length, 124);
	memcpy(text + 123,
	       "\xf0\x9f\x98\x80"
	       "a",
	       5);
	assert_int_equal(rls_name_intern(text, 130)->length, 127);
	memset(text, 0x80, sizeof(text)); /* no UTF-8 at all */
	assert_true(rls_name_intern(text, 130)->length <= 127);
}

#define SHARED_NAMES 2000
#define THREADS 4

static void *intern_all(void *out)
{
	const struct rls_name **names = out;
	char text[32];

	for (int i = 0; i < SHARED_NAMES; i++) {
		snprintf(text, sizeof(text), "shared %d", i);
		names[i] = intern(text);
	}
	return NULL;
}

static void test_threads_agree_on_addresses(void **state)
{
	static const struct rls_name *names[THREADS][SHARED_NAMES];
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, intern_all, names[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 1; i < THREADS; i++)
		assert_memory_equal(names[i], names[0], sizeof(names[0]));
}

static void test_only_our_names_are_ours(void **state)
{
	const char *name = (const char *)intern("mine");

	assert_true(rls_name_is_ours(name));
	assert_false(rls_name_is_ours(name + 1));
	assert_false(rls_name_is_ours(&name));
	assert_false(rls_name_is_ours(NULL));
}

/* Last: fills the table for good. */
static void test_past_the_last_name_all_are_other(void **state)
{
	const struct rls_name *early = intern("inference");
	char text[32];

	for (int i = 0; i < RLS_NAMES_MAX; i++) {
		snprintf(text, sizeof(text), "step %d", i);
		intern(text);
	}
	assert_string_equal(intern("one more")->text, "(other)");
	assert_ptr_equal(intern("one more"), intern("another"));
	assert_ptr_equal(intern("inference"), early);
	assert_true(rls_name_is_ours(intern("one more")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_text_is_one_name),
		cmocka_unit_test(test_long_names_are_cut_between_characters),
		cmocka_unit_test(test_threads_agree_on_addresses),
		cmocka_unit_test(test_only_our_names_are_ours),
		cmocka_unit_test(test_past_the_last_name_all_are_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
