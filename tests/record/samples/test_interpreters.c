/* Which interpreter a process has, when it is looked for, and whose code objects are kept. The
 * processes, their memory and the kernel are the test's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/process/mappings.h"
#include "userspace/python/code_object.h"
#include "userspace/record/samples/interpreter_images.h"
#include "userspace/record/samples/interpreters.h"

#define MS 1000000ULL
#define PARENT 10
#define CHILD 11
#define BIG (40U << 20) /* two of it are more code than is kept of a family */

/* A code object that each process in `alive` has. */
struct kept_code {
	uint64_t address;
	uint32_t identity, lines_bytes;
	const char *function, *file;
	bool gone[32]; /* by pid */
};

static struct {
	struct rls_python python;
	int slot; /* what looking for it says */
	unsigned int scans, reads, learned, found;
	bool image_known; /* of every executable */
	int interpreter_of[32]; /* by pid: 1 set, -1 taken back */
	struct kept_code codes[4];
	char strings[16][64];
	rls_string_id string_count;
} world;

int __wrap_rls_mappings_read(pid_t pid, struct rls_mappings *out);
int __wrap_rls_mappings_read(pid_t pid, struct rls_mappings *out)
{
	(void)pid;
	world.scans++;
	*out = (struct rls_mappings){0};
	return 0;
}

int __wrap_rls_python_find(pid_t pid, const struct rls_mappings *mappings, struct rls_python *out);
int __wrap_rls_python_find(pid_t pid, const struct rls_mappings *mappings, struct rls_python *out)
{
	(void)pid, (void)mappings;
	*out = world.python;
	return 0;
}

int __wrap_rls_frame_slot_find(pid_t pid, const struct rls_python *python,
			       const struct rls_frame_layout *layout, uint32_t *out);
int __wrap_rls_frame_slot_find(pid_t pid, const struct rls_python *python,
			       const struct rls_frame_layout *layout, uint32_t *out)
{
	(void)pid, (void)python, (void)layout;
	*out = 0x320;
	return world.slot;
}

int __wrap_rls_kernel_set_interpreter(struct rls_kernel *kernel, pid_t pid,
				      const struct rls_wire_interpreter *interpreter);
int __wrap_rls_kernel_set_interpreter(struct rls_kernel *kernel, pid_t pid,
				      const struct rls_wire_interpreter *interpreter)
{
	(void)kernel;
	assert_true(!interpreter || interpreter->slot == 0x320);
	world.interpreter_of[pid] = interpreter ? 1 : -1;
	return 0;
}

int __wrap_rls_code_object_read(const struct rls_space *space,
				const struct rls_frame_layout *layout, uint64_t code_type,
				uint64_t address, struct rls_code_object *out);
int __wrap_rls_code_object_read(const struct rls_space *space,
				const struct rls_frame_layout *layout, uint64_t code_type,
				uint64_t address, struct rls_code_object *out)
{
	const struct rls_live_space *live = (const struct rls_live_space *)space;

	assert_int_equal(layout->minor, 11);
	assert_true(code_type == world.python.code_type || (world.image_known && !code_type));
	world.reads++;
	for (size_t i = 0; i < sizeof(world.codes) / sizeof(world.codes[0]); i++) {
		const struct kept_code *code = &world.codes[i];

		if (code->address != address || code->gone[live->pid])
			continue;
		*out = (struct rls_code_object){.file = strdup(code->file),
						.function = strdup(code->function),
						.first_line = 30,
						.identity = code->identity,
						.lines_bytes = code->lines_bytes};
		return 0;
	}
	return -EFAULT;
}

void __wrap_rls_interpreter_images_learn(struct rls_interpreter_images *images,
					 struct rls_kernel *kernel, pid_t pid,
					 const struct rls_frame_layout *layout,
					 const struct rls_wire_interpreter *wire);
void __wrap_rls_interpreter_images_learn(struct rls_interpreter_images *images,
					 struct rls_kernel *kernel, pid_t pid,
					 const struct rls_frame_layout *layout,
					 const struct rls_wire_interpreter *wire)
{
	(void)kernel, (void)pid;
	world.learned++;
	images->all[0] = (struct rls_interpreter_image){.layout = layout, .wire = *wire};
	images->all[0].wire.code_type = 0;
}

const struct rls_interpreter_image *
__wrap_rls_interpreter_images_of(const struct rls_interpreter_images *images, pid_t pid);
const struct rls_interpreter_image *
__wrap_rls_interpreter_images_of(const struct rls_interpreter_images *images, pid_t pid)
{
	(void)pid;
	return world.image_known ? &images->all[0] : NULL;
}

static void on_found(void *context, pid_t pid)
{
	(void)context, (void)pid;
	world.found++;
}

static int add(void *context, const struct rls_event *event)
{
	(void)context, (void)event;
	return 0;
}

static int intern(void *context, const char *text, size_t length, rls_string_id *out)
{
	rls_string_id id = 0;

	(void)context;
	assert_true(length < sizeof(world.strings[0]));
	while (id < world.string_count && strcmp(world.strings[id], text))
		id++;
	if (id == world.string_count) {
		assert_true(id < sizeof(world.strings) / sizeof(world.strings[0]));
		memcpy(world.strings[id], text, length);
		world.string_count++;
	}
	*out = id;
	return 0;
}

static const struct rls_event_sink sink = {.add = add, .intern = intern};

static struct rls_targets targets;

static void end(struct rls_interpreters *interpreters)
{
	rls_interpreters_free(interpreters);
	rls_targets_clear(&targets);
}

/* With one target. */
static struct rls_interpreters *begin(void)
{
	struct rls_interpreters *interpreters;

	memset(&world, 0, sizeof(world));
	world.python = (struct rls_python){.version = "3.11.2",
					   .major = 3,
					   .minor = 11,
					   .runtime = 0x1000,
					   .code_type = 0x2000};
	world.codes[0] = (struct kept_code){0x100, 1, 10, "Env.step", "/env.py", {0}};
	world.codes[1] = (struct kept_code){0x200, 2, 10, "__init__", "__init__", {0}};
	world.codes[2] = (struct kept_code){0x300, 3, BIG, "big", "/big.py", {0}};
	world.codes[3] = (struct kept_code){0x400, 4, BIG, "bigger", "/big.py", {0}};
	assert_int_equal(rls_interpreters_new(NULL, &sink, &targets, &interpreters), 0);
	assert_int_equal(rls_targets_add(&targets, PARENT, true), 0);
	return interpreters;
}

/* The function of a frame; NULL when it is not known, "-" for the interpreter's own. */
static const char *name(struct rls_interpreters *interpreters, pid_t pid, uint64_t code,
			uint32_t identity)
{
	const struct rls_wire_frame frame = {
		.code = code, .at = (uint32_t)-1, .identity = identity};
	struct rls_frame out;
	int r = rls_interpreters_name(interpreters, pid, &frame, &out);

	if (r) {
		assert_true(r == 1 || r == -ENOENT);
		return r == 1 ? "-" : NULL;
	}
	assert_false(out.native);
	assert_int_equal(out.line, 30);
	return world.strings[out.function];
}

static void a_process_is_looked_at_less_and_less_often(void **state)
{
	struct rls_interpreters *interpreters = begin();
	uint64_t now_ns = 1000 * MS;

	(void)state;
	world.python.version[0] = '\0'; /* no Python */
	world.python.runtime = 0;
	for (unsigned int wait_ms = 50; wait_ms < 100000; wait_ms *= 2) {
		unsigned int scans = world.scans, step_ms = wait_ms < 5000 ? wait_ms : 5000;

		assert_int_equal(rls_interpreters_check(interpreters, PARENT, now_ns), 0);
		assert_int_equal(world.scans, scans + 1);
		now_ns += step_ms * MS - 1;
		assert_int_equal(rls_interpreters_miss(interpreters, PARENT, now_ns), 0);
		assert_int_equal(world.scans, scans + 1);
		now_ns++;
	}
	assert_int_equal(rls_interpreters_missed(interpreters), 0); /* it may be no Python at all */
	strcpy(world.python.version, "3.11.2");
	world.python.runtime = 0x1000;
	rls_interpreters_mapped(interpreters, PARENT);
	assert_int_equal(rls_interpreters_check(interpreters, PARENT, now_ns - 1), 0);
	assert_int_equal(world.interpreter_of[PARENT], 1);
	assert_int_equal(rls_interpreters_missed(interpreters), 11);
	assert_int_equal(rls_interpreters_miss(interpreters, PARENT, now_ns),
			 0); /* taken before, read now */
	assert_int_equal(rls_interpreters_missed(interpreters), 12);
	assert_int_equal(rls_interpreters_refused(interpreters), 0);
	end(interpreters);
}

/* Its threads come a moment after the interpreter has been mapped. */
static void one_that_begins_is_looked_at_soon_again(void **state)
{
	struct rls_interpreters *interpreters = begin();

	(void)state;
	rls_interpreters_on_found(interpreters, on_found, NULL);
	assert_int_equal(rls_interpreters_tick(interpreters, 1 * MS), 0);
	assert_int_equal(world.scans, 0); /* nobody has asked */
	world.slot = -ENOENT;
	assert_int_equal(rls_interpreters_check(interpreters, PARENT, 100 * MS), 0);
	assert_int_equal(rls_interpreters_tick(interpreters, 105 * MS), 0);
	assert_int_equal(world.scans, 1);
	for (uint64_t ms = 110; ms < 2100; ms += 10)
		assert_int_equal(rls_interpreters_tick(interpreters, ms * MS), 0);
	assert_int_equal(world.scans, 200);
	assert_int_equal(world.found, 0);
	world.slot = 0;
	assert_int_equal(rls_interpreters_check(interpreters, PARENT, 2100 * MS), 0);
	assert_int_equal(world.interpreter_of[PARENT], 1);
	assert_int_equal(world.found, 1);
	assert_int_equal(world.learned, 1);
	end(interpreters);
}

/* Until its own is found. */
static void a_new_program_has_the_interpreter_of_its_executable(void **state)
{
	struct rls_interpreters *interpreters = begin();

	(void)state;
	assert_int_equal(rls_interpreters_check(interpreters, PARENT, 1 * MS), 0);
	world.image_known = true;
	world.slot = -ENOENT;
	world.interpreter_of[PARENT] = 0;
	assert_int_equal(rls_targets_execed(&targets, PARENT, 2 * MS), 0);
	assert_int_equal(world.interpreter_of[PARENT], 0); /* the kernel side has set it itself */
	assert_null(name(interpreters, PARENT, 0x100, 1));
	assert_int_equal(rls_interpreters_execed(interpreters, PARENT, 2 * MS), 0);
	assert_int_equal(world.interpreter_of[PARENT], 1);
	assert_string_equal(name(interpreters, PARENT, 0x100, 1), "Env.step");
	world.slot = 0;
	assert_int_equal(rls_interpreters_tick(interpreters, 12 * MS), 0);
	assert_int_equal(world.learned, 2);
	assert_string_equal(name(interpreters, PARENT, 0x100, 1), "Env.step");
	assert_int_equal(world.reads, 1); /* what is known stays known */
	/* The executable of one that nobody knows. */
	world.python.minor = 99;
	assert_int_equal(rls_targets_execed(&targets, PARENT, 20 * MS), 0);
	assert_int_equal(rls_interpreters_execed(interpreters, PARENT, 20 * MS), 0);
	assert_int_equal(world.interpreter_of[PARENT], -1);
	assert_null(name(interpreters, PARENT, 0x100, 1));
	end(interpreters);
}

static void what_nobody_knows_how_to_walk_is_counted_as_such(void **state)
{
	struct rls_interpreters *interpreters = begin();

	(void)state;
	for (pid_t pid = CHILD; pid <= CHILD + 1; pid++)
		assert_int_equal(rls_targets_add(&targets, pid, false), 0);
	world.python = (struct rls_python){
		.version = "3.15.1", .major = 3, .minor = 15, .runtime = 0x1000};
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(rls_interpreters_miss(interpreters, PARENT, i * MS), 0);
	world.python = (struct rls_python){.version = "3.12.1",
					   .major = 3,
					   .minor = 12,
					   .runtime = 0x1000,
					   .free_threaded = true};
	assert_int_equal(rls_interpreters_miss(interpreters, CHILD, 0), 0);
	world.python = (struct rls_python){0}; /* no Python */
	assert_int_equal(rls_interpreters_miss(interpreters, CHILD + 1, 0), 0);
	assert_int_equal(rls_interpreters_refused(interpreters), 6);
	assert_int_equal(rls_interpreters_missed(interpreters), 0);
	assert_int_equal(world.interpreter_of[PARENT], 0);
	assert_null(name(interpreters, PARENT, 0x100, 1));
	end(interpreters);
}

static void code_is_read_once(void **state)
{
	struct rls_interpreters *interpreters = begin();

	(void)state;
	assert_int_equal(rls_interpreters_check(interpreters, PARENT, 1), 0);
	assert_string_equal(name(interpreters, PARENT, 0x100, 1), "Env.step");
	assert_string_equal(name(interpreters, PARENT, 0x100, 1), "Env.step");
	assert_int_equal(world.reads, 1);
	assert_string_equal(name(interpreters, PARENT, 0x200, 2), "-"); /* the interpreter's own */
	assert_null(name(interpreters, PARENT, 0x500, 5));
	assert_null(name(interpreters, PARENT, 0x500, 5));
	assert_int_equal(world.reads, 3); /* not again and again for what is not there */
	assert_null(name(interpreters, CHILD, 0x100, 1)); /* which nothing has reported */
	end(interpreters);
}

/* Where another code object has taken the place, what was met there shows it. */
static void what_took_the_place_is_never_taken_for_the_other(void **state)
{
	struct rls_interpreters *interpreters = begin();

	(void)state;
	assert_int_equal(rls_interpreters_check(interpreters, PARENT, 1), 0);
	assert_string_equal(name(interpreters, PARENT, 0x100, 1), "Env.step");
	world.codes[0].identity = 7;
	world.codes[0].function = "Env.reset";
	assert_string_equal(name(interpreters, PARENT, 0x100, 7), "Env.reset");
	assert_null(name(interpreters, PARENT, 0x100, 1)); /* a sample from before: gone */
	assert_string_equal(name(interpreters, PARENT, 0x100, 7), "Env.reset");
	end(interpreters);
}

static void a_child_has_its_parents_code(void **state)
{
	struct rls_interpreters *interpreters = begin();

	(void)state;
	assert_int_equal(rls_interpreters_check(interpreters, PARENT, 1), 0);
	assert_string_equal(name(interpreters, PARENT, 0x100, 1), "Env.step");
	assert_int_equal(rls_targets_forked(&targets, PARENT, CHILD, 2), 0);
	assert_int_equal(world.scans, 1);
	assert_int_equal(world.interpreter_of[CHILD], 1);
	assert_string_equal(name(interpreters, CHILD, 0x100, 1), "Env.step");
	assert_int_equal(world.reads, 1);
	/* It has ended before it is read of: the founder has it still. */
	for (size_t i = 0; i < sizeof(world.codes) / sizeof(world.codes[0]); i++)
		world.codes[i].gone[CHILD] = true;
	assert_string_equal(name(interpreters, CHILD, 0x300, 3), "big");
	/* The founder is gone: what is not there for one may be for the other. */
	rls_targets_ended(&targets, PARENT, 3);
	assert_int_equal(world.interpreter_of[PARENT], -1);
	assert_string_equal(name(interpreters, CHILD, 0x100, 1), "Env.step");
	rls_targets_ended(&targets, CHILD, 3);
	assert_null(name(interpreters, CHILD, 0x100, 1));
	end(interpreters);
}

static void what_one_has_lost_another_may_have(void **state)
{
	struct rls_interpreters *interpreters = begin();

	(void)state;
	assert_int_equal(rls_interpreters_check(interpreters, PARENT, 1), 0);
	assert_int_equal(rls_targets_forked(&targets, PARENT, CHILD, 2), 0);
	world.codes[0].gone[PARENT] = true;
	assert_null(name(interpreters, PARENT, 0x100, 1));
	assert_string_equal(name(interpreters, CHILD, 0x100, 1),
			    "Env.step"); /* made since the fork */
	assert_string_equal(name(interpreters, PARENT, 0x100, 1), "Env.step");
	end(interpreters);
}

/* A child whose parent's interpreter is not known is looked at itself. */
static void a_child_of_an_unknown_parent_is_looked_at(void **state)
{
	struct rls_interpreters *interpreters = begin();

	(void)state;
	assert_int_equal(rls_targets_forked(&targets, PARENT, CHILD, 2), 0);
	assert_int_equal(world.scans, 1);
	assert_string_equal(name(interpreters, CHILD, 0x100, 1), "Env.step");
	end(interpreters);
}

/* A sample may come after its process has ended: nothing would ever forget that. */
static void of_others_nothing_is_kept(void **state)
{
	struct rls_interpreters *interpreters = begin();

	(void)state;
	assert_int_equal(rls_interpreters_miss(interpreters, CHILD, 1), 0);
	assert_int_equal(rls_interpreters_check(interpreters, CHILD, 2), 0);
	assert_int_equal(world.scans, 0);
	end(interpreters);
}

static void no_family_keeps_code_without_end(void **state)
{
	struct rls_interpreters *interpreters = begin();

	(void)state;
	assert_int_equal(rls_interpreters_check(interpreters, PARENT, 1), 0);
	assert_string_equal(name(interpreters, PARENT, 0x300, 3), "big");
	assert_string_equal(name(interpreters, PARENT, 0x400, 4), "bigger");
	assert_string_equal(name(interpreters, PARENT, 0x300, 3), "big");
	assert_int_equal(world.reads, 2);
	assert_string_equal(name(interpreters, PARENT, 0x100, 1),
			    "Env.step"); /* for which both go */
	assert_string_equal(name(interpreters, PARENT, 0x300, 3), "big");
	assert_int_equal(world.reads, 4);
	end(interpreters);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_is_looked_at_less_and_less_often),
		cmocka_unit_test(one_that_begins_is_looked_at_soon_again),
		cmocka_unit_test(a_new_program_has_the_interpreter_of_its_executable),
		cmocka_unit_test(what_nobody_knows_how_to_walk_is_counted_as_such),
		cmocka_unit_test(code_is_read_once),
		cmocka_unit_test(what_took_the_place_is_never_taken_for_the_other),
		cmocka_unit_test(a_child_has_its_parents_code),
		cmocka_unit_test(what_one_has_lost_another_may_have),
		cmocka_unit_test(a_child_of_an_unknown_parent_is_looked_at),
		cmocka_unit_test(of_others_nothing_is_kept),
		cmocka_unit_test(no_family_keeps_code_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
