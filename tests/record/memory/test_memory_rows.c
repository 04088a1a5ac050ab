/* From places in code to rows. The kernel side, the interpreter and the trace are the test's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/attach/kernel/kernel_memory.h"
#include "userspace/record/memory/memory_rows.h"

#define EVENTS_MAX 256
#define PARENT 10
#define CHILD 11

static struct rls_wire_memory_line lines[RLS_MEMORY_LINES];
static uint64_t counts[RLS_MEMORY_COUNT_MAX];
static struct rls_wire_block_key block_keys[4];
static struct rls_wire_block blocks[4];
static size_t block_count, dropped_blocks, dropped_lines, joined;
static struct rls_event events[EVENTS_MAX];
static size_t event_count;
static bool child_is_known;
static uint64_t cpu_ns[CHILD + 1];

const volatile struct rls_wire_memory_line *
__wrap_rls_kernel_memory_lines(const struct rls_kernel *kernel);
uint64_t __wrap_rls_kernel_memory_count(const struct rls_kernel *kernel,
					enum rls_memory_count which);
int __wrap_rls_kernel_each_block(struct rls_kernel *kernel,
				 int (*visit)(void *context, const struct rls_wire_block_key *key,
					      const struct rls_wire_block *block),
				 void *context);
int __wrap_rls_kernel_drop_block(struct rls_kernel *kernel, const struct rls_wire_block_key *key);
void __wrap_rls_kernel_drop_line(struct rls_kernel *kernel, uint32_t place);
void __wrap_rls_kernel_join_line(struct rls_kernel *kernel, uint32_t place, uint32_t before);
bool __wrap_rls_interpreters_knows(const struct rls_interpreters *interpreters, pid_t pid);
int __wrap_rls_interpreters_name(struct rls_interpreters *interpreters, pid_t pid,
				 const struct rls_wire_frame *frame, struct rls_frame *out);
int __wrap_rls_translator_name(const struct rls_translator *translator, uint32_t pid,
			       uint64_t address, rls_string_id *out);
int __wrap_rls_event_output_add(struct rls_event_output *output, const struct rls_event *event);

const volatile struct rls_wire_memory_line *
__wrap_rls_kernel_memory_lines(const struct rls_kernel *kernel)
{
	return lines;
}

uint64_t __wrap_rls_kernel_memory_count(const struct rls_kernel *kernel,
					enum rls_memory_count which)
{
	return counts[which];
}

int __wrap_rls_kernel_each_block(struct rls_kernel *kernel,
				 int (*visit)(void *context, const struct rls_wire_block_key *key,
					      const struct rls_wire_block *block),
				 void *context)
{
	for (size_t i = 0; i < block_count; i++)
		assert_int_equal(visit(context, &block_keys[i], &blocks[i]), 0);
	return 0;
}

int __wrap_rls_kernel_drop_block(struct rls_kernel *kernel, const struct rls_wire_block_key *key)
{
	assert_int_equal(key->pid, CHILD);
	dropped_blocks++;
	return 0;
}

void __wrap_rls_kernel_drop_line(struct rls_kernel *kernel, uint32_t place)
{
	memset(&lines[place], 0, sizeof(lines[place]));
	dropped_lines++;
}

void __wrap_rls_kernel_join_line(struct rls_kernel *kernel, uint32_t place, uint32_t before)
{
	assert_int_not_equal(place, before);
	joined++;
}

bool __wrap_rls_interpreters_knows(const struct rls_interpreters *interpreters, pid_t pid)
{
	return pid == PARENT || child_is_known;
}

/* The line is a hundredth of the instruction's place. */
int __wrap_rls_interpreters_name(struct rls_interpreters *interpreters, pid_t pid,
				 const struct rls_wire_frame *frame, struct rls_frame *out)
{
	if (!__wrap_rls_interpreters_knows(interpreters, pid))
		return -ENOENT;
	*out = (struct rls_frame){.file = 5, .function = 6, .line = frame->at / 100};
	return 0;
}

int __wrap_rls_translator_name(const struct rls_translator *translator, uint32_t pid,
			       uint64_t address, rls_string_id *out)
{
	*out = (rls_string_id)address;
	return 1;
}

int __wrap_rls_event_output_add(struct rls_event_output *output, const struct rls_event *event)
{
	assert_true(event_count < EVENTS_MAX);
	events[event_count++] = *event;
	return 0;
}

uint64_t __wrap_rls_process_cpu_ns(pid_t pid);
uint64_t __wrap_rls_process_cpu_ns(pid_t pid)
{
	return cpu_ns[pid];
}

static void add_line(uint32_t pid, uint32_t at, uint64_t allocs, uint64_t frees)
{
	uint64_t number = counts[RLS_MEMORY_PLACES]++;
	struct rls_wire_memory_line *line = &lines[number];

	counts[RLS_MEMORY_MADE]++;
	line->key = (struct rls_wire_memory_key){
		.code = 0x1000, .operation = 7, .at = at, .pid = pid, .source = RLS_MEMORY_ARRAY};
	line->allocs = allocs;
	line->alloc_bytes = allocs * 100;
	line->frees = frees;
	line->freed_bytes = frees * 100;
	line->peak_bytes = allocs * 100;
	line->ages[3] = (uint32_t)frees;
}

static int set_up(void **state)
{
	memset(lines, 0, sizeof(lines));
	memset(counts, 0, sizeof(counts));
	block_count = dropped_blocks = dropped_lines = joined = event_count = 0;
	child_is_known = false;
	return rls_memory_rows_new(NULL, NULL, NULL, NULL, (struct rls_memory_rows **)state);
}

static int tear_down(void **state)
{
	rls_memory_rows_free(*state);
	return 0;
}

static void places_of_a_line_are_one_row(void **state)
{
	add_line(PARENT, 300, 4, 1);
	add_line(PARENT, 304, 2, 0);
	add_line(PARENT, 400, 1, 0);
	assert_int_equal(rls_memory_rows_flush(*state, 50), 0);
	assert_int_equal(joined, 1);
	assert_int_equal(event_count, 2);
	assert_int_equal(events[0].kind, RLS_EVENT_MEMORY_LINE);
	assert_int_equal(events[0].time_ns, 50);
	assert_int_equal(events[0].pid, PARENT);
	assert_int_equal(events[0].memory_line.of.line, 3);
	assert_int_equal(events[0].memory_line.of.file, 5);
	assert_int_equal(events[0].memory_line.of.function, 6);
	assert_int_equal(events[0].memory_line.of.operation, 7);
	assert_int_equal(events[0].memory_line.of.phase, 0);
	assert_int_equal(events[0].memory_line.allocs, 6);
	assert_int_equal(events[0].memory_line.alloc_bytes, 600);
	assert_int_equal(events[0].memory_line.frees, 1);
	assert_int_equal(events[0].memory_line.freed_bytes, 100);
	assert_int_equal(events[0].memory_line.peak_bytes, 500);
	assert_int_equal(events[1].memory_line.of.line, 4);
	assert_int_equal(events[1].memory_line.peak_bytes, 100);
}

static void copies_are_no_blocks(void **state)
{
	add_line(PARENT, 300, 4, 0);
	add_line(PARENT, 304, 2, 0);
	add_line(PARENT, 304, 1, 0);
	lines[0].key.source = lines[1].key.source = RLS_MEMORY_COPIES;
	assert_int_equal(rls_memory_rows_flush(*state, 50), 0);
	assert_int_equal(event_count, 2);
	assert_int_equal(events[0].kind, RLS_EVENT_COPY_LINE);
	assert_int_equal(events[0].pid, PARENT);
	assert_int_equal(events[0].copy_line.of.line, 3);
	assert_int_equal(events[0].copy_line.of.operation, 7);
	assert_int_equal(events[0].copy_line.of.source, 0);
	assert_int_equal(events[0].copy_line.kind, RLS_COPY_H2H);
	assert_int_equal(events[0].copy_line.copies, 6);
	assert_int_equal(events[0].copy_line.bytes, 600);
	assert_int_equal(events[1].kind, RLS_EVENT_MEMORY_LINE);
	assert_int_equal(rls_memory_rows_end(*state, 0, 60), 0);
	for (size_t i = 2; i < event_count; i++)
		assert_int_equal(events[i].kind, RLS_EVENT_MEMORY_AGES);
}

/* What is taken out of it because another has reported it has no event, unless it had one. */
static void malloc_has_what_nobody_else_reports(void **state)
{
	add_line(PARENT, 300, 4, 4);
	add_line(PARENT, 400, 4, 1);
	lines[0].key.source = lines[1].key.source = RLS_MEMORY_MALLOC;
	assert_int_equal(rls_memory_rows_flush(*state, 50), 0);
	assert_int_equal(event_count, 1);
	assert_int_equal(events[0].memory_line.of.source, RLS_MEMORY_MALLOC);
	assert_int_equal(events[0].memory_line.allocs, 3);
	assert_int_equal(events[0].memory_line.alloc_bytes, 300);
	assert_int_equal(events[0].memory_line.frees, 0);
	assert_int_equal(events[0].memory_line.freed_bytes, 0);
	assert_int_equal(events[0].memory_line.peak_bytes, 0);
	lines[1].frees = 4;
	lines[1].freed_bytes = 400;
	assert_int_equal(rls_memory_rows_flush(*state, 60), 0);
	assert_int_equal(event_count, 2);
	assert_int_equal(events[1].memory_line.allocs, 0);
	assert_int_equal(events[1].memory_line.alloc_bytes, 0);
}

static void only_what_has_changed_is_emitted(void **state)
{
	add_line(PARENT, 300, 4, 1);
	add_line(PARENT, 400, 4, 1);
	assert_int_equal(rls_memory_rows_flush(*state, 50), 0);
	assert_int_equal(event_count, 2);
	assert_int_equal(rls_memory_rows_flush(*state, 60), 0);
	assert_int_equal(event_count, 2);
	lines[1].frees = 2;
	lines[1].freed_bytes = 200;
	assert_int_equal(rls_memory_rows_flush(*state, 70), 0);
	assert_int_equal(event_count, 3);
	assert_int_equal(events[2].memory_line.of.line, 4);
	assert_int_equal(events[2].memory_line.frees, 2);
}

static void a_child_waits_for_its_fork(void **state)
{
	add_line(CHILD, 300, 1, 0);
	assert_int_equal(rls_memory_rows_flush(*state, 50), 0);
	assert_int_equal(event_count, 0);
	child_is_known = true;
	assert_int_equal(rls_memory_rows_flush(*state, 60), 0);
	assert_int_equal(event_count, 1);
	assert_int_equal(events[0].memory_line.of.line, 3);
}

static void nobody_waits_for_ever(void **state)
{
	add_line(CHILD, 300, 1, 0);
	assert_int_equal(rls_memory_rows_flush(*state, 50), 0);
	assert_int_equal(rls_memory_rows_flush(*state, 2000000000), 0);
	assert_int_equal(event_count, 1);
	assert_int_equal(events[0].memory_line.of.line, 0);
	assert_int_equal(events[0].memory_line.allocs, 1);
}

static void the_end_of_a_process_tells_ages_and_gives_places_back(void **state)
{
	child_is_known = true;
	add_line(PARENT, 300, 5, 2);
	add_line(CHILD, 300, 3, 2);
	block_keys[0] = (struct rls_wire_block_key){.pid = PARENT};
	blocks[0] = (struct rls_wire_block){.bytes = 100, .line = 0};
	block_keys[1] = (struct rls_wire_block_key){.pid = CHILD};
	blocks[1] = (struct rls_wire_block){.bytes = 100, .born_ns = 1000, .line = 1};
	block_count = 2;
	assert_int_equal(rls_memory_rows_end(*state, CHILD, 1000 + (1 << RLS_AGE_FIRST)), 0);
	assert_int_equal(event_count, 3);
	assert_int_equal(events[0].kind, RLS_EVENT_MEMORY_LINE);
	assert_int_equal(events[0].pid, CHILD);
	assert_true(events[1].memory_ages.freed);
	assert_int_equal(events[1].memory_ages.count, 2);
	assert_int_equal(events[1].memory_ages.from_ns, rls_age_from_ns(3));
	assert_int_equal(events[1].memory_ages.to_ns, rls_age_from_ns(4));
	assert_false(events[2].memory_ages.freed);
	assert_int_equal(events[2].memory_ages.count, 1);
	assert_int_equal(events[2].memory_ages.bytes, 100);
	assert_int_equal(events[2].memory_ages.from_ns, 1 << RLS_AGE_FIRST);
	assert_int_equal(dropped_blocks, 1);
	assert_int_equal(dropped_lines, 1);
	/* At the recording's end only the other one is left. */
	event_count = 0;
	block_count = 1;
	assert_int_equal(rls_memory_rows_end(*state, 0, 5000), 0);
	for (size_t i = 0; i < event_count; i++)
		assert_int_equal(events[i].pid, PARENT);
	assert_int_equal(event_count, 3);
}

/* A place that was given back is another's. */
static void a_place_may_be_used_again(void **state)
{
	child_is_known = true;
	add_line(CHILD, 300, 3, 0);
	assert_int_equal(rls_memory_rows_end(*state, CHILD, 10), 0);
	event_count = 0;
	counts[RLS_MEMORY_PLACES] = 0;
	add_line(PARENT, 500, 1, 0);
	assert_int_equal(rls_memory_rows_flush(*state, 20), 0);
	assert_int_equal(event_count, 1);
	assert_int_equal(events[0].pid, PARENT);
	assert_int_equal(events[0].memory_line.of.line, 5);
	assert_int_equal(events[0].memory_line.allocs, 1);
}

/* Nothing is kept of those that have ended: a process with the same pid begins anew, and others' rows stay. */
static void ended_processes_leave_no_rows(void **state)
{
	child_is_known = true;
	for (uint64_t i = 1; i <= 1000; i++) {
		event_count = 0;
		memset(lines, 0, sizeof(lines));
		counts[RLS_MEMORY_PLACES] = 0;
		add_line(PARENT, 300, i, 0);
		add_line(CHILD, 300, 3, 0);
		add_line(PARENT, 400, i, 0);
		assert_int_equal(rls_memory_rows_end(*state, CHILD, i), 0);
		assert_int_equal(rls_memory_rows_flush(*state, i), 0);
		for (size_t k = 0; k < event_count; k++)
			if (events[k].kind == RLS_EVENT_MEMORY_LINE)
				assert_int_equal(events[k].memory_line.allocs,
						 events[k].pid == CHILD ? 3 : i);
		assert_int_equal(event_count, 3);
	}
	event_count = 0;
	assert_int_equal(rls_memory_rows_end(*state, 0, 2000), 0);
	for (size_t k = 0; k < event_count; k++)
		assert_int_equal(events[k].pid, PARENT);
}

static const struct rls_event *last_of(uint32_t pid, uint32_t line)
{
	for (size_t i = event_count; i-- > 0;)
		if (events[i].kind == RLS_EVENT_MEMORY_LINE && events[i].pid == pid &&
		    events[i].memory_line.of.line == line)
			return &events[i];
	return NULL;
}

static void more(uint64_t number, uint64_t allocs)
{
	lines[number].allocs += allocs;
	lines[number].alloc_bytes += 100 * allocs;
}

/* In CPU time: all of it to 1,000, windows from 2,000 to 2,100 and from 2,900 to 3,000, the end at 4,000. A line of the
 * parent goes on as before, one is seen only in windows, and a child lives between them. */
static void windows_stand_for_all_of_the_time(void **state)
{
	const struct rls_event *event;

	child_is_known = true;
	cpu_ns[PARENT] = cpu_ns[CHILD] = 0;
	assert_int_equal(rls_memory_rows_clock(*state, PARENT), 0);
	add_line(PARENT, 300, 50, 20);
	lines[0].key.source = RLS_MEMORY_TENSOR;
	add_line(PARENT, 500, 50, 0); /* arrays stay as they are */
	cpu_ns[PARENT] = 1000;
	assert_int_equal(rls_memory_rows_narrow(*state, RLS_MEMORY_TENSOR, 10), 0);
	event = last_of(PARENT, 3);
	assert_int_equal(event->memory_line.method, RLS_MEMORY_SCALED);
	assert_int_equal(event->memory_line.allocs, 50);
	assert_int_equal(last_of(PARENT, 5)->memory_line.method, RLS_MEMORY_COUNTED);

	cpu_ns[PARENT] = 2000;
	rls_memory_rows_open(*state);
	more(0, 5);
	more(1, 5);
	assert_int_equal(rls_memory_rows_flush(*state, 20), 0);
	assert_int_equal(last_of(PARENT, 3)->memory_line.allocs, 50);
	cpu_ns[PARENT] = 2100;
	assert_int_equal(rls_memory_rows_close(*state, 30, 0), 0);
	assert_int_equal(last_of(PARENT, 3)->memory_line.allocs, 50 + 55);
	assert_int_equal(last_of(PARENT, 3)->memory_line.alloc_bytes, 5000 + 5500);
	assert_int_equal(last_of(PARENT, 5)->memory_line.allocs, 55);

	assert_int_equal(rls_memory_rows_forked(*state, CHILD), 0);
	cpu_ns[PARENT] = 2900;
	cpu_ns[CHILD] = 400;
	rls_memory_rows_open(*state);
	add_line(CHILD, 300, 7, 0);
	lines[2].key.source = RLS_MEMORY_TENSOR;
	add_line(PARENT, 700, 9, 0);
	lines[3].key.source = RLS_MEMORY_TENSOR;
	more(0, 5);
	cpu_ns[PARENT] = 3000;
	cpu_ns[CHILD] = 500;
	assert_int_equal(rls_memory_rows_close(*state, 40, 0), 0);
	assert_int_equal(last_of(CHILD, 3)->memory_line.allocs, 35); /* of 500 */
	assert_int_equal(last_of(PARENT, 3)->memory_line.allocs, 50 + 55 + 45);
	assert_int_equal(last_of(PARENT, 7)->memory_line.allocs,
			 45); /* of 900: none in the window before */
	assert_true(last_of(PARENT, 7)->memory_line.error_bytes >= 4500);

	cpu_ns[CHILD] = 1000;
	assert_int_equal(rls_memory_rows_end(*state, CHILD, 50), 0);
	assert_int_equal(last_of(CHILD, 3)->memory_line.allocs, 70);
	cpu_ns[PARENT] = 4000;
	assert_int_equal(rls_memory_rows_end(*state, 0, 60), 0);
	assert_int_equal(last_of(PARENT, 3)->memory_line.allocs, 50 + 150);
	assert_int_equal(last_of(PARENT, 3)->memory_line.frees, 20);
	assert_int_equal(last_of(PARENT, 5)->memory_line.allocs, 55);
	assert_int_equal(last_of(PARENT, 5)->memory_line.method, RLS_MEMORY_COUNTED);
	for (size_t i = 0; i < event_count; i++) /* of these blocks no ages are known */
		if (events[i].kind == RLS_EVENT_MEMORY_AGES)
			assert_int_equal(events[i].memory_ages.of.source, RLS_MEMORY_ARRAY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(places_of_a_line_are_one_row, set_up, tear_down),
		cmocka_unit_test_setup_teardown(copies_are_no_blocks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(malloc_has_what_nobody_else_reports, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(only_what_has_changed_is_emitted, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_child_waits_for_its_fork, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nobody_waits_for_ever, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			the_end_of_a_process_tells_ages_and_gives_places_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_place_may_be_used_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(ended_processes_leave_no_rows, set_up, tear_down),
		cmocka_unit_test_setup_teardown(windows_stand_for_all_of_the_time, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
