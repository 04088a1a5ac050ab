/* From batches to events: what is reported, what is cut, what is refused and counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "batch_maker.h"
#include "userspace/record/gpu/gpu_activity.h"

#define PID 70000000u /* there is no such process */
#define START 1000000ULL
#define NOW 900000000ULL

/* A file that is never opened keeps its events waiting, to be looked at. */
static struct rls_event_output output;
static struct rls_translator *translator;
static struct rls_gpu *gpu;
static struct batch_maker maker;

static int set_up(void **state)
{
	const struct rls_process_watcher watcher = {0};
	struct rls_event_sink sink;
	int r = rls_event_output_init(&output);

	sink = rls_event_output_sink(&output);
	if (!r)
		r = rls_translator_new(&sink, &watcher, &translator);
	if (!r)
		r = rls_gpu_new(&output, translator, &gpu);
	if (!r)
		rls_gpu_begin(gpu, START);
	return r;
}

static int tear_down(void **state)
{
	rls_gpu_free(gpu);
	rls_translator_free(translator);
	return rls_event_output_close(&output);
}

static void send_at(uint32_t pid, uint64_t time_ns)
{
	static struct {
		struct rls_wire_gpu_batch wire;
		uint8_t bytes[RLS_CUPTI_BATCH_BYTES_MAX];
	} record;

	record.wire = (struct rls_wire_gpu_batch){
		.header = {.size = sizeof(record),
			   .kind = RLS_WIRE_GPU_BATCH,
			   .pid = pid,
			   .time_ns = time_ns},
		.bytes = (uint32_t)batch_bytes(&maker, record.bytes),
	};
	assert_int_equal(rls_gpu_add(gpu, &record.wire.header, sizeof(record)), 0);
}

static void send(void)
{
	send_at(PID, NOW);
}

static void add(uint8_t kind, uint64_t start_ns, uint64_t end_ns, uint32_t correlation)
{
	batch_add(&maker,
		  (struct rls_cupti_record){.kind = kind,
					    .start_ns = start_ns,
					    .end_ns = end_ns,
					    .correlation = correlation,
					    .tid = PID,
					    .device = 1,
					    .stream = 7},
		  "k");
}

static void status(uint8_t which, const char *said)
{
	batch_add(&maker, (struct rls_cupti_record){.kind = RLS_CUPTI_STATUS, .subkind = which},
		  said);
}

static size_t count(enum rls_event_kind kind)
{
	size_t found = 0;

	for (size_t i = 0; i < output.waiting_count; i++)
		found += output.waiting[i].kind == kind;
	return found;
}

static const struct rls_event *nth(enum rls_event_kind kind, size_t n)
{
	for (size_t i = 0; i < output.waiting_count; i++) {
		if (output.waiting[i].kind == kind && !n--)
			return &output.waiting[i];
	}
	fail_msg("no event %zu of kind %d", n, kind);
	return NULL;
}

static uint64_t loss(const char *buffer)
{
	for (size_t i = 0; i < count(RLS_EVENT_LOSS); i++) {
		const struct rls_event *event = nth(RLS_EVENT_LOSS, i);

		if (!strcmp(rls_string_pool_get(output.strings, event->loss.buffer), buffer))
			return event->loss.dropped;
	}
	fail_msg("no loss in %s", buffer);
	return 0;
}

static uint64_t report(void)
{
	uint64_t batches = 0;

	rls_gpu_stop(gpu, NOW);
	assert_int_equal(rls_gpu_report(gpu, &batches), 0);
	return batches;
}

static const char *warning(size_t n)
{
	return rls_string_pool_get(output.strings, nth(RLS_EVENT_WARNING, n)->warning.text);
}

static void reports_launches_and_work(void **state)
{
	static const struct {
		uint8_t kind;
		enum rls_gpu_kind as;
	} kinds[] = {
		{RLS_CUPTI_KERNEL, RLS_GPU_KERNEL}, {RLS_CUPTI_MEMCPY, RLS_GPU_MEMCPY},
		{RLS_CUPTI_MEMSET, RLS_GPU_MEMSET}, {RLS_CUPTI_SYNC, RLS_GPU_SYNC},
		{RLS_CUPTI_GRAPH, RLS_GPU_GRAPH},
	};

	batch_begin(&maker, 1);
	add(RLS_CUPTI_API, START + 10, START + 12, 5);
	for (size_t i = 0; i < 5; i++)
		add(kinds[i].kind, START + 20 + i, START + 30, 5);
	send();
	assert_int_equal(count(RLS_EVENT_LAUNCH), 1);
	assert_int_equal(nth(RLS_EVENT_LAUNCH, 0)->tid, PID);
	assert_int_equal(nth(RLS_EVENT_LAUNCH, 0)->time_ns, START + 10);
	assert_int_equal(nth(RLS_EVENT_LAUNCH, 0)->launch.correlation, 5);
	assert_int_equal(count(RLS_EVENT_GPU), 5);
	for (size_t i = 0; i < 5; i++) {
		const struct rls_event *event = nth(RLS_EVENT_GPU, i);

		assert_int_equal(event->gpu.kind, kinds[i].as);
		assert_int_equal(event->time_ns, START + 20 + i);
		assert_int_equal(event->gpu.end_ns, START + 30);
		assert_int_equal(event->gpu.device, 1);
		assert_int_equal(event->gpu.stream, 7);
		assert_string_equal(rls_string_pool_get(output.strings, event->gpu.name), "k");
	}
}

static void add_copy(uint8_t subkind, uint64_t start_ns, uint64_t bytes)
{
	batch_add(&maker,
		  (struct rls_cupti_record){.kind = RLS_CUPTI_MEMCPY,
					    .subkind = subkind,
					    .correlation = 3,
					    .start_ns = start_ns,
					    .end_ns = START + 100,
					    .value = bytes},
		  "k");
}

/* By direction, where asked for; of those that began in the recording. */
static void reports_what_copies_moved(void **state)
{
	static const struct {
		uint8_t subkind;
		enum rls_copy_kind kind;
	} copies[] = {{1, RLS_COPY_H2D}, {2, RLS_COPY_D2H}, {8, RLS_COPY_D2D}, {10, RLS_COPY_D2D}};

	batch_begin(&maker, 1);
	add_copy(1, START + 10, 5);
	send();
	assert_int_equal(count(RLS_EVENT_GPU_COPY), 0);
	rls_gpu_want_copies(gpu);
	batch_begin(&maker, 2);
	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++)
		add_copy(copies[i].subkind, START + 20 + i, i ? 100 + i : UINT64_MAX);
	add_copy(0, START + 40, 1);
	add_copy(9, START + 41, 1);
	add_copy(200, START + 42, 1);
	add_copy(1, START - 1, 1);
	send();
	assert_int_equal(count(RLS_EVENT_GPU_COPY), 4);
	for (size_t i = 0; i < 4; i++) {
		const struct rls_event *event = nth(RLS_EVENT_GPU_COPY, i);

		assert_int_equal(event->time_ns, START + 20 + i);
		assert_int_equal(event->pid, PID);
		assert_int_equal(event->gpu_copy.kind, copies[i].kind);
		assert_int_equal(event->gpu_copy.correlation, 3);
		assert_int_equal(event->gpu_copy.bytes, i ? 100 + i : INT64_MAX);
	}
}

/* What CUPTI numbered for one program says nothing of the next one's calls. */
static void begins_anew_with_numbers(void **state)
{
	batch_begin(&maker, 1);
	add(RLS_CUPTI_API, START + 10, START + 12, 5);
	send();
	batch_begin(&maker, 2);
	add(RLS_CUPTI_API, START + 11, START + 12, 5); /* the driver's call inside */
	send();
	assert_int_equal(count(RLS_EVENT_LAUNCH), 1);
	batch_begin(&maker, 1); /* the process has become another program */
	add(RLS_CUPTI_API, START + 50, START + 52, 5);
	add(RLS_CUPTI_KERNEL, START + 51, START + 60, 5);
	send();
	assert_int_equal(count(RLS_EVENT_LAUNCH), 2);
	assert_int_equal(nth(RLS_EVENT_LAUNCH, 1)->time_ns, START + 50);
	assert_int_equal(count(RLS_EVENT_GPU), 1);
	batch_begin(&maker, 2);
	status(RLS_CUPTI_DISARMED, NULL);
	status(RLS_CUPTI_ARMED, NULL); /* CUPTI may have left meanwhile */
	add(RLS_CUPTI_API, START + 70, START + 72, 5);
	send();
	assert_int_equal(count(RLS_EVENT_LAUNCH), 3);
}

static void takes_runtime_and_driver_call_for_one_launch(void **state)
{
	batch_begin(&maker, 1);
	add(RLS_CUPTI_API, START + 11, START + 12, 5);
	add(RLS_CUPTI_API, START + 10, START + 13, 5);
	add(RLS_CUPTI_API, START + 20, START + 23, 6);
	send();
	assert_int_equal(count(RLS_EVENT_LAUNCH), 2);
}

static void cuts_work_to_the_recording(void **state)
{
	batch_begin(&maker, 1);
	add(RLS_CUPTI_API, START - 10, START - 5, 1); /* nobody's operation is known then */
	add(RLS_CUPTI_KERNEL, START - 9, START - 1, 1);
	add(RLS_CUPTI_KERNEL, START - 9, START + 5, 1);
	send();
	rls_gpu_stop(gpu, START + 100);
	batch_begin(&maker, 2);
	add(RLS_CUPTI_KERNEL, START + 90, START + 190, 2);
	add(RLS_CUPTI_KERNEL, START + 100, START + 190, 2);
	send();
	assert_int_equal(count(RLS_EVENT_LAUNCH), 0);
	assert_int_equal(count(RLS_EVENT_GPU), 2);
	assert_int_equal(nth(RLS_EVENT_GPU, 0)->time_ns, START);
	assert_int_equal(nth(RLS_EVENT_GPU, 0)->gpu.end_ns, START + 5);
	assert_int_equal(nth(RLS_EVENT_GPU, 1)->gpu.end_ns, START + 100);
}

static void refuses_impossible_times_and_counts_them(void **state)
{
	batch_begin(&maker, 1);
	maker.header.refused = 4; /* the bridge's own */
	add(RLS_CUPTI_API, START + 2000000, START + 2000010, 5);
	add(RLS_CUPTI_KERNEL, START + 500000, START + 2500000, 5); /* before its launch */
	add(RLS_CUPTI_KERNEL, 0, 0, 5);
	add(RLS_CUPTI_KERNEL, START + 9, START + 8, 5);
	add(RLS_CUPTI_KERNEL, START + 10, NOW + 1000000000, 5); /* in the future */
	add(RLS_CUPTI_API, NOW + 100000000, NOW + 100000001, 6);
	add(RLS_CUPTI_KERNEL, START + 2000005, START + 2500000, 5);
	send();
	assert_int_equal(count(RLS_EVENT_GPU), 1);
	assert_int_equal(count(RLS_EVENT_LAUNCH), 1);
	report();
	assert_int_equal(loss("gpu_impossible"), 4 + 5);
	assert_int_equal(count(RLS_EVENT_WARNING), 0);
}

/* CUPTI's interpolated times: a little before its launch work is kept, and it is said. */
static void keeps_work_that_is_placed_a_little_early(void **state)
{
	batch_begin(&maker, 1);
	add(RLS_CUPTI_API, START + 2000000, START + 2000010, 5);
	add(RLS_CUPTI_KERNEL, START + 1950000, START + 2500000, 5);
	add(RLS_CUPTI_API, START + 3000000, START + 3000010, 6);
	add(RLS_CUPTI_KERNEL, START + 2999000, START + 3500000, 6);
	send();
	report();
	assert_int_equal(count(RLS_EVENT_GPU), 2);
	assert_int_equal(loss("gpu_impossible"), 0);
	assert_int_equal(count(RLS_EVENT_WARNING), 1);
	assert_non_null(strstr(warning(0),
			       "2 pieces of GPU work lie before their launches, by up to 50 us"));
}

static void says_that_cupti_is_in_no_budget(void **state)
{
	for (uint32_t i = 0; i < 60; i++) {
		batch_begin(&maker, i + 1);
		for (uint32_t j = 1; j <= 100; j++)
			add(RLS_CUPTI_API, START + 1000, START + 2000, 100 * i + j);
		send();
	}
	report();
	assert_int_equal(count(RLS_EVENT_LAUNCH), 6000);
	assert_int_equal(count(RLS_EVENT_WARNING), 1);
	assert_non_null(strstr(warning(0), "some 3% of a thread's time for 6000 launches"));
}

static void says_when_no_launches_are_reported(void **state)
{
	for (uint64_t i = 1; i <= 2; i++) {
		batch_begin(&maker, i);
		for (uint64_t j = 0; j < 60; j++)
			add(RLS_CUPTI_KERNEL, START + 100 * j, START + 100 * j + 50,
			    (uint32_t)(60 * i + j));
		send();
	}
	report();
	assert_int_equal(count(RLS_EVENT_WARNING), 1);
	assert_non_null(strstr(warning(0), "120 pieces of GPU work"));
}

static void counts_what_was_left_out_since_we_came(void **state)
{
	batch_begin(&maker, 10); /* it has been at work before */
	maker.header.dropped = 100;
	maker.header.unpooled = 50;
	send();
	batch_begin(&maker, 14); /* three missing */
	maker.header.dropped = 107;
	maker.header.unpooled = 52;
	send();
	assert_int_equal(report(), 3);
	assert_int_equal(loss("cupti"), 7);
	assert_int_equal(loss("cupti_bridge"), 2);
	assert_int_equal(loss("gpu_impossible"), 0);
}

static void counts_a_first_batch_from_the_beginning(void **state)
{
	batch_begin(&maker, 1);
	maker.header.dropped = 100;
	send();
	/* The number is used again, by another program: it too from its beginning. */
	batch_begin(&maker, 1);
	maker.header.dropped = 5;
	send();
	assert_int_equal(report(), 0);
	assert_int_equal(loss("cupti"), 105);
}

static void says_what_troubles_a_bridge_once(void **state)
{
	for (uint64_t i = 1; i < 5; i++) {
		batch_begin(&maker, i);
		status(i < 4 ? RLS_CUPTI_SLOT_TAKEN : RLS_CUPTI_ARMED, "held by \033[31mnsys");
		send();
	}
	assert_int_equal(count(RLS_EVENT_WARNING), 1);
	assert_non_null(strstr(warning(0), "another tool"));
	assert_non_null(strstr(warning(0), "held by ?[31mnsys")); /* no control sequences */
}

static void leaves_out_what_is_no_batch(void **state)
{
	struct rls_wire_gpu_batch lying = {
		.header = {.size = sizeof(lying), .kind = RLS_WIRE_GPU_BATCH, .pid = PID},
		.bytes = 4096,
	};

	assert_int_equal(rls_gpu_add(gpu, &lying.header, sizeof(lying)), 0);
	batch_begin(&maker, 1);
	maker.header.magic = 0;
	send();
	batch_begin(&maker, 1);
	maker.header.count = 3;
	maker.header.version = 2;
	send();
	assert_int_equal(report(), 2);
	assert_int_equal(count(RLS_EVENT_GPU), 0);
}

static void places_launches_by_the_targets_own_numbers(void **state)
{
	const struct rls_wire_thread thread = {
		.header = {.size = sizeof(thread),
			   .kind = RLS_WIRE_THREAD,
			   .pid = PID,
			   .tid = PID + 5,
			   .time_ns = START},
		.ns_tid = 23,
	};

	assert_int_equal(rls_gpu_add(gpu, &thread.header, sizeof(thread)), 0);
	batch_begin(&maker, 1);
	batch_add(&maker,
		  (struct rls_cupti_record){.kind = RLS_CUPTI_API,
					    .start_ns = START + 1,
					    .end_ns = START + 2,
					    .correlation = 1,
					    .tid = 23},
		  NULL);
	batch_add(&maker,
		  (struct rls_cupti_record){.kind = RLS_CUPTI_API,
					    .start_ns = START + 1,
					    .end_ns = START + 2,
					    .correlation = 2,
					    .tid = 24},
		  NULL);
	send();
	assert_int_equal(count(RLS_EVENT_LAUNCH), 1);
	assert_int_equal(nth(RLS_EVENT_LAUNCH, 0)->tid, PID + 5);
	report();
	assert_non_null(
		strstr(warning(count(RLS_EVENT_WARNING) - 1), "1 launches were made by threads"));
}

static void keeps_the_clock_once_a_second(void **state)
{
	for (uint64_t i = 1; i < 40; i++) {
		batch_begin(&maker, i);
		maker.header.clock_ns = START + i * 100000000;
		maker.header.clock_cupti_ns = maker.header.clock_ns - 500 + 10 * i;
		maker.header.clock_width_ns = 80;
		send_at(PID, NOW + i * 100000000);
	}
	assert_int_equal(count(RLS_EVENT_GPU_CLOCK), 4);
	assert_true(nth(RLS_EVENT_GPU_CLOCK, 0)->gpu_clock.gap_ns == -490);
	assert_int_equal(nth(RLS_EVENT_GPU_CLOCK, 1)->gpu_clock.width_ns, 80);
	assert_true(nth(RLS_EVENT_GPU_CLOCK, 3)->gpu_clock.drift_ppm == 0.1);
}

static void waits_for_flushes_of_the_armed_alone(void **state)
{
	batch_begin(&maker, 1);
	status(RLS_CUPTI_ARMED, NULL);
	maker.header.flushed_ns = START;
	send();
	batch_begin(&maker, 1);
	status(RLS_CUPTI_NO_DRIVER, NULL);
	send_at(PID + 1, NOW);
	rls_gpu_stop(gpu, START + 50);
	assert_false(rls_gpu_is_drained(gpu));
	batch_begin(&maker, 2);
	maker.header.flushed_ns = START + 50;
	send();
	assert_true(rls_gpu_is_drained(gpu));
}

/* Nor of those that have ended, whatever reported it. */
static void waits_for_nobody_who_has_ended(void **state)
{
	batch_begin(&maker, 1);
	status(RLS_CUPTI_ARMED, NULL);
	maker.header.flushed_ns = START;
	send();
	rls_gpu_stop(gpu, START + 50);
	assert_false(rls_gpu_is_drained(gpu));
	rls_gpu_ended(gpu, PID, START + 60);
	assert_true(rls_gpu_is_drained(gpu));
}

static void bounds_the_names_it_keeps(void **state)
{
	uint32_t strings;

	for (uint64_t i = 1; i <= 70000 / 128; i++) {
		batch_begin(&maker, i);
		for (uint64_t k = 0; k < 128; k++) {
			char name[32];

			snprintf(name, sizeof(name), "%zu", (size_t)(i * 128 + k));
			batch_add(&maker,
				  (struct rls_cupti_record){.kind = RLS_CUPTI_KERNEL,
							    .start_ns = START + i,
							    .end_ns = START + i + 1},
				  name);
		}
		send();
	}
	strings = rls_string_pool_count(output.strings);
	assert_true(strings > 65536 && strings < 65536 + 10);
}

/* Both have the same 64-bit FNV-1a hash: a name must not pass for another that is as long. */
static void keeps_names_apart_whose_hashes_collide(void **state)
{
	static const char *const names[] = {"8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ"};

	batch_begin(&maker, 1);
	for (size_t i = 0; i < 2; i++)
		batch_add(&maker,
			  (struct rls_cupti_record){.kind = RLS_CUPTI_KERNEL,
						    .start_ns = START + i,
						    .end_ns = START + i + 1},
			  names[i]);
	send();
	for (size_t i = 0; i < 2; i++)
		assert_string_equal(
			rls_string_pool_get(output.strings, nth(RLS_EVENT_GPU, i)->gpu.name),
			names[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(reports_launches_and_work),
		TEST(reports_what_copies_moved),
		TEST(begins_anew_with_numbers),
		TEST(takes_runtime_and_driver_call_for_one_launch),
		TEST(cuts_work_to_the_recording),
		TEST(refuses_impossible_times_and_counts_them),
		TEST(keeps_work_that_is_placed_a_little_early),
		TEST(says_that_cupti_is_in_no_budget),
		TEST(says_when_no_launches_are_reported),
		TEST(counts_what_was_left_out_since_we_came),
		TEST(counts_a_first_batch_from_the_beginning),
		TEST(says_what_troubles_a_bridge_once),
		TEST(leaves_out_what_is_no_batch),
		TEST(places_launches_by_the_targets_own_numbers),
		TEST(keeps_the_clock_once_a_second),
		TEST(waits_for_flushes_of_the_armed_alone),
		TEST(waits_for_nobody_who_has_ended),
		TEST(bounds_the_names_it_keeps),
		TEST(keeps_names_apart_whose_hashes_collide),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
