/* Records at their offsets, and walks by a CUPTI that answers wrongly. What NVIDIA's own parser
 * makes of the same records is real_libraries.sh's to see.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cupti_bridge/calls.h"
#include "cupti_bridge/decode.h"
#include "cupti_bridge/launch_history.h"

static uint8_t bytes[256];
static struct rls_cupti_record record;
static const char *name;

static void put32(size_t offset, uint32_t value)
{
	memcpy(bytes + offset, &value, sizeof(value));
}

static void put64(size_t offset, uint64_t value)
{
	memcpy(bytes + offset, &value, sizeof(value));
}

static void begin(uint32_t kind)
{
	memset(bytes, 0, sizeof(bytes));
	memset(&record, 0xff, sizeof(record));
	put32(0, kind);
}

/* Decodes exactly at the least length, and says short at one byte less. */
static void decode(size_t least)
{
	assert_int_equal(rls_record_decode(bytes, least - 1, &record, &name), RLS_DECODE_SHORT);
	assert_int_equal(rls_record_decode(bytes, least, &record, &name), RLS_DECODED);
}

static void decodes_kernels(void **state)
{
	const uint32_t kinds[] = {3, 10};

	for (size_t i = 0; i < 2; i++) {
		begin(kinds[i]);
		put64(16, 100);
		put64(24, 250);
		put32(40, 1);
		put32(44, 2);
		put32(48, 3);
		put32(92, 4);
		put64(104, (uintptr_t) "gemm");
		put64(144, 5);
		put32(156, 6);
		decode(160);
		assert_int_equal(record.kind, RLS_CUPTI_KERNEL);
		assert_int_equal(record.start_ns, 100);
		assert_int_equal(record.end_ns, 250);
		assert_int_equal(record.device, 1);
		assert_int_equal(record.context, 2);
		assert_int_equal(record.stream, 3);
		assert_int_equal(record.correlation, 4);
		assert_string_equal(name, "gemm");
		assert_int_equal(record.graph_node, 5);
		assert_int_equal(record.graph, 6);
	}
}

static void decodes_copies(void **state)
{
	begin(1);
	put32(4, 0x01020302); /* one byte is the kind, the others are memories' */
	put64(8, 1ull << 40);
	put32(44, 7);
	decode(76);
	assert_int_equal(record.kind, RLS_CUPTI_MEMCPY);
	assert_int_equal(record.subkind, 2);
	assert_int_equal(record.value, 1ull << 40);
	assert_int_equal(record.correlation, 7);
	begin(22);
	put32(4, 10);
	put32(44, 99); /* a device's, not the correlation */
	put32(60, 7);
	decode(84);
	assert_int_equal(record.kind, RLS_CUPTI_MEMCPY);
	assert_int_equal(record.subkind, 10);
	assert_int_equal(record.correlation, 7);
	assert_null(name);
}

static void decodes_calls(void **state)
{
	begin(5);
	put32(4, 211);
	put64(8, 10);
	put64(16, 20);
	put32(28, 1234);
	put32(32, 7);
	decode(40);
	assert_int_equal(record.kind, RLS_CUPTI_API);
	assert_int_equal(record.subkind, RLS_CUPTI_RUNTIME);
	assert_int_equal(record.value, 211);
	assert_int_equal(record.tid, 1234);
	assert_int_equal(record.correlation, 7);
	put32(4, 10); /* cudaGetLastError */
	assert_int_equal(rls_record_decode(bytes, 40, &record, &name), RLS_DECODE_SKIPPED);
	begin(4);
	put32(4, 307);
	decode(40);
	assert_int_equal(record.subkind, RLS_CUPTI_DRIVER);
	put32(4, 211); /* of the runtime's numbers */
	assert_int_equal(rls_record_decode(bytes, 40, &record, &name), RLS_DECODE_SKIPPED);
}

static void decodes_overhead(void **state)
{
	begin(17);
	put32(4, 7 << 16);
	put32(8, 2); /* a thread's */
	put32(16, 1234);
	put64(24, 10);
	put64(32, 20);
	decode(40);
	assert_int_equal(record.subkind, 7);
	assert_int_equal(record.value, 7 << 16);
	assert_int_equal(record.tid, 1234);
	put32(8, 3); /* a device's */
	decode(40);
	assert_int_equal(record.tid, 0);
}

static void knows_what_it_does_not_know(void **state)
{
	const uint32_t kinds[] = {0, 6, 39, 52, UINT32_MAX};

	for (size_t i = 0; i < 5; i++) {
		begin(kinds[i]);
		assert_int_equal(rls_record_decode(bytes, sizeof(bytes), &record, &name),
				 RLS_DECODE_UNKNOWN);
	}
	for (size_t length = 0; length < 4; length++)
		assert_int_equal(rls_record_decode(bytes, length, &record, &name),
				 RLS_DECODE_SHORT);
}

static void refuses_impossible_times(void **state)
{
	const struct {
		uint64_t start, end;
		bool is_possible;
	} cases[] = {{0, 0, false},    {0, 150, false},  {150, 0, false},  {150, 149, false},
		     {150, 150, true}, {100, 200, true}, {99, 150, false}, {150, 201, false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		record.start_ns = cases[i].start;
		record.end_ns = cases[i].end;
		assert_int_equal(rls_record_is_possible(&record, 100, 200), cases[i].is_possible);
	}
	record.start_ns = record.end_ns = 0;
	assert_false(rls_record_is_possible(&record, 0, UINT64_MAX));
}

static void knows_launches(void **state)
{
	static struct rls_launch_history launches;
	const uint64_t late_ns = 100 + RLS_CUPTI_EARLY_NS;
	struct rls_cupti_record call = {.kind = RLS_CUPTI_API, .correlation = 5};
	struct rls_cupti_record work = {.kind = RLS_CUPTI_KERNEL, .correlation = 5, .start_ns = 99};

	assert_false(rls_launch_history_forbid(&launches, &work));
	call.start_ns = late_ns + 10; /* the driver's call, inside of */
	rls_launch_history_add(&launches, &call);
	call.start_ns = late_ns; /* the runtime's */
	rls_launch_history_add(&launches, &call);
	call.start_ns = late_ns + 20;
	rls_launch_history_add(&launches, &call);
	assert_true(rls_launch_history_forbid(&launches, &work));
	work.start_ns = 100; /* as far off as a GPU's clock may be */
	assert_false(rls_launch_history_forbid(&launches, &work));
	work.start_ns = 1;
	work.correlation = 5 + RLS_LAUNCHES; /* another, in the same place */
	assert_false(rls_launch_history_forbid(&launches, &work));
	call.correlation = work.correlation;
	rls_launch_history_add(&launches, &call);
	assert_true(rls_launch_history_forbid(&launches, &work));
}

static void knows_waits(void **state)
{
	static const struct {
		unsigned int domain;
		uint32_t cbid, type;
	} calls[] = {
		{RLS_CUPTI_RUNTIME, 131, 3}, {RLS_CUPTI_RUNTIME, 165, 4},
		{RLS_CUPTI_RUNTIME, 137, 1}, {RLS_CUPTI_DRIVER, 126, 3},
		{RLS_CUPTI_DRIVER, 17, 4},   {RLS_CUPTI_DRIVER, 121, 1},
		{RLS_CUPTI_RUNTIME, 534, 4}, {RLS_CUPTI_DRIVER, 800, 4},
		{RLS_CUPTI_RUNTIME, 211, 0}, {RLS_CUPTI_RUNTIME, 17, 0},
		{RLS_CUPTI_DRIVER, 307, 0},  {RLS_CUPTI_DRIVER, 131, 0},
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		assert_int_equal(rls_call_waits(calls[i].domain, calls[i].cbid), calls[i].type);
		assert_true(!calls[i].type || rls_call_launches(calls[i].domain, calls[i].cbid));
	}
}

/* Of nested calls, and a record of CUPTI's own, one is the wait; another number's are another's. */
static void knows_graphs(void **state)
{
	static const uint32_t of_runtime[] = {311, 312}, of_driver[] = {514, 515, 819};

	for (size_t i = 0; i < sizeof(of_runtime) / sizeof(*of_runtime); i++)
		assert_true(rls_call_launches_graph(RLS_CUPTI_RUNTIME, of_runtime[i]) &&
			    rls_call_launches(RLS_CUPTI_RUNTIME, of_runtime[i]));
	for (size_t i = 0; i < sizeof(of_driver) / sizeof(*of_driver); i++)
		assert_true(rls_call_launches_graph(RLS_CUPTI_DRIVER, of_driver[i]) &&
			    rls_call_launches(RLS_CUPTI_DRIVER, of_driver[i]));
	assert_false(rls_call_launches_graph(RLS_CUPTI_RUNTIME, 514));
	assert_false(rls_call_launches_graph(RLS_CUPTI_RUNTIME, 211) ||
		     rls_call_launches_graph(RLS_CUPTI_DRIVER, 307));
}

static void a_wait_is_claimed_once(void **state)
{
	static struct rls_launch_history launches;
	struct rls_cupti_record call = {.kind = RLS_CUPTI_API, .correlation = 5, .start_ns = 100};

	rls_launch_history_add(&launches, &call);
	call.start_ns = 90;
	rls_launch_history_add(&launches, &call);
	assert_true(rls_launch_history_claim_wait(&launches, &call));
	assert_false(rls_launch_history_claim_wait(&launches, &call));
	rls_launch_history_add(&launches, &call); /* reported once more */
	assert_false(rls_launch_history_claim_wait(&launches, &call));
	call.correlation = 5 + RLS_LAUNCHES;
	assert_true(rls_launch_history_claim_wait(&launches, &call)); /* not known */
	rls_launch_history_add(&launches, &call);
	assert_true(rls_launch_history_claim_wait(&launches, &call));
	assert_false(rls_launch_history_claim_wait(&launches, &call));
	call.correlation = 0;
	assert_true(rls_launch_history_claim_wait(&launches, &call));
}

/* --- walks ---------------------------------------------------------------------------- */

static const ptrdiff_t *steps; /* 0: the end */
static int end_result;

static int step(uint8_t *buffer, size_t valid_bytes, uint8_t **at)
{
	if (!*steps)
		return end_result;
	*at = (*at ? *at : buffer) + *steps++ - (*at ? 0 : 1); /* the first is from 1 */
	return 0;
}

static size_t walk(const ptrdiff_t *way, int result, int *error, size_t *last_length)
{
	struct rls_walk walking = {.next = step, .buffer = bytes, .valid_bytes = 100};
	const uint8_t *at;
	size_t count = 0;

	steps = way;
	end_result = result;
	while ((*error = rls_walk_step(&walking, &at, last_length)) > 0)
		count++;
	return count;
}

static void walks_no_further_than_it_may(void **state)
{
	const ptrdiff_t whole[] = {1, 40, 40, 0}, empty[] = {0}, back[] = {1, 40, -20, 0},
			stay[] = {1, 40, 0}, beyond[] = {1, 40, 60, 0}, before[] = {-7, 0};
	size_t length = 0;
	int error;

	assert_int_equal(walk(whole, 12, &error, &length), 3);
	assert_int_equal(error, 0);
	assert_int_equal(length, 20);
	assert_int_equal(walk(empty, 12, &error, &length), 0);
	assert_int_equal(error, 0);
	assert_int_equal(walk(back, 12, &error, &length), 2);
	assert_true(error < 0);
	assert_int_equal(walk(beyond, 12, &error, &length), 2);
	assert_true(error < 0);
	assert_int_equal(walk(before, 12, &error, &length), 0);
	assert_true(error < 0);
	assert_int_equal(walk(stay, 21, &error, &length), 2); /* both that it could read */
	assert_true(error < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decodes_kernels),
		cmocka_unit_test(decodes_copies),
		cmocka_unit_test(decodes_calls),
		cmocka_unit_test(decodes_overhead),
		cmocka_unit_test(knows_what_it_does_not_know),
		cmocka_unit_test(refuses_impossible_times),
		cmocka_unit_test(knows_launches),
		cmocka_unit_test(knows_waits),
		cmocka_unit_test(knows_graphs),
		cmocka_unit_test(a_wait_is_claimed_once),
		cmocka_unit_test(walks_no_further_than_it_may),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
