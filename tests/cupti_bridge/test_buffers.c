/* How much memory there is at most, and what becomes of buffers that go astray. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cupti_bridge/buffers.h"

static uint8_t *out[RLS_BUFFERS_MAX + 1];
static struct rls_buffer *taken[RLS_BUFFERS_MAX];

static uint8_t *request(size_t *size)
{
	uint8_t *bytes;
	size_t records_max = 1;

	rls_buffers_requested(&bytes, size, &records_max);
	assert_int_equal(records_max, 0);
	return bytes;
}

static void complete(uint8_t *bytes, size_t valid_bytes)
{
	rls_buffers_completed(NULL, 0, bytes, RLS_BUFFER_BYTES, valid_bytes);
}

/* Ten bytes a record. */
static int next_record(uint8_t *buffer, size_t valid_bytes, uint8_t **record)
{
	uint8_t *next = *record ? *record + 10 : buffer;

	if (next + 10 > buffer + valid_bytes)
		return 12;
	*record = next;
	return 0;
}

static int give_all_back(void **state)
{
	size_t count = rls_buffers_take(taken);

	rls_buffers_give_back(taken, count);
	rls_buffers_trim();
	return 0;
}

static void is_bounded(void **state)
{
	size_t size, sum = 0;

	for (int i = 0; i < RLS_BUFFERS_MAX; i++) {
		out[i] = request(&size);
		assert_non_null(out[i]);
		assert_int_equal(size,
				 i < RLS_BUFFERS_LARGE ? RLS_BUFFER_BYTES : RLS_BUFFER_SMALL_BYTES);
		memset(out[i], i, size);
		sum += size;
	}
	assert_true(sum <= 76u << 20);
	assert_null(request(&size)); /* all are CUPTI's own already */
	assert_int_equal(size, 0);
	for (int i = 0; i < RLS_BUFFERS_MAX; i++)
		complete(out[i], 0);
	assert_int_equal(rls_buffers_take(taken), 0); /* empty ones are not to be read */
}

static void comes_back_in_order(void **state)
{
	size_t size;

	for (int i = 0; i < 3; i++)
		out[i] = request(&size);
	complete(out[2], 100);
	complete(out[0], 3 * (size_t)RLS_BUFFER_BYTES); /* more than there is */
	assert_int_equal(rls_buffers_take(taken), 2);
	assert_ptr_equal(taken[0]->bytes, out[2]);
	assert_int_equal(taken[0]->valid_bytes, 100);
	assert_ptr_equal(taken[1]->bytes, out[0]);
	assert_int_equal(taken[1]->valid_bytes, RLS_BUFFER_BYTES);
	rls_buffers_trim(); /* not what is ours or out */
	memset(taken[0]->bytes, 1, taken[0]->size);
	memset(out[1], 1, size);
	rls_buffers_give_back(taken, 2);
	complete(out[1], 0);
}

static void counts_what_it_uses_again(void **state)
{
	uint64_t before = rls_buffers_lost();
	size_t size;

	rls_buffers_set_walk(next_record);
	for (int i = 0; i < RLS_BUFFERS_MAX; i++)
		out[i] = request(&size);
	complete(out[5], 70);
	complete(out[6], 90);
	assert_ptr_equal(request(&size), out[5]); /* the oldest */
	assert_int_equal(rls_buffers_lost() - before, 7);
	assert_ptr_equal(request(&size), out[6]);
	assert_int_equal(rls_buffers_lost() - before, 16);
	for (int i = 0; i < RLS_BUFFERS_MAX; i++)
		complete(out[i], 0);
}

static void leaves_others_alone(void **state)
{
	uint64_t before = rls_buffers_lost();
	uint8_t theirs[64];
	size_t size;

	complete(theirs, 64);
	complete(NULL, 64);
	assert_int_equal(rls_buffers_lost() - before, 1);
	out[0] = request(&size);
	complete(out[0], 10);
	complete(out[0], 10); /* twice */
	assert_int_equal(rls_buffers_lost() - before, 2);
	assert_int_equal(rls_buffers_take(taken), 1);
	rls_buffers_give_back(taken, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(is_bounded, give_all_back),
		cmocka_unit_test_teardown(comes_back_in_order, give_all_back),
		cmocka_unit_test_teardown(counts_what_it_uses_again, give_all_back),
		cmocka_unit_test_teardown(leaves_others_alone, give_all_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
