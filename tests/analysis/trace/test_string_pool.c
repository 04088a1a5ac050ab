#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/base/string_pool.h"
#include "analysis/base/text_hash.h"

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
		{"a\xff"
		 "b",
		 3, "a" BAD "b"},
		{"\xc0\xaf", 2, BAD BAD}, /* overlong */
		{"\xed\xa0\x80", 3, BAD BAD BAD}, /* surrogate */
		{"\xf4\x90\x80\x80", 4, BAD BAD BAD BAD}, /* above U+10FFFF */
		{"\xe6\xa8", 2, BAD BAD}, /* cut */
		{"a\0b", 3, "a" BAD "b"}, /* would end the C string */
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

static void finds_without_adding(void **state)
{
	struct rls_string_pool *pool = rls_string_pool_new();
	rls_string_id a = add(pool, "a"), ab = add(pool, "ab");

	assert_int_equal(rls_string_pool_find(pool, "abc", 1), a);
	assert_int_equal(rls_string_pool_find(pool, "abc", 2), ab);
	assert_int_equal(rls_string_pool_find(pool, "abc", 3), 0);
	assert_int_equal(rls_string_pool_find(pool, "", 0), 0);
	assert_int_equal(rls_string_pool_count(pool), 3);
	rls_string_pool_free(pool);
}

/* Of CPython 3.11, which has its bytes hashed by the same function (PYTHONHASHSEED 0 and 1). */
static void hashes_as_siphash_1_3_does(void **state)
{
	static const struct {
		const char *text;
		uint64_t unseeded, seeded;
	} cases[] = {
		{"a", 0x407448d2b89b1813, 0xd6300bc9f7cc0e73},
		{"abcdefg", 0x6db12aae9070f506, 0x2cc75771f0205010},
		{"abcdefgh", 0x3f7b849c0b8e35ea, 0xfd3011ff3947e7f4},
		{"abcdefghi", 0xf89b34a3d11eb6e5, 0x6d3c39f07e99250c},
	};
	const struct rls_text_seed zero = {0}, one = {0xaed66ce184be2329, 0xebe9bbf1f1499052};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t length = strlen(cases[i].text);

		assert_true(rls_text_hash(zero, cases[i].text, length) == cases[i].unseeded);
		assert_true(rls_text_hash(one, cases[i].text, length) == cases[i].seeded);
	}
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* All have the same FNV-1a hash: each of ten pairs of words collides after what is before it. */
static void names_made_to_collide_do_not(void **state)
{
	static const char *const pairs[10][2] = {
		{"yiijsv", "ktodoe"}, {"trmicl", "biexpa"}, {"thvycu", "vhjtor"},
		{"elwqsh", "smhkqr"}, {"lxaprf", "pkkagq"}, {"usypzr", "menlbu"},
		{"sabuwq", "yjttbx"}, {"rrtjjp", "xexdpe"}, {"kupmoz", "mrukyt"},
		{"qbmnsp", "hgbujw"},
	};
	const struct rls_text_seed seed = {0x0123456789abcdef, 0xfedcba9876543210};
	struct rls_string_pool *pool = rls_string_pool_new();
	uint32_t hashes[1024], distinct = 1;
	char text[64];

	for (unsigned int i = 0; i < 1024; i++) {
		text[0] = '\0';
		for (unsigned int k = 0; k < 10; k++)
			strcat(text, pairs[k][i >> k & 1]);
		hashes[i] = (uint32_t)rls_text_hash(seed, text, strlen(text));
		assert_int_equal(add(pool, text), i + 1);
	}
	qsort(hashes, 1024, sizeof(hashes[0]), by_value);
	for (unsigned int i = 1; i < 1024; i++)
		distinct += hashes[i] != hashes[i - 1];
	assert_in_range(distinct, 1020, 1024);
	rls_string_pool_free(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_dense_ids_once),
		cmocka_unit_test(keeps_pointers_good_while_growing),
		cmocka_unit_test(replaces_what_is_not_utf8),
		cmocka_unit_test(cuts_at_a_character),
		cmocka_unit_test(finds_without_adding),
		cmocka_unit_test(hashes_as_siphash_1_3_does),
		cmocka_unit_test(names_made_to_collide_do_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
