#include "tests/record/samples/stack_world.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/event/sample_kind.h"
#include "userspace/record/samples/interpreters.h"
#include "userspace/record/samples/stack_samples.h"

static struct rls_native_file *const interpreter = (void *)1, *const library = (void *)2;
static const struct rls_code_file torch = {
	.role = RLS_ROLE_BACKEND, .sites = (const uint64_t[]){0x80}, .site_count = 1};
static const struct rls_mapping mappings[] = {
	{.start = LOOP, .end = LIBRARY, .executable = true, .path = "/python3"},
	{.start = LIBRARY, .end = COMPILED, .executable = true, .path = "/torch.so"},
	{.start = COMPILED, .end = NOWHERE, .executable = true, .path = ""},
};

struct stack_world world;

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
{
	size_t length = strlen(world.text);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(world.text + length, sizeof(world.text) - length, format, arguments);
	va_end(arguments);
}

static int add(void *context, const struct rls_event *event)
{
	(void)context;
	if (world.fail_with)
		return world.fail_with;
	if (event->kind == RLS_EVENT_FRAME) {
		note("frame %u in %u: %s of %s, line %u%s\n", event->frame.id, event->frame.parent,
		     world.strings[event->frame.function], world.strings[event->frame.file],
		     event->frame.line, event->frame.native ? ", native" : "");
		return 0;
	}
	assert_int_equal(event->kind, RLS_EVENT_SAMPLE);
	note("%lu %s in %u, %lu ns", event->time_ns, rls_sample_kind_name(event->sample.kind),
	     event->sample.frame, event->sample.ns);
	if (event->sample.every)
		note(", one of %u", event->sample.every);
	if (event->sample.code)
		note(", code of %s", rls_category_name(event->sample.code));
	note("\n");
	return 0;
}

static int intern(void *context, const char *text, size_t length, rls_string_id *out)
{
	rls_string_id id = 0;

	(void)context;
	while (id < world.string_count && strcmp(world.strings[id], text))
		id++;
	if (id == world.string_count) {
		assert_true(length < sizeof(world.strings[0]) &&
			    id < sizeof(world.strings) / sizeof(world.strings[0]));
		memcpy(world.strings[id], text, length);
		world.string_count++;
	}
	*out = id;
	return 0;
}

struct rls_event_sink __wrap_rls_event_output_sink(struct rls_event_output *output);
struct rls_event_sink __wrap_rls_event_output_sink(struct rls_event_output *output)
{
	(void)output;
	return (struct rls_event_sink){.add = add, .intern = intern};
}

int __wrap_rls_event_output_warn(struct rls_event_output *output, uint64_t time_ns,
				 const char *format, ...) __attribute__((format(printf, 3, 4)));
int __wrap_rls_event_output_warn(struct rls_event_output *output, uint64_t time_ns,
				 const char *format, ...)
{
	va_list arguments;
	char text[512];

	(void)output;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	note("%lu %s\n", time_ns, text);
	return 0;
}

int __wrap_rls_kernel_consume_stacks(struct rls_kernel *kernel);
int __wrap_rls_kernel_consume_stacks(struct rls_kernel *kernel)
{
	(void)kernel;
	world.consumed++;
	return 0;
}

int __wrap_rls_interpreters_check(struct rls_interpreters *interpreters, pid_t pid,
				  uint64_t time_ns);
int __wrap_rls_interpreters_check(struct rls_interpreters *interpreters, pid_t pid,
				  uint64_t time_ns)
{
	(void)interpreters, (void)pid, (void)time_ns;
	world.sampled++;
	return 0;
}

int __wrap_rls_interpreters_miss(struct rls_interpreters *interpreters, pid_t pid,
				 uint64_t time_ns);
int __wrap_rls_interpreters_miss(struct rls_interpreters *interpreters, pid_t pid, uint64_t time_ns)
{
	(void)interpreters, (void)pid, (void)time_ns;
	world.missed++;
	return 0;
}

uint64_t __wrap_rls_interpreters_missed(const struct rls_interpreters *interpreters);
uint64_t __wrap_rls_interpreters_missed(const struct rls_interpreters *interpreters)
{
	(void)interpreters;
	return 0;
}

uint64_t __wrap_rls_interpreters_refused(const struct rls_interpreters *interpreters);
uint64_t __wrap_rls_interpreters_refused(const struct rls_interpreters *interpreters)
{
	(void)interpreters;
	return world.refused;
}

void __wrap_rls_interpreters_on_found(struct rls_interpreters *interpreters,
				      void (*found)(void *context, pid_t pid), void *context);
void __wrap_rls_interpreters_on_found(struct rls_interpreters *interpreters,
				      void (*found)(void *context, pid_t pid), void *context)
{
	(void)interpreters;
	world.found = found;
	world.found_context = context;
}

bool __wrap_rls_interpreters_knows(const struct rls_interpreters *interpreters, pid_t pid);
bool __wrap_rls_interpreters_knows(const struct rls_interpreters *interpreters, pid_t pid)
{
	(void)interpreters, (void)pid;
	return world.known;
}

void __wrap_rls_interpreters_walk(const struct rls_interpreters *interpreters,
				  struct rls_wire_stack *stack);
void __wrap_rls_interpreters_walk(const struct rls_interpreters *interpreters,
				  struct rls_wire_stack *stack)
{
	(void)interpreters;
	assert_int_equal(stack->thread_pointer, 0x700000);
	stack->frame[0] = (struct rls_wire_frame){.code = 1, .at = 10};
	stack->frames = 1;
}

int __wrap_rls_interpreters_name(struct rls_interpreters *interpreters, pid_t pid,
				 const struct rls_wire_frame *frame, struct rls_frame *out);
int __wrap_rls_interpreters_name(struct rls_interpreters *interpreters, pid_t pid,
				 const struct rls_wire_frame *frame, struct rls_frame *out)
{
	char name[16];

	(void)interpreters, (void)pid;
	if (frame->code == CODE_INTERNAL)
		return 1;
	if (frame->code == CODE_GONE)
		return -ENOENT;
	*out = (struct rls_frame){.line = frame->at};
	snprintf(name, sizeof(name), "f%lu", frame->code);
	intern(NULL, name, strlen(name), &out->function);
	return intern(NULL, "/job.py", strlen("/job.py"), &out->file);
}

int __wrap_rls_code_map_find(struct rls_code_map *map, pid_t pid, uint64_t time_ns,
			     uint64_t address, bool certain, struct rls_code_place *out);
int __wrap_rls_code_map_find(struct rls_code_map *map, pid_t pid, uint64_t time_ns,
			     uint64_t address, bool certain, struct rls_code_place *out)
{
	(void)map, (void)time_ns;
	assert_int_equal(pid, PID);
	assert_true(certain);
	*out = (struct rls_code_place){.address = address};
	for (size_t i = 0; i < sizeof(mappings) / sizeof(mappings[0]); i++) {
		if (address >= mappings[i].start && address < mappings[i].end)
			out->mapping = &mappings[i];
	}
	if (address >= LIBRARY && address < NAMELESS)
		out->role = &torch;
	return 0;
}

struct rls_native_file *__wrap_rls_code_map_native(struct rls_code_map *map, pid_t pid,
						   const struct rls_code_place *place,
						   uint64_t *vaddr);
struct rls_native_file *__wrap_rls_code_map_native(struct rls_code_map *map, pid_t pid,
						   const struct rls_code_place *place,
						   uint64_t *vaddr)
{
	(void)map, (void)pid;
	*vaddr = place->address;
	if (place->address >= COMPILED)
		return NULL;
	return place->address < LIBRARY ? interpreter : library;
}

const char *__wrap_rls_code_map_compiled(struct rls_code_map *map, pid_t pid, uint64_t time_ns,
					 const struct rls_code_place *place, uint64_t *start);
const char *__wrap_rls_code_map_compiled(struct rls_code_map *map, pid_t pid, uint64_t time_ns,
					 const struct rls_code_place *place, uint64_t *start)
{
	(void)map, (void)pid, (void)time_ns, (void)start;
	assert_in_range(place->address, COMPILED, NOWHERE - 1);
	return "kernel_of_triton";
}

const char *__wrap_rls_native_file_function(struct rls_native_file *file, uint64_t vaddr,
					    uint64_t *start);
const char *__wrap_rls_native_file_function(struct rls_native_file *file, uint64_t vaddr,
					    uint64_t *start)
{
	*start = vaddr & ~0xfffULL;
	if (file == interpreter)
		return vaddr < RUNTIME ? "the loop" : "gc_collect_main";
	return vaddr < NAMELESS ? "at::matmul" : "";
}

bool __wrap_rls_native_file_is_interpreter(const struct rls_native_file *file);
bool __wrap_rls_native_file_is_interpreter(const struct rls_native_file *file)
{
	return file == interpreter;
}

bool __wrap_rls_native_file_evaluates(struct rls_native_file *file, uint64_t vaddr);
bool __wrap_rls_native_file_evaluates(struct rls_native_file *file, uint64_t vaddr)
{
	return file == interpreter && vaddr < RUNTIME;
}

bool __wrap_rls_native_file_hides_evaluation(struct rls_native_file *file);
bool __wrap_rls_native_file_hides_evaluation(struct rls_native_file *file)
{
	assert_ptr_equal(file, interpreter);
	return false;
}
