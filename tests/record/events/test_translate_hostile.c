#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/record/counted_memory.h"
#include "tests/record/fixture.h"
#include "tests/record/wire_records.h"

static const size_t record_bytes[] = {
	[RLS_WIRE_CATEGORY] = sizeof(struct rls_wire_category),
	[RLS_WIRE_THREAD] = sizeof(struct rls_wire_thread),
	[RLS_WIRE_FORK] = sizeof(struct rls_wire_fork),
	[RLS_WIRE_EXEC] = sizeof(struct rls_wire_exec),
	[RLS_WIRE_THREAD_EXIT] = sizeof(struct rls_wire_exit),
	[RLS_WIRE_NAME] = sizeof(struct rls_wire_name),
	[RLS_WIRE_EDGE] = sizeof(struct rls_wire_edge),
	[RLS_WIRE_RANGE_PUSH] = sizeof(struct rls_wire_range),
	[RLS_WIRE_RANGE_POP] = sizeof(struct rls_wire_range),
	[RLS_WIRE_LOSS] = sizeof(struct rls_wire_loss),
	[RLS_WIRE_FINAL] = sizeof(struct rls_wire_final),
};
#define KINDS (sizeof(record_bytes) / sizeof(record_bytes[0]))

/* Hands over exactly size bytes, so that a sanitizer sees any byte read beyond. */
static int translate_bytes(struct rls_translator *translator, const void *bytes, size_t size)
{
	void *copy = malloc(size ? size : 1);
	int r;

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	r = rls_translate(translator, copy, size);
	free(copy);
	return r;
}

static void truncated_records_are_ignored_and_counted(void **state)
{
	uint64_t ignored = 0;

	for (size_t kind = 1; kind < KINDS; kind++) {
		uint64_t bytes[64] = {0};
		struct rls_wire_header *header = (struct rls_wire_header *)bytes;

		header->kind = (uint8_t)kind;
		for (size_t size = 0; size < record_bytes[kind]; size++) {
			assert_int_equal(translate_bytes(*state, bytes, size), 0);
			assert_int_equal(rls_translator_ignored(*state), ++ignored);
		}
	}
	assert_int_equal(event_log.events, 0);
}

static void longer_records_are_taken(void **state)
{
	struct {
		struct rls_wire_loss record;
		char more[16];
	} longer = {
		.record = {HEADER(struct rls_wire_loss, RLS_WIRE_LOSS, 7, 8, 40), .since_ns = 30},
	};

	assert_int_equal(translate_bytes(*state, &longer, sizeof(longer)), 0);
	assert_log(&event_log, "30 7/8 category unknown\n");
}

static void unknown_kinds_are_ignored_and_counted(void **state)
{
	uint64_t bytes[64] = {0};
	struct rls_wire_header *header = (struct rls_wire_header *)bytes;
	uint64_t ignored = 0;

	header->kind = 0;
	assert_int_equal(translate_bytes(*state, bytes, sizeof(bytes)), 0);
	assert_int_equal(rls_translator_ignored(*state), ++ignored);
	for (unsigned int kind = 200; kind < 256; kind++) {
		header->kind = (uint8_t)kind;
		assert_int_equal(translate_bytes(*state, bytes, sizeof(bytes)), 0);
		assert_int_equal(rls_translator_ignored(*state), ++ignored);
	}
	assert_int_equal(event_log.events, 0);
}

static void a_sink_that_fails_stops_translation(void **state)
{
	/* Each of the events that a fork makes may be the one that fails. */
	for (int after = 1; after <= 5; after++) {
		struct rls_wire_fork record = {
			HEADER(struct rls_wire_fork, RLS_WIRE_FORK, 7, 7, 10),
			.child_pid = 70,
			.category = RLS_CATEGORY_PYTHON,
		};

		send_name(*state, 7, 0x100, "name");
		send_edge(*state, 7, 7, 1, RLS_EDGE_PHASE, 0, 0x100);
		send_edge(*state, 7, 7, 2, RLS_EDGE_PUSH, 1, 0x100);
		event_log_empty(&event_log);
		event_log.events = 0;
		event_log.fail_after = after;
		assert_int_equal(translate_bytes(*state, &record, sizeof(record)), -ENOSPC);
		assert_int_equal(event_log.events, after - 1);
		assert_null(strstr(event_log.text, "forked"));
		event_log.fail_after = 0;
	}
}

/* ---- properties ---- */

static uint64_t random_state;

/* xorshift64: the same sequence everywhere. */
static uint64_t random_below(uint64_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % limit;
}

union any_record {
	struct rls_wire_header header;
	struct rls_wire_category category;
	struct rls_wire_fork fork;
	struct rls_wire_exit exit;
	struct rls_wire_name name;
	struct rls_wire_edge edge;
	struct rls_wire_range range;
	uint8_t bytes[256];
};

/* Few pids, tids and names, so that records meet. */
static size_t make_record(union any_record *record)
{
	uint8_t kind = (uint8_t)(1 + random_below(KINDS - 1));

	for (size_t i = 0; i < sizeof(record->bytes); i++)
		record->bytes[i] = (uint8_t)random_below(256);
	record->header.kind = kind;
	record->header.size = (uint16_t)record_bytes[kind];
	record->header.pid = 1 + (uint32_t)random_below(8);
	record->header.tid = 1 + (uint32_t)random_below(8);
	if (kind == RLS_WIRE_FORK)
		record->fork.child_pid = 1 + (uint32_t)random_below(8);
	if (kind == RLS_WIRE_NAME)
		record->name.address = random_below(16);
	if (kind == RLS_WIRE_EDGE) {
		record->edge.name = random_below(16);
		record->edge.depth =
			(uint16_t)(random_below(4) ? random_below(6) : random_below(65536));
		record->edge.edge = (uint16_t)random_below(6);
		if (record->edge.edge == 5)
			record->edge.edge = RLS_WIRE_EDGE_STACK;
	}
	if (kind == RLS_WIRE_RANGE_PUSH || kind == RLS_WIRE_RANGE_POP)
		record->range.token = random_below(4);
	return record_bytes[kind];
}

static void end_all(struct rls_translator *translator)
{
	for (uint32_t pid = 0; pid < 16; pid++)
		send_exit(translator, pid, pid, 1, true, true);
}

static void any_records_do_no_harm_and_memory_follows_the_living(void **state)
{
	union any_record record;
	long at_rest;

	event_log.quiet = true;
	random_state = 42;
	/* Once around, so that the tables have their size. */
	for (uint32_t pid = 1; pid <= 8; pid++)
		send_thread(*state, pid, pid, 1, pid, "t");
	end_all(*state);
	at_rest = counted_memory_blocks();
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 2000; i++) {
			size_t size = make_record(&record);

			assert_int_equal(translate_bytes(*state, &record, size), 0);
		}
		assert_true(counted_memory_blocks() > at_rest);
		end_all(*state);
		assert_int_equal(counted_memory_blocks(), at_rest);
	}
	assert_true(event_log.events > 5000);
}

static void mutated_records_do_no_harm(void **state)
{
	union any_record record;
	long at_rest;

	event_log.quiet = true;
	random_state = 1234567;
	at_rest = counted_memory_blocks();
	for (int i = 0; i < 20000; i++) {
		size_t size = make_record(&record);

		for (uint64_t changes = random_below(4); changes; changes--)
			record.bytes[random_below(size)] = (uint8_t)random_below(256);
		if (!random_below(8))
			size = random_below(sizeof(record) + 1);
		assert_int_equal(translate_bytes(*state, &record, size), 0);
	}
	assert_true(event_log.events > 5000);
	assert_true(rls_translator_ignored(*state) > 100);
	assert_true(counted_memory_blocks() > at_rest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(truncated_records_are_ignored_and_counted),
		TEST(longer_records_are_taken),
		TEST(unknown_kinds_are_ignored_and_counted),
		TEST(a_sink_that_fails_stops_translation),
		TEST(any_records_do_no_harm_and_memory_follows_the_living),
		TEST(mutated_records_do_no_harm),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	if (!failed && counted_memory_blocks()) {
		fprintf(stderr, "%ld blocks are left\n", counted_memory_blocks());
		return 1;
	}
	return failed;
}
