/* Ranges of other people's APIs, in totals: this program's own functions stand for theirs. What is
 * innermost shows in where calls into the backend are counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

#include <cmocka.h>

#include "bpf/wire/maps.h"
#include "bpf/wire/record.h"
#include "bpf/wire/totals.h"
#include "probed.h"
#include "recording.h"
#include "userspace/annotate/annotate_wire.h"
#include "userspace/annotate/foreign_ranges.h"
#include "userspace/attach/features.h"
#include "userspace/attach/kernel/kernel_sites.h"
#include "userspace/attach/kernel/kernel_totals.h"
#include "userspace/attach/kernel/kernel_windows.h"
#include "userspace/base/clock.h"
#include "userspace/record/events/operation_stack.h"

#define PROBED __attribute__((noinline, noclone))
#define STEPS 2000
#define NAMES 8
#define OWN "Optimizer.step#Adam.step"
#define DEEPER 40

/* As libstdc++'s, and as NVTX's. */
struct string {
	const char *data;
	uint64_t length;
};

struct attributes {
	uint16_t version, size;
	uint32_t category, colour_type, colour, payload_type, reserved;
	uint64_t payload;
	uint32_t type, padding;
	const void *message;
};
_Static_assert(offsetof(struct attributes, type) == 32, "as NVTX has it");

static volatile uintptr_t used;

PROBED static void push_string(const struct string *name, uint64_t token)
{
	used += (uintptr_t)name + token;
}

PROBED static void push_narrow(const char *name)
{
	used -= (uintptr_t)name;
}

PROBED static void push_wide(const wchar_t *name)
{
	used ^= (uintptr_t)name;
}

PROBED static void push_attributes(const struct attributes *name)
{
	used |= (uintptr_t)name;
}

PROBED static void pop_token(uint64_t token)
{
	used += token;
}

PROBED static void pop(void)
{
	used++;
}

static const struct {
	const void *function;
	enum rls_range_kind kind;
	uint8_t name, token;
} kinds[] = {
	{(const void *)push_string, RLS_RANGE_PUSH_STD_STRING, 0, 1},
	{(const void *)push_narrow, RLS_RANGE_PUSH_CSTR, 0, RLS_RANGE_NO_ARGUMENT},
	{(const void *)push_wide, RLS_RANGE_PUSH_WCSTR, 0, RLS_RANGE_NO_ARGUMENT},
	{(const void *)push_attributes, RLS_RANGE_PUSH_NVTX_ATTRIBUTES, 0, RLS_RANGE_NO_ARGUMENT},
	{(const void *)pop_token, RLS_RANGE_POP, RLS_RANGE_NO_ARGUMENT, 0},
	{(const void *)pop, RLS_RANGE_POP, RLS_RANGE_NO_ARGUMENT, RLS_RANGE_NO_ARGUMENT},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static __thread struct rls_thread_record *record;
static struct rls_thread_record own_record;
static struct rls_name annotations[NAMES];

static void begin(struct recording *recording)
{
	struct rls_range_site sites[KINDS];

	for (size_t i = 0; i < KINDS; i++) {
		unsigned long offset;

		assert_int_equal(rls_own_file_offset(kinds[i].function, &offset), 0);
		sites[i] = (struct rls_range_site){.file_offset = offset,
						   .kind = kinds[i].kind,
						   .name_argument = kinds[i].name,
						   .token_argument = kinds[i].token};
	}
	for (size_t i = 0; i < NAMES; i++)
		annotations[i].length = (uint32_t)snprintf(annotations[i].text,
							   sizeof(annotations[i].text), "a%zu", i);
	memset(&own_record, 0, sizeof(own_record));
	record = &own_record;
	recording->totals_mode = true;
	recording_open(recording, 0, 0);
	recording_track(recording, RLS_PROCESS_FOLLOW | RLS_PROCESS_ANNOTATED,
			(uint64_t)((uintptr_t)&record - (uintptr_t)__builtin_thread_pointer()));
	recording_attach(recording);
	assert_int_equal(
		rls_kernel_attach_ranges(recording->kernel, "/proc/self/exe", sites, KINDS), 0);
	recording_start(recording);
	into_backend(nothing, NULL);
}

static void annotate(uint16_t kind, uint16_t depth, const struct rls_name *name)
{
	struct rls_edge *edge = &own_record.edges[own_record.head % RLS_EDGE_RING];

	*edge = (struct rls_edge){.time_ns = rls_monotonic_ns(),
				  .name = (uintptr_t)name,
				  .kind = kind,
				  .depth = depth};
	own_record.depth = depth;
	if (kind == RLS_EDGE_PUSH)
		own_record.stack[depth - 1] = (uintptr_t)name;
	own_record.head++;
}

static void call(void)
{
	into_backend(nothing, NULL);
}

/* ---- what has been counted ---- */

struct calls {
	const struct recording *recording;
	const char *text;
	pid_t pid;
	uint64_t count;
};

static bool is_called(const struct calls *calls, uint32_t id)
{
	const union control_record *sent;

	if (!id || !calls->text)
		return !id && !calls->text;
	for (size_t i = 0; (sent = recording_control(calls->recording, RLS_WIRE_NAME, 0, i)); i++) {
		if (sent->name.id == id)
			return sent->name.length == strlen(calls->text) &&
			       !memcmp(sent->name.text, calls->text, sent->name.length);
	}
	return false;
}

static int add_calls(void *context, const struct rls_wire_cell_key *key,
		     const struct rls_wire_cell *cell)
{
	struct calls *calls = context;

	if (key->pid == (uint32_t)calls->pid && key->category == RLS_CATEGORY_PYTHON &&
	    is_called(calls, key->operation))
		calls->count += cell->to[RLS_CATEGORY_BACKEND];
	return 0;
}

/* In an operation of this name; NULL: in none. */
static uint64_t calls_of(struct recording *recording, pid_t pid, const char *text)
{
	struct calls calls = {recording, text, pid, 0};

	recording_consume(recording);
	assert_int_equal(rls_kernel_read_cells(recording->kernel, add_calls, &calls), 0);
	return calls.count;
}

static uint64_t calls_in(struct recording *recording, const char *text)
{
	return calls_of(recording, getpid(), text);
}

static void assert_nothing_dropped(const struct recording *recording)
{
	for (int which = 0; which < RLS_DROP_MAX; which++)
		assert_int_equal(recording_dropped(recording, (enum rls_drop_counter)which), 0);
}

/* ---- tests ---- */

static void names_of_every_kind(void **state)
{
	struct recording *recording = *state;
	const struct attributes narrow = {.size = 48, .type = 1, .message = "of attributes"};
	const struct attributes wide = {.size = 48, .type = 2, .message = L"wide, of attributes"};
	const struct attributes small = {.size = 40, .type = 1, .message = "not to be read"};
	char same[] = "narrow";

	begin(recording);
	push_string(&(struct string){"string", 6}, 77);
	call();
	push_narrow("narrow");
	call();
	push_wide(L"w\u00efde");
	call();
	push_attributes(&narrow);
	call();
	push_attributes(&wide);
	call();
	push_attributes(&small);
	push_narrow((const char *)8);
	push_narrow(same);
	call();
	assert_int_equal(calls_in(recording, "string"), 1);
	assert_int_equal(calls_in(recording, "narrow"), 2);
	assert_int_equal(calls_in(recording, "w?de"), 1);
	assert_int_equal(calls_in(recording, "of attributes"), 1);
	assert_int_equal(calls_in(recording, "wide, of attributes"), 1);
	assert_int_equal(recording_controls(recording, RLS_WIRE_NAME, 0), 5);
	assert_nothing_dropped(recording);
}

static void deep_ones_come_back(void **state)
{
	struct recording *recording = *state;

	begin(recording);
	push_narrow("outermost");
	for (int i = 0; i < DEEPER; i++)
		push_narrow("inner");
	call();
	for (int i = 0; i < DEEPER; i++)
		pop();
	call();
	pop();
	call();
	pop(); /* begun before */
	call();
	assert_int_equal(calls_in(recording, "inner"), 1);
	assert_int_equal(calls_in(recording, "outermost"), 1);
	assert_int_equal(calls_in(recording, NULL), 3); /* and that of begin() */
	assert_nothing_dropped(recording);
}

static void children_have_their_parents_ranges(void **state)
{
	struct recording *recording = *state;
	int status;
	pid_t child;

	begin(recording);
	push_narrow("outer");
	push_narrow("inner");
	child = fork();
	if (!child) {
		call();
		pop();
		call();
		pop();
		call();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	call();
	assert_int_equal(calls_of(recording, child, "inner"), 1);
	assert_int_equal(calls_of(recording, child, "outer"), 1);
	assert_int_equal(calls_of(recording, child, NULL), 1);
	assert_int_equal(calls_in(recording, "inner"), 1);
	assert_nothing_dropped(recording);
}

/* The recorder's own stack says what it has to be. */
struct model {
	struct rls_operation_stack stack;
	uint16_t depth;
	uint64_t expected[2 * NAMES + 1]; /* annotations, ranges, none */
};

static size_t innermost(const struct model *model)
{
	for (uint32_t i = model->stack.count; i-- > 0;) {
		if (!model->stack.entries[i].hidden)
			return model->stack.entries[i].name;
	}
	return 2 * NAMES;
}

static const char *text_of(size_t name)
{
	static char text[8];

	snprintf(text, sizeof(text), "%c%zu", name < NAMES ? 'a' : 'r', name % NAMES);
	return name < 2 * NAMES ? text : NULL;
}

static void step_annotation(struct model *model, rls_string_id name)
{
	if (rand() % 2 && model->depth < 20) {
		annotate(RLS_EDGE_PUSH, ++model->depth, &annotations[name]);
		rls_operation_stack_push(&model->stack, model->depth, name);
	} else if (model->depth) {
		model->depth--;
		annotate(RLS_EDGE_POP, model->depth,
			 model->depth ? (const struct rls_name *)own_record.stack[model->depth - 1]
				      : NULL);
		rls_operation_stack_pop(&model->stack, model->depth);
	}
}

static void step_range(struct model *model, rls_string_id name, uint64_t token)
{
	const char *text = name % NAMES == 7 ? OWN : text_of(NAMES + name);
	bool own = name % NAMES == 7;

	if (model->stack.count < 28 + (uint32_t)model->depth && rand() % 2) {
		if (token)
			push_string(&(struct string){text, strlen(text)}, token);
		else
			push_narrow(text);
		if (!own)
			rls_operation_stack_push_range(&model->stack, NAMES + name, token);
		else if (token)
			rls_operation_stack_pop_range(&model->stack, token);
		else
			rls_operation_stack_push_hidden(&model->stack);
		return;
	}
	if (token)
		pop_token(token);
	else
		pop();
	rls_operation_stack_pop_range(&model->stack, token);
}

static void innermost_is_the_recorders(void **state)
{
	struct recording *recording = *state;
	struct model model = {0};
	size_t used_names = 0;

	begin(recording);
	model.expected[2 * NAMES] = 1; /* of begin() */
	srand(1);
	for (int i = 0; i < STEPS; i++) {
		rls_string_id name = (rls_string_id)(rand() % NAMES);

		if (rand() % 3 == 0)
			step_annotation(&model, name);
		else
			step_range(&model, name, (uint64_t)(rand() % 12));
		call();
		model.expected[innermost(&model)]++;
	}
	for (size_t name = 0; name <= 2 * NAMES; name++) {
		assert_int_equal(calls_in(recording, text_of(name)), model.expected[name]);
		used_names += model.expected[name] > 0;
	}
	assert_int_equal(used_names, 2 * NAMES); /* all but the framework's own */
	assert_int_equal(calls_in(recording, OWN), 0);
	assert_nothing_dropped(recording);
}

static uint64_t own_begun(const struct recording *recording)
{
	uint64_t own, others;

	rls_kernel_ranges_begun(recording->kernel, &own, &others);
	return own;
}

static void step_once(void)
{
	push_string(&(struct string){OWN, strlen(OWN)}, 5);
	pop_token(5);
}

static void in_windows_alone(void **state)
{
	struct recording *recording = *state;
	uint64_t edge_ns;

	begin(recording);
	step_once();
	assert_int_equal(own_begun(recording), 1);
	assert_int_equal(rls_kernel_window_ranges(recording->kernel, true), 0);
	step_once();
	assert_int_equal(own_begun(recording), 1);
	assert_int_equal(rls_kernel_open_window(recording->kernel, &edge_ns), 0);
	step_once();
	assert_int_equal(own_begun(recording), 2);
	push_string(&(struct string){"counted", 7}, 6); /* its end might not be seen */
	call();
	pop_token(6);
	rls_kernel_close_window(recording->kernel, &edge_ns);
	step_once();
	assert_int_equal(own_begun(recording), 2);
	assert_int_equal(rls_kernel_window_ranges(recording->kernel, false), 0);
	step_once(); /* at once */
	assert_int_equal(own_begun(recording), 3);
	assert_int_equal(rls_kernel_open_window(recording->kernel, &edge_ns), 0);
	push_string(&(struct string){"somebody's", 10}, 7);
	call();
	pop_token(7);
	call();
	assert_int_equal(calls_in(recording, "somebody's"), 1);
	assert_int_equal(calls_in(recording, "counted"), 0);
	assert_nothing_dropped(recording);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH_WAYS(names_of_every_kind),
		{"deep_ones_come_back", deep_ones_come_back, recording_set_up, recording_tear_down,
		 &multi_way},
		{"children_have_their_parents_ranges", children_have_their_parents_ranges,
		 recording_set_up, recording_tear_down, &multi_way},
		{"innermost_is_the_recorders", innermost_is_the_recorders, recording_set_up,
		 recording_tear_down, &multi_way},
		{"in_windows_alone", in_windows_alone, recording_set_up, recording_tear_down,
		 &multi_way},
	};
	int impossible = recording_possible();

	return impossible ? impossible : cmocka_run_group_tests(tests, NULL, NULL);
}
