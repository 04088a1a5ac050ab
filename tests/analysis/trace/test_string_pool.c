#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "analysis/string_pool.h"

static rls_string_id add(struct rls_string_pool *pool, const char *text)
{
	rls_string_id id;

	assert_int_equal(rls_string_pool_add(pool, text, strlen(text), &id), 0);
	return id;
}

static void gives_dense_ids_once(void **state)
{
	struct rls_string_pool *pool = rls_string_pool_new();
	char text[32];

	assert_int_equal(add(pool, ""), 0);
	for (unsigned int i = 1; i < 5000; i++) {
		snprintf(text, sizeof(text), "name %u", i);
		assert_int_equal(add(pool, text), i);
	}
	for (unsigned int i = 1; i < 5000; i++) {
		snprintf(text, sizeof(text), "name %u", i);
		assert_int_equal(add(pool, text), i);
		assert_string_equal(rls_string_pool_get(pool, i), text);
	}
	assert_int_equal(rls_string_pool_count(pool), 5000);
	assert_string_equal(rls_string_pool_get(pool, 0), "");
	assert_string_equal(rls_string_pool_get(pool, 5000), "");
	assert_string_equal(rls_string_pool_get(pool, UINT32_MAX), "");
	rls_string_pool_free(pool);
	rls_string_pool_free(NULL);
}

static void keeps_pointers_good_while_growing(void **state)
{
	struct rls_string_pool *pool = rls_string_pool_new();
	const char *first = rls_string_pool_get(pool, add(pool, "first"));
	char text[1000];

	for (unsigned int i = 0; i < 1000; i++) {
		memset(text, 'x', sizeof(text));
		snprintf(text + sizeof(text) - 8, 8, "%u", i);
		add(pool, text);
	}
	assert_string_equal(first, "first");
	rls_string_pool_free(pool);
}

static void replaces_what_is_not_utf8(void **state)
{
#define BAD "\xef\xbf\xbd"
	static const struct {
		const char *in;
		size_t length;
		const char *out;
	} cases[] = {
		{"plain", 5, "plain"},
		{"\xc3\xa9\xe6\xa8\xa1\xf0\x9f\xa4\x96", 9, "\xc3\xa9\xe6\xa8\xa1\xf0\x9f\xa4\x96"},
		{"a\xff" "b", 3, "a" BAD "b"},
		{"\xc0\xaf", 2, BAD BAD},             /* overlong */
		{"\xed\xa0\x80", 3, BAD BAD BAD},     /* surrogate */
		{"\xf4\x90\x80\x80", 4, BAD BAD BAD BAD}, /* above U+10FFFF */
		{"\xe6\xa8", 2, BAD BAD},             /* cut */
		{"a\0b", 3, "a" BAD "b"},             /* would end the C string */
	};
	struct rls_string_pool *pool = rls_string_pool_new();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		rls_string_id id;

		assert_int_equal(rls_string_pool_add(pool, cases[i].in, cases[i].length, &id), 0);
		assert_string_equal(rls_string_pool_get(pool, id), cases[i].out);
	}
	rls_string_pool_free(pool);
}

static void cuts_at_a_character(void **state)
{
	struct rls_string_pool *pool = rls_string_pool_new();
	char text[RLS_STRING_BYTES_MAX + 10];
	rls_string_id id;

	/* One byte, then three-byte characters: the limit falls inside one. */
	text[0] = 'x';
	for (size_t i = 1; i + 3 <= sizeof(text); i += 3)
		memcpy(text + i, "\xe6\xa8\xa1", 3);
	assert_int_equal(rls_string_pool_add(pool, text, RLS_STRING_BYTES_MAX + 6, &id), 0);
	assert_int_equal(strlen(rls_string_pool_get(pool, id)), RLS_STRING_BYTES_MAX);
	assert_int_equal(rls_string_pool_add(pool, text + 1, RLS_STRING_BYTES_MAX + 5, &id), 0);
	assert_int_equal(strlen(rls_string_pool_get(pool, id)), RLS_STRING_BYTES_MAX - 1);
	rls_string_pool_free(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_dense_ids_once),
		cmocka_unit_test(keeps_pointers_good_while_growing),
		cmocka_unit_test(replaces_what_is_not_utf8),
		cmocka_unit_test(cuts_at_a_character),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
