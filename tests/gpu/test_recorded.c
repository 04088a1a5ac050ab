/* What CUPTI wrote on some machine, decoded by the bridge as it is now, against what it was taken for
 * then (recorded/README.md). Without a folder gpu-* this says nothing of a GPU, which is printed.
 */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cupti_bridge/calls.h"
#include "cupti_bridge/decode.h"
#include "userspace/record/gpu/batch_validate.h"

#define FILE_BYTES_MAX (1u << 20)
#define WAIT_OFF_NS 10000 /* a wait begins and ends within its call */
#define TAP_BYTES (512u << 10) /* more than that is not in a .raw file */

struct bytes {
	uint8_t *data;
	size_t length;
};

static struct bytes read_file(const char *path)
{
	struct bytes bytes = {malloc(FILE_BYTES_MAX), 0};
	FILE *file = fopen(path, "re");

	assert_non_null(bytes.data);
	if (!file)
		fail_msg("%s cannot be read", path);
	bytes.length = fread(bytes.data, 1, FILE_BYTES_MAX, file);
	fclose(file);
	return bytes;
}

/* Both files are walked side by side. */
struct pair {
	const char *path;
	struct bytes raw, batches;
	size_t raw_at, batch_at, record_at;
	struct rls_batch_view view;
	uint64_t left_out; /* by the bridge, in all */
	size_t compared, missing;
};

static void open_batch(struct pair *pair)
{
	struct rls_cupti_batch header;
	size_t left = pair->batches.length - pair->batch_at, size;

	assert_true(left >= sizeof(header));
	memcpy(&header, pair->batches.data + pair->batch_at, sizeof(header));
	size = sizeof(header) + header.count * sizeof(struct rls_cupti_record) +
	       header.string_bytes;
	assert_true(size <= left);
	assert_int_equal(rls_batch_validate(pair->batches.data + pair->batch_at, size, &pair->view),
			 0);
	pair->left_out = header.refused + header.unpooled + header.unclaimed;
	pair->batch_at += size;
	pair->record_at = 0;
}

/* The next record of the batches that is not a word of the bridge's own; false: there is none. */
static bool next_reported(struct pair *pair, struct rls_batch_record *out)
{
	for (;;) {
		while (pair->record_at == pair->view.header.count) {
			if (pair->batch_at == pair->batches.length)
				return false;
			open_batch(pair);
		}
		assert_int_equal(rls_batch_record(&pair->view, pair->record_at++, out), 0);
		if (out->record.kind != RLS_CUPTI_STATUS)
			return true;
	}
}

/* The next record of CUPTI's that the bridge reads; false: there is none. */
static bool next_raw(struct pair *pair, struct rls_cupti_record *out,
		     char name[RLS_CUPTI_NAME_BYTES_MAX])
{
	uint32_t head[2];
	const char *unused;

	while (pair->raw_at + sizeof(head) <= pair->raw.length) {
		const uint8_t *record = pair->raw.data + pair->raw_at + sizeof(head);

		memcpy(head, pair->raw.data + pair->raw_at, sizeof(head));
		pair->raw_at += sizeof(head) + head[0] + head[1];
		assert_true(pair->raw_at <= pair->raw.length && head[1] < RLS_CUPTI_NAME_BYTES_MAX);
		if (rls_record_decode(record, head[0], out, &unused) != RLS_DECODED)
			continue;
		memcpy(name, record + head[0], head[1]);
		name[head[1]] = '\0';
		return true;
	}
	return false;
}

static bool is_same(const struct rls_cupti_record *raw, const char *name,
		    const struct rls_batch_record *reported)
{
	struct rls_cupti_record record = reported->record;

	record.name = raw->name;
	return !memcmp(&record, raw, sizeof(record)) && strlen(name) == reported->name_bytes &&
	       !memcmp(name, reported->name, reported->name_bytes);
}

static void compare(struct pair *pair)
{
	char name[RLS_CUPTI_NAME_BYTES_MAX];
	struct rls_cupti_record raw;
	struct rls_batch_record reported;
	bool has_reported = next_reported(pair, &reported);

	while (next_raw(pair, &raw, name)) {
		if (has_reported && is_same(&raw, name, &reported)) {
			pair->compared++;
			has_reported = next_reported(pair, &reported);
		} else {
			pair->missing++;
		}
	}
	while (pair->batch_at < pair->batches.length)
		open_batch(pair);
	print_message("%s: %zu records alike, %zu left out by the bridge\n", pair->path,
		      pair->compared, pair->missing);
	assert_true(pair->compared > 0);
	assert_true(pair->missing <= pair->left_out);
	assert_true(!has_reported || pair->raw.length + RLS_CUPTI_NAME_BYTES_MAX + 512 > TAP_BYTES);
}

static void test_recorded(void **state)
{
	glob_t found;

	assert_int_equal(glob(FOLDER "/*/*.raw", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct pair pair = {.path = found.gl_pathv[i] + sizeof(FOLDER)};
		char path[4096];

		pair.raw = read_file(found.gl_pathv[i]);
		snprintf(path, sizeof(path), "%.*s.batches", (int)strlen(found.gl_pathv[i]) - 4,
			 found.gl_pathv[i]);
		pair.batches = read_file(path);
		compare(&pair);
		free(pair.raw.data);
		free(pair.batches.data);
	}
	globfree(&found);
	if (glob(FOLDER "/gpu-*", GLOB_ONLYDIR, NULL, &found))
		print_message("none of these is from a GPU\n");
	else
		globfree(&found);
}

/* The call of the wait's number; false: there is none. */
static bool find_call(struct pair pair, const struct rls_cupti_record *wait,
		      struct rls_cupti_record *out)
{
	char name[RLS_CUPTI_NAME_BYTES_MAX];
	struct rls_cupti_record record;

	pair.raw_at = 0;
	while (next_raw(&pair, &record, name)) {
		if (record.kind != RLS_CUPTI_API || record.correlation != wait->correlation)
			continue;
		*out = record;
		return true;
	}
	return false;
}

static size_t check_waits(struct pair pair)
{
	char name[RLS_CUPTI_NAME_BYTES_MAX];
	struct rls_cupti_record wait, call;
	size_t count = 0;

	while (next_raw(&pair, &wait, name)) {
		if (wait.kind != RLS_CUPTI_SYNC || !find_call(pair, &wait, &call))
			continue; /* its call may lie beyond what was kept */
		assert_int_equal(rls_call_waits(call.subkind, call.value), wait.subkind);
		assert_true(llabs((long long)(wait.start_ns - call.start_ns)) < WAIT_OFF_NS);
		assert_true(llabs((long long)(wait.end_ns - call.end_ns)) < WAIT_OFF_NS);
		count++;
	}
	return count;
}

/* CUPTI's records of waits, which it is not asked for any more, said what the calls' do. */
static void test_waits_are_their_calls(void **state)
{
	size_t count = 0;
	glob_t found;

	assert_int_equal(glob(FOLDER "/*/*.raw", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct pair pair = {.raw = read_file(found.gl_pathv[i])};

		count += check_waits(pair);
		free(pair.raw.data);
	}
	globfree(&found);
	print_message("%zu waits are reported by their calls\n", count);
	assert_true(count >= 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_recorded),
					   cmocka_unit_test(test_waits_are_their_calls)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
