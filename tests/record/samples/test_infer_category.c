/* What a thread is held to be in, by its instruction and the words on its stack. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "userspace/record/samples/infer_category.h"

/* The process: 0x1000 bytes of code each. Offsets in a file are those from its start. */
enum {
	LIBC = 0x10000,
	PYTHON = 0x20000,
	TORCH = 0x30000,
	MUJOCO = 0x40000,
	UPROBES = 0x50000,
	HEAP = 0x60000,
	NUMPY = 0x70000,
	DYNLOAD = 0x80000,
	COMPILED = 0x90000,
	FFI = 0xa0000,
	ANNOTATE = 0xb0000
};
#define LOOP (PYTHON + 0x100) /* of bytecode: up to 0x200 */
#define TORCH_SITE (TORCH + 0x80)

static const uint64_t torch_sites[] = {0x80};
static const struct rls_code_file files[] = {
	{.role = RLS_ROLE_PYTHON, .evaluation = {{{0x100, 0x100}}, 1}},
	{.role = RLS_ROLE_BACKEND, .sites = torch_sites, .site_count = 1},
	{.role = RLS_ROLE_SIMULATOR},
};
static const struct {
	struct rls_mapping mapping;
	const struct rls_code_file *role;
} places[] = {
	{{.start = LIBC, .end = LIBC + 0x1000, .executable = true, .path = "/libc.so.6"}, NULL},
	{{.start = PYTHON, .end = PYTHON + 0x1000, .executable = true, .path = "/python"},
	 &files[0]},
	{{.start = TORCH, .end = TORCH + 0x1000, .executable = true, .path = "/torch"}, &files[1]},
	{{.start = MUJOCO, .end = MUJOCO + 0x1000, .executable = true, .path = "/mujoco"},
	 &files[2]},
	{{.start = UPROBES, .end = UPROBES + 0x1000, .executable = true, .path = "[uprobes]"},
	 NULL},
	{{.start = NUMPY,
	  .end = NUMPY + 0x1000,
	  .executable = true,
	  .path = "/numpy/_umath.cpython-311-x86_64-linux-gnu.so"},
	 NULL},
	{{.start = DYNLOAD,
	  .end = DYNLOAD + 0x1000,
	  .executable = true,
	  .path = "/usr/lib/python3.11/lib-dynload/_json.cpython-311-x86_64-linux-gnu.so"},
	 NULL},
	{{.start = COMPILED, .end = COMPILED + 0x1000, .executable = true, .path = ""}, NULL},
	{{.start = FFI, .end = FFI + 0x1000, .executable = true, .path = "/libffi.so.8.1.2"}, NULL},
	{{.start = ANNOTATE,
	  .end = ANNOTATE + 0x1000,
	  .executable = true,
	  .path = "/usr/lib/librlscope_annotate.so"},
	 NULL},
	{{.start = HEAP, .end = HEAP + 0x1000, .path = "[heap]"}, &files[1]},
};

static int fail_with;

int __wrap_rls_code_map_find(struct rls_code_map *unused, pid_t pid, uint64_t time_ns,
			     uint64_t address, bool certain, struct rls_code_place *out);
int __wrap_rls_code_map_find(struct rls_code_map *unused, pid_t pid, uint64_t time_ns,
			     uint64_t address, bool certain, struct rls_code_place *out)
{
	*out = (struct rls_code_place){.address = address};
	assert_int_equal(pid, 7);
	assert_int_equal(time_ns, 1234);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		if (address >= places[i].mapping.start && address < places[i].mapping.end)
			*out = (struct rls_code_place){address, &places[i].mapping, places[i].role};
	}
	return certain ? 0 : fail_with;
}

/* Frames are known in what lies behind 0xc00 of a file: so many words as its last digit says. */
#define FRAME(words) (0xc00 + (words))

int __wrap_rls_code_map_frame_bytes(struct rls_code_map *unused, pid_t pid,
				    const struct rls_code_place *place, uint64_t *out);
int __wrap_rls_code_map_frame_bytes(struct rls_code_map *unused, pid_t pid,
				    const struct rls_code_place *place, uint64_t *out)
{
	assert_int_equal(pid, 7);
	assert_true(place->address >= place->mapping->start &&
		    place->address < place->mapping->end);
	if ((place->address & 0xf00) != 0xc00)
		return -ENOENT;
	*out = 8 * (place->address & 0xff);
	return 0;
}

static struct rls_wire_category_sample sample_at(uint64_t ip)
{
	return (struct rls_wire_category_sample){.header = {.pid = 7, .tid = 8, .time_ns = 1234},
						 .ip = ip};
}

static void assert_inferred(const struct rls_wire_category_sample *sample,
			    enum rls_category expected)
{
	struct rls_inferred inferred = {.category = RLS_CATEGORY_MAX};

	assert_int_equal(rls_infer_category(NULL, sample, &inferred), 0);
	assert_int_equal(inferred.category, expected);
	assert_int_equal(inferred.roleless, expected == RLS_CATEGORY_NATIVE);
}

static void hints(void **state)
{
	enum rls_category category = RLS_CATEGORY_MAX;

	assert_int_equal(rls_hint_of(RLS_CODE_OTHER, &category), RLS_HINT_NOTHING);
	assert_int_equal(rls_hint_of(RLS_CODE_KERNEL, &category), RLS_HINT_NOTHING);
	assert_int_equal(rls_hint_of(RLS_CODE_INTERPRETER, &category), RLS_HINT_INTERPRETER);
	assert_int_equal(rls_hint_of(RLS_CODE_PROBE, &category), RLS_HINT_PROBE);
	assert_int_equal(category, RLS_CATEGORY_MAX);
	assert_int_equal(rls_hint_of(RLS_CODE_EVALUATION, &category), RLS_HINT_CATEGORY);
	assert_int_equal(category, RLS_CATEGORY_PYTHON);
	assert_int_equal(rls_hint_of(RLS_CODE_CUDA_API, &category), RLS_HINT_CATEGORY);
	assert_int_equal(category, RLS_CATEGORY_CUDA_API);
}

static void code_of_a_library_or_of_the_loop_tells_by_itself(void **state)
{
	struct rls_wire_category_sample sample = sample_at(TORCH + 0x10);

	sample.words[0] = LOOP + 1;
	assert_inferred(&sample, RLS_CATEGORY_BACKEND);
	sample.ip = LOOP + 0x10;
	sample.words[0] = TORCH + 0x10;
	assert_inferred(&sample, RLS_CATEGORY_PYTHON);
}

/* Data, zeros and what maps no code are passed by; the nearest that tells is taken. */
static void anywhere_else_the_nearest_return_address_decides(void **state)
{
	struct rls_wire_category_sample sample = sample_at(LIBC + 4);

	sample.words[1] = 42;
	sample.words[2] = HEAP + 8;
	sample.words[3] = LIBC + 0x20;
	sample.words[5] = MUJOCO + 0x30;
	sample.words[6] = LOOP + 1;
	assert_inferred(&sample, RLS_CATEGORY_SIMULATOR);
	sample.ip = 0xdead; /* nothing known there */
	assert_inferred(&sample, RLS_CATEGORY_SIMULATOR);
}

/* A library calls the interpreter's functions too: it is Python's only if nobody else's. */
static void the_interpreters_own_functions_are_somebodys(void **state)
{
	struct rls_wire_category_sample sample = sample_at(PYTHON + 0x800);

	assert_inferred(&sample, RLS_CATEGORY_PYTHON);
	sample.words[9] = TORCH + 0x30;
	assert_inferred(&sample, RLS_CATEGORY_BACKEND);
	sample = sample_at(LIBC);
	sample.words[0] = PYTHON + 0x800;
	assert_inferred(&sample, RLS_CATEGORY_PYTHON);
}

/* What a library without a role does is its caller's if that has one; else it is native, as it is no Python. */
static void code_without_a_role_is_its_callers_or_native(void **state)
{
	struct rls_wire_category_sample sample = sample_at(NUMPY + 0x10);

	assert_inferred(&sample, RLS_CATEGORY_NATIVE);
	sample.words[9] = TORCH + 0x30;
	assert_inferred(&sample, RLS_CATEGORY_BACKEND);
	sample.words[8] = LOOP + 1;
	assert_inferred(&sample, RLS_CATEGORY_NATIVE);
	sample = sample_at(LIBC);
	sample.words[0] = NUMPY + 0x10;
	assert_inferred(&sample, RLS_CATEGORY_NATIVE);
	sample.ip = COMPILED + 0x10; /* made at run time */
	sample.words[0] = 0;
	assert_inferred(&sample, RLS_CATEGORY_NATIVE);
}

/* libc works for its caller, and so do what Python brings with it, what ctypes calls by, and our annotations. */
static void code_that_serves_all_is_its_callers(void **state)
{
	struct rls_wire_category_sample sample = sample_at(LIBC + FRAME(1));

	sample.words[0] = NUMPY + FRAME(1) + 1;
	sample.words[1] = LOOP + 1;
	assert_inferred(&sample, RLS_CATEGORY_NATIVE);
	sample.words[0] = LOOP + 1;
	assert_inferred(&sample, RLS_CATEGORY_PYTHON);
	sample = sample_at(DYNLOAD + 0x10);
	assert_inferred(&sample, RLS_CATEGORY_PYTHON);
	sample.words[3] = LOOP + 1;
	assert_inferred(&sample, RLS_CATEGORY_PYTHON);
	sample.ip = FFI + 0x10;
	assert_inferred(&sample, RLS_CATEGORY_PYTHON);
	sample.ip = ANNOTATE + 0x10;
	assert_inferred(&sample, RLS_CATEGORY_PYTHON);
}

/* The interpreter's functions called by a module are the module's; words that may be left over say nothing
 * against the interpreter. */
static void what_a_module_has_the_interpreter_do_is_its_own(void **state)
{
	struct rls_wire_category_sample sample = sample_at(PYTHON + FRAME(1));

	sample.words[0] = NUMPY + FRAME(1) + 1;
	sample.words[1] = PYTHON + FRAME(1) + 1;
	sample.words[2] = LOOP + 1;
	assert_inferred(&sample, RLS_CATEGORY_NATIVE);
	sample.words[0] = PYTHON + 0x800; /* whose frame is not known */
	sample.words[1] = NUMPY + 0x10;
	assert_inferred(&sample, RLS_CATEGORY_PYTHON);
}

static void a_thread_without_python_frames_is_not_pythons(void **state)
{
	struct rls_wire_category_sample sample = sample_at(LIBC);

	sample.header.flags = RLS_SAMPLE_NO_PYTHON;
	assert_inferred(&sample, RLS_CATEGORY_NATIVE);
	sample.words[4] = MUJOCO + 8;
	assert_inferred(&sample, RLS_CATEGORY_SIMULATOR);
	sample.words[4] = PYTHON + 0x800; /* it may be about to have one */
	assert_inferred(&sample, RLS_CATEGORY_PYTHON);
}

/* The nearest that tells is left over from an earlier call: it lies within a frame. */
static void frames_are_passed_by(void **state)
{
	struct rls_wire_category_sample sample = sample_at(NUMPY + FRAME(4));

	sample.words[1] = TORCH + 0x30;
	sample.words[3] = PYTHON + FRAME(2) + 1; /* a call before it */
	sample.words[4] = MUJOCO + 0x30;
	sample.words[5] = LOOP + 1;
	assert_inferred(&sample, RLS_CATEGORY_NATIVE);
	sample.words[5] = TORCH + 0x31;
	sample.words[6] = LOOP + 1;
	assert_inferred(&sample, RLS_CATEGORY_BACKEND);
}

/* From there on the words above are searched. */
static void where_no_frame_is_known_the_words_above_decide(void **state)
{
	struct rls_wire_category_sample sample = sample_at(LIBC + FRAME(3));

	sample.words[0] = TORCH + 0x30;
	sample.words[2] = LIBC + 0x20;
	sample.words[8] = MUJOCO + 0x30;
	assert_inferred(&sample, RLS_CATEGORY_SIMULATOR);
	sample.words[2] = 0; /* broken */
	assert_inferred(&sample, RLS_CATEGORY_SIMULATOR);
	sample.ip = LIBC + FRAME(0);
	assert_inferred(&sample, RLS_CATEGORY_BACKEND);
}

/* What is left over in a frame that is larger than what was taken of the stack tells nothing
 * against the interpreter; better than nothing otherwise. */
static void frames_may_end_beyond_what_is_known(void **state)
{
	struct rls_wire_category_sample sample = sample_at(PYTHON + FRAME(RLS_SAMPLE_WORDS + 1));

	sample.words[5] = TORCH + 0x30;
	assert_inferred(&sample, RLS_CATEGORY_PYTHON);
	sample.ip = LIBC + FRAME(RLS_SAMPLE_WORDS + 1);
	assert_inferred(&sample, RLS_CATEGORY_BACKEND);
	sample.ip = LIBC + FRAME(RLS_SAMPLE_WORDS);
	sample.words[RLS_SAMPLE_WORDS - 1] = MUJOCO + 0x30;
	assert_inferred(&sample, RLS_CATEGORY_SIMULATOR);
}

/* A probe lies where a call goes back to: that is the library's, not the probe. */
static void a_return_address_is_its_calls(void **state)
{
	struct rls_wire_category_sample sample = sample_at(PYTHON + FRAME(1));

	sample.words[0] = TORCH_SITE;
	sample.words[1] = LOOP + 1;
	assert_inferred(&sample, RLS_CATEGORY_BACKEND);
}

static void nothing_found_is_unknown(void **state)
{
	struct rls_wire_category_sample sample = sample_at(LIBC);

	assert_inferred(&sample, RLS_CATEGORY_UNKNOWN);
}

static void the_kernel_works_for_who_called_it(void **state)
{
	struct rls_wire_category_sample sample = sample_at(TORCH + 0x10);

	sample.header.flags = RLS_SAMPLE_KERNEL;
	assert_inferred(&sample, RLS_CATEGORY_BACKEND);
	sample.ip = LIBC;
	sample.words[0] = MUJOCO + 8;
	assert_inferred(&sample, RLS_CATEGORY_SIMULATOR);
}

static void the_profilers_own_time_is_nobodys(void **state)
{
	struct rls_wire_category_sample sample = sample_at(UPROBES + 0x10);
	struct rls_inferred inferred;

	assert_int_equal(rls_infer_category(NULL, &sample, &inferred), -EAGAIN);
	sample = sample_at(TORCH_SITE);
	assert_int_equal(rls_infer_category(NULL, &sample, &inferred), -EAGAIN);
	sample = sample_at(TORCH_SITE + 1); /* behind the breakpoint, trapped */
	sample.header.flags = RLS_SAMPLE_KERNEL;
	assert_int_equal(rls_infer_category(NULL, &sample, &inferred), -EAGAIN);
	sample.header.flags = 0;
	assert_inferred(&sample, RLS_CATEGORY_BACKEND);
	sample = sample_at(LOOP); /* where a function returns to, as its probe is served */
	sample.header.flags = RLS_SAMPLE_KERNEL | RLS_SAMPLE_TRAPPED;
	assert_int_equal(rls_infer_category(NULL, &sample, &inferred), -EAGAIN);
}

static void a_process_that_is_gone_is_reported(void **state)
{
	struct rls_wire_category_sample sample = sample_at(LIBC);
	struct rls_inferred inferred;

	sample.words[0] = MUJOCO + 8;
	fail_with = -ESRCH;
	assert_int_equal(rls_infer_category(NULL, &sample, &inferred), -ESRCH);
	fail_with = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hints),
		cmocka_unit_test(code_of_a_library_or_of_the_loop_tells_by_itself),
		cmocka_unit_test(anywhere_else_the_nearest_return_address_decides),
		cmocka_unit_test(the_interpreters_own_functions_are_somebodys),
		cmocka_unit_test(code_without_a_role_is_its_callers_or_native),
		cmocka_unit_test(code_that_serves_all_is_its_callers),
		cmocka_unit_test(what_a_module_has_the_interpreter_do_is_its_own),
		cmocka_unit_test(a_thread_without_python_frames_is_not_pythons),
		cmocka_unit_test(frames_are_passed_by),
		cmocka_unit_test(where_no_frame_is_known_the_words_above_decide),
		cmocka_unit_test(frames_may_end_beyond_what_is_known),
		cmocka_unit_test(a_return_address_is_its_calls),
		cmocka_unit_test(nothing_found_is_unknown),
		cmocka_unit_test(the_kernel_works_for_who_called_it),
		cmocka_unit_test(the_profilers_own_time_is_nobodys),
		cmocka_unit_test(a_process_that_is_gone_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
