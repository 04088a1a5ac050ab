#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "batch_maker.h"
#include "userspace/record/gpu/batch_validate.h"

static struct batch_maker maker;
static uint8_t bytes[RLS_CUPTI_BATCH_BYTES_MAX];
static struct rls_batch_view view;

/* On memory of exactly that size, so that a sanitizer sees a byte read beyond. */
static enum rls_batch_fault check(size_t size)
{
	static void *exact;

	free(exact);
	exact = malloc(size + !size);
	assert_non_null(exact);
	memcpy(exact, bytes, size);
	return rls_batch_validate(exact, size, &view);
}

static enum rls_batch_fault check_made(void)
{
	return check(batch_bytes(&maker, bytes));
}

static void two_records(void)
{
	batch_begin(&maker, 1);
	batch_add(&maker,
		  (struct rls_cupti_record){
			  .kind = RLS_CUPTI_KERNEL, .start_ns = 5, .end_ns = 9, .correlation = 3},
		  "gemm");
	batch_add(&maker,
		  (struct rls_cupti_record){.kind = RLS_CUPTI_MEMSET, .start_ns = 7, .end_ns = 7},
		  NULL);
}

static void takes_what_is_sound(void **state)
{
	struct rls_batch_record record;

	two_records();
	assert_int_equal(check_made(), RLS_BATCH_SOUND);
	assert_int_equal(view.header.count, 2);
	assert_int_equal(rls_batch_record(&view, 0, &record), 0);
	assert_string_equal(record.name, "gemm");
	assert_int_equal(record.name_bytes, 4);
	assert_int_equal(record.record.correlation, 3);
	assert_int_equal(rls_batch_record(&view, 1, &record), 0);
	assert_string_equal(record.name, "");
	batch_begin(&maker, 2); /* an empty one is sound too */
	assert_int_equal(check_made(), RLS_BATCH_SOUND);
}

static void refuses_a_frame_that_is_wrong(void **state)
{
	size_t whole;

	two_records();
	whole = batch_bytes(&maker, bytes);
	for (size_t size = 0; size < whole; size++)
		assert_int_not_equal(check(size), RLS_BATCH_SOUND);
	bytes[whole] = 0;
	assert_int_equal(check(whole + 1), RLS_BATCH_SIZE);
	maker.header.magic ^= 1;
	assert_int_equal(check_made(), RLS_BATCH_FOREIGN);
	two_records();
	maker.header.version++;
	assert_int_equal(check_made(), RLS_BATCH_VERSION);
	two_records();
	maker.header.record_bytes = 32;
	assert_int_equal(check_made(), RLS_BATCH_VERSION);
	two_records();
	whole = batch_bytes(&maker, bytes);
	bytes[whole - 1] = 'x';
	assert_int_equal(check(whole), RLS_BATCH_STRINGS);
}

static void refuses_counts_beyond_the_limits(void **state)
{
	two_records();
	batch_bytes(&maker, bytes);
	((struct rls_cupti_batch *)bytes)->count = UINT16_MAX;
	assert_int_equal(check(sizeof(bytes)), RLS_BATCH_SIZE);
	two_records();
	batch_bytes(&maker, bytes);
	((struct rls_cupti_batch *)bytes)->string_bytes = UINT32_MAX;
	assert_int_equal(check(sizeof(bytes)), RLS_BATCH_SIZE);
	/* 2^32 of the two together must not come round to the real size. */
	two_records();
	batch_bytes(&maker, bytes);
	((struct rls_cupti_batch *)bytes)->string_bytes =
		(uint32_t)(5 - 126 * sizeof(struct rls_cupti_record));
	((struct rls_cupti_batch *)bytes)->count = 128;
	assert_int_equal(check(sizeof(struct rls_cupti_batch) + 2 * 64 + 5), RLS_BATCH_SIZE);
}

static int judge(struct rls_cupti_record bad, uint32_t name)
{
	struct rls_batch_record record;

	two_records();
	*batch_add(&maker, bad, NULL) = bad;
	maker.records[2].name = name;
	assert_int_equal(check_made(), RLS_BATCH_SOUND);
	assert_int_equal(rls_batch_record(&view, 0, &record), 0); /* the others are good */
	return rls_batch_record(&view, 2, &record);
}

static void refuses_a_record_that_cannot_be(void **state)
{
	const struct rls_cupti_record good = {.kind = RLS_CUPTI_KERNEL, .start_ns = 5, .end_ns = 9};
	struct rls_cupti_record bad = good;

	assert_int_equal(judge(good, 0), 0);
	assert_int_equal(judge(good, 1), 0);
	assert_int_equal(judge(good, 5), 0); /* the NUL of "gemm" */
	assert_int_equal(judge(good, 6), -EINVAL);
	assert_int_equal(judge(good, UINT32_MAX), -EINVAL);
	bad.kind = 0;
	assert_int_equal(judge(bad, 0), -EINVAL);
	bad.kind = RLS_CUPTI_STATUS + 1;
	assert_int_equal(judge(bad, 0), -EINVAL);
	bad = good;
	bad.start_ns = 0;
	assert_int_equal(judge(bad, 0), -EINVAL);
	bad = good;
	bad.end_ns = 4;
	assert_int_equal(judge(bad, 0), -EINVAL);
	bad.end_ns = UINT64_MAX;
	assert_int_equal(judge(bad, 0), -EINVAL);
	bad = (struct rls_cupti_record){.kind = RLS_CUPTI_STATUS};
	assert_int_equal(judge(bad, 0), 0);
}

static void refuses_a_name_that_is_too_long(void **state)
{
	static char name[RLS_CUPTI_NAME_BYTES_MAX + 1];
	struct rls_batch_record record;

	for (size_t length = RLS_CUPTI_NAME_BYTES_MAX - 1; length <= RLS_CUPTI_NAME_BYTES_MAX;
	     length++) {
		memset(name, 'k', length);
		batch_begin(&maker, 1);
		batch_add(&maker,
			  (struct rls_cupti_record){
				  .kind = RLS_CUPTI_KERNEL, .start_ns = 1, .end_ns = 1},
			  name);
		assert_int_equal(check_made(), RLS_BATCH_SOUND);
		assert_int_equal(rls_batch_record(&view, 0, &record),
				 length < RLS_CUPTI_NAME_BYTES_MAX ? 0 : -EINVAL);
	}
}

/* A bridge in a time namespace. */
static void times_are_shifted(void **state)
{
	struct rls_batch_record record;

	two_records();
	maker.header.clock_ns = 100;
	maker.header.clock_cupti_ns = 102;
	assert_int_equal(check_made(), RLS_BATCH_SOUND);
	rls_batch_shift(&view, 3);
	assert_int_equal(rls_batch_record(&view, 0, &record), 0);
	assert_int_equal(record.record.start_ns, 2);
	assert_int_equal(record.record.end_ns, 6);
	assert_int_equal(view.header.clock_ns, 97);
	assert_int_equal(view.header.clock_cupti_ns, 99);
	assert_int_equal(view.header.flushed_ns, 0); /* none */
	rls_batch_shift(&view, 8); /* to before the machine's start: it cannot be */
	assert_int_equal(rls_batch_record(&view, 0, &record), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_what_is_sound),
		cmocka_unit_test(times_are_shifted),
		cmocka_unit_test(refuses_a_frame_that_is_wrong),
		cmocka_unit_test(refuses_counts_beyond_the_limits),
		cmocka_unit_test(refuses_a_record_that_cannot_be),
		cmocka_unit_test(refuses_a_name_that_is_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
