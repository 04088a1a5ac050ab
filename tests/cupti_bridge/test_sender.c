/* Batches as the recorder checks them: each stands by itself, names once, and none that is
 * not there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "cupti_bridge/sender.h"
#include "cupti_bridge/site.h"
#include "userspace/record/gpu/batch_validate.h"

#define PAGE 4096

static struct rls_sender sender;
static unsigned char last[RLS_CUPTI_BATCH_BYTES_MAX];
static struct rls_batch_view view;
static unsigned int sent;

unsigned int rls_site_watchers(void)
{
	return 1;
}

void rls_site_send(const void *batch, uint32_t bytes)
{
	assert_true(bytes <= sizeof(last));
	memcpy(last, batch, bytes);
	assert_int_equal(rls_batch_validate(last, bytes, &view), RLS_BATCH_SOUND);
	assert_int_equal(view.header.sequence, ++sent);
}

static int begin(void **state)
{
	memset(&sender, 0, sizeof(sender));
	sent = 0;
	return 0;
}

static void add(const char *name)
{
	const struct rls_cupti_record record = {
		.kind = RLS_CUPTI_KERNEL, .start_ns = 5, .end_ns = 6};

	rls_sender_add(&sender, &record, name);
}

static const char *name_of(size_t i)
{
	static struct rls_batch_record record;

	assert_int_equal(rls_batch_record(&view, i, &record), 0);
	return record.name;
}

static void sends_when_full(void **state)
{
	for (int i = 0; i < 2 * RLS_CUPTI_RECORDS_MAX + 1; i++)
		add("gemm");
	assert_int_equal(sent, 2);
	assert_int_equal(view.header.count, RLS_CUPTI_RECORDS_MAX);
	assert_int_equal(view.header.string_bytes, sizeof("gemm"));
	assert_string_equal(name_of(RLS_CUPTI_RECORDS_MAX - 1), "gemm");
	rls_sender_send(&sender);
	assert_int_equal(view.header.count, 1);
	assert_string_equal(name_of(0), "gemm");
	rls_sender_send(&sender);
	assert_int_equal(view.header.count, 0);
	assert_int_equal(sent, 4);
}

/* A batch's worth of names that are all different, and long ones: each is where it belongs. */
static void keeps_names_apart(void **state)
{
	static char names[RLS_CUPTI_RECORDS_MAX][RLS_CUPTI_NAME_BYTES_MAX + 8];

	for (int i = 0; i < RLS_CUPTI_RECORDS_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "kernel_%d", i);
		add(names[i]);
	}
	for (int i = 0; i < RLS_CUPTI_RECORDS_MAX; i++)
		assert_string_equal(name_of(i), names[i]);
	for (int i = 0; i < RLS_CUPTI_RECORDS_MAX; i++) {
		memset(names[i], 'a' + i % 26, sizeof(names[i]) - 1);
		add(names[i]);
	}
	rls_sender_send(&sender);
	assert_true(sent > 8); /* 512 of them do not fit into one */
	assert_int_equal(strlen(name_of(0)), RLS_CUPTI_NAME_BYTES_MAX - 1);
	assert_memory_equal(name_of(0), names[RLS_CUPTI_RECORDS_MAX - view.header.count],
			    RLS_CUPTI_NAME_BYTES_MAX - 1);
}

static void survives_names_that_are_gone(void **state)
{
	char *pages =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(munmap(pages + PAGE, PAGE), 0);
	memset(pages, 'x', PAGE);
	strcpy(pages + PAGE - 5, "last");
	strcpy(pages, "first");
	add(pages);
	add(pages + PAGE - 5); /* ends where the page does */
	add(pages + PAGE - 20000000);
	add((const char *)8);
	pages[PAGE - 1] = 'x';
	add(pages + PAGE - 9); /* runs on into nothing */
	add(NULL);
	rls_sender_send(&sender);
	assert_string_equal(name_of(0), "first");
	assert_string_equal(name_of(1), "last");
	for (int i = 3; i < 6; i++)
		assert_string_equal(name_of(i), "");
	munmap(pages, PAGE);
}

static void says_statuses(void **state)
{
	char sentence[2 * RLS_CUPTI_NAME_BYTES_MAX];
	struct rls_batch_record record;

	memset(sentence, 's', sizeof(sentence));
	sentence[sizeof(sentence) - 1] = '\0';
	for (int i = 0; i < 20; i++)
		rls_sender_add_status(&sender, RLS_CUPTI_FAILED, 35, 1000 + i, sentence);
	rls_sender_send(&sender);
	assert_int_equal(sent, 2);
	assert_int_equal(rls_batch_record(&view, view.header.count - 1u, &record), 0);
	assert_int_equal(record.record.kind, RLS_CUPTI_STATUS);
	assert_int_equal(record.record.subkind, RLS_CUPTI_FAILED);
	assert_int_equal(record.record.value, 35);
	assert_int_equal(record.record.start_ns, 1019);
	assert_int_equal(record.name_bytes, RLS_CUPTI_NAME_BYTES_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(sends_when_full, begin),
		cmocka_unit_test_setup(keeps_names_apart, begin),
		cmocka_unit_test_setup(survives_names_that_are_gone, begin),
		cmocka_unit_test_setup(says_statuses, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
