#include "userspace/python/python_frames.h"

#include <errno.h>
#include <stddef.h>

#include "userspace/process/space.h"

#define NONE RLS_FRAMES_NO_OFFSET
#define THREADS_MAX 64 /* looked at; more would tell nothing new */
#define INTERPRETERS_MAX 32
/* Where in glibc's and musl's thread descriptor, x86-64, a thread's own values may lie. */
#define SLOT_FIRST 0x80
#define SLOT_END 0x900

#define STEPS_MAX 1024 /* a list in motion, or a hostile one, may never end */
struct listed_thread {
	uint64_t state, thread_pointer;
};

static const struct rls_frame_layout layouts[] = {
	{.minor = 8,
	 .runtime_interpreters = 32,
	 .runtime_current = 1368,
	 .runtime_last_holder = 1160,
	 .thread_interpreter = 16,
	 .interpreter_threads = 8,
	 .thread_next = 8,
	 .interpreter_modules = 56,
	 .thread_id = 176,
	 .thread_frame = 24,
	 .c_frame_frame = NONE,
	 .frame_back = 24,
	 .frame_code = 32,
	 .frame_instruction = 104,
	 .frame_owner = NONE,
	 .index_unit_bytes = 1,
	 .code_file = 104,
	 .code_name = 112,
	 .code_qualified_name = NONE,
	 .code_first_line = 40,
	 .code_lines = 120,
	 .code_start = NONE,
	 .ascii_text = 48,
	 .object_bytes = 16},
	{.minor = 9,
	 .runtime_interpreters = 32,
	 .runtime_current = 568,
	 .runtime_last_holder = 360,
	 .thread_interpreter = 16,
	 .interpreter_threads = 8,
	 .thread_next = 8,
	 .interpreter_modules = 856,
	 .thread_id = 176,
	 .thread_frame = 24,
	 .c_frame_frame = NONE,
	 .frame_back = 24,
	 .frame_code = 32,
	 .frame_instruction = 104,
	 .frame_owner = NONE,
	 .index_unit_bytes = 1,
	 .code_file = 104,
	 .code_name = 112,
	 .code_qualified_name = NONE,
	 .code_first_line = 40,
	 .code_lines = 120,
	 .code_start = NONE,
	 .ascii_text = 48,
	 .object_bytes = 16},
	{.minor = 10,
	 .runtime_interpreters = 32,
	 .runtime_current = 568,
	 .runtime_last_holder = 360,
	 .thread_interpreter = 16,
	 .thread_c_stack = 48,
	 .interpreter_threads = 8,
	 .thread_next = 8,
	 .interpreter_modules = 856,
	 .thread_id = 176,
	 .thread_frame = 24,
	 .c_frame_frame = NONE,
	 .frame_back = 24,
	 .frame_code = 32,
	 .frame_instruction = 96,
	 .frame_owner = NONE,
	 .index_unit_bytes = 2,
	 .code_file = 104,
	 .code_name = 112,
	 .code_qualified_name = NONE,
	 .code_first_line = 40,
	 .code_lines = 120,
	 .code_start = NONE,
	 .ascii_text = 48,
	 .object_bytes = 16},
	{.minor = 11,
	 .runtime_interpreters = 40,
	 .runtime_current = 576,
	 .runtime_last_holder = 368,
	 .thread_interpreter = 16,
	 .thread_c_stack = 56,
	 .interpreter_threads = 16,
	 .thread_next = 8,
	 .interpreter_modules = 888,
	 .thread_id = 152,
	 .thread_frame = 56,
	 .c_frame_frame = 8,
	 .c_frame_back = 16,
	 .frame_back = 48,
	 .frame_code = 32,
	 .frame_instruction = 56,
	 .frame_owner = NONE,
	 .frame_is_entry = 68,
	 .code_file = 112,
	 .code_name = 120,
	 .code_qualified_name = 128,
	 .code_first_line = 72,
	 .code_lines = 136,
	 .code_start = 184,
	 .ascii_text = 48,
	 .object_bytes = 16},
	{.minor = 12,
	 .runtime_interpreters = 40,
	 .interpreter_threads = 72,
	 .thread_next = 8,
	 .interpreter_modules = 944,
	 .thread_id = 136,
	 .thread_frame = 56,
	 .c_frame_frame = 0,
	 .c_frame_back = 8,
	 .frame_back = 8,
	 .frame_code = 0,
	 .frame_instruction = 56,
	 .frame_owner = 70,
	 .owner_of_shims = 3,
	 .code_file = 112,
	 .code_name = 120,
	 .code_qualified_name = 128,
	 .code_first_line = 68,
	 .code_lines = 136,
	 .code_start = 192,
	 .ascii_text = 40,
	 .object_bytes = 16},
	{.minor = 13,
	 .runtime_interpreters = 632,
	 .interpreter_next = 7264,
	 .interpreter_threads = 7344,
	 .thread_next = 8,
	 .interpreter_modules = 7656,
	 .thread_id = 152,
	 .thread_frame = 72,
	 .c_frame_frame = NONE,
	 .frame_back = 8,
	 .frame_code = 0,
	 .frame_instruction = 56,
	 .frame_owner = 70,
	 .owner_of_shims = 3,
	 .code_file = 112,
	 .code_name = 120,
	 .code_qualified_name = 128,
	 .code_first_line = 68,
	 .code_lines = 136,
	 .code_start = 200,
	 .ascii_text = 40,
	 .object_bytes = 16},
	{.minor = 13,
	 .free_threaded = true,
	 .runtime_interpreters = 632,
	 .interpreter_next = 7264,
	 .interpreter_threads = 7344,
	 .thread_next = 8,
	 .interpreter_modules = 7664,
	 .thread_id = 152,
	 .thread_frame = 72,
	 .c_frame_frame = NONE,
	 .frame_back = 8,
	 .frame_code = 0,
	 .frame_instruction = 56,
	 .frame_owner = 70,
	 .owner_of_shims = 3,
	 .code_file = 128,
	 .code_name = 136,
	 .code_qualified_name = 144,
	 .code_first_line = 84,
	 .code_lines = 152,
	 .code_start = 216,
	 .ascii_text = 56,
	 .object_bytes = 32},
	{.minor = 14,
	 .runtime_interpreters = 808,
	 .interpreter_next = 7272,
	 .interpreter_threads = 7344,
	 .thread_next = 8,
	 .interpreter_modules = 7688,
	 .thread_id = 152,
	 .thread_frame = 72,
	 .c_frame_frame = NONE,
	 .frame_back = 8,
	 .frame_code = 0,
	 .frame_instruction = 56,
	 .frame_owner = 74,
	 .owner_of_shims = 3,
	 .code_file = 112,
	 .code_name = 120,
	 .code_qualified_name = 128,
	 .code_first_line = 68,
	 .code_lines = 136,
	 .code_start = 208,
	 .ascii_text = 40,
	 .object_bytes = 16},
};

const struct rls_frame_layout *rls_frame_layout_of(const struct rls_python *python)
{
	if (python->major != 3 || !python->runtime)
		return NULL;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (layouts[i].minor == python->minor &&
		    layouts[i].free_threaded == python->free_threaded)
			return &layouts[i];
	}
	return NULL;
}

static bool read_pointer(const struct rls_live_space *live, uint64_t address, uint64_t *out)
{
	return rls_space_read(&live->space, address, out, sizeof(*out));
}

/* Its threads, the newest first, after those that are listed. Returns how many are listed then. */
static size_t list_of_one(const struct rls_live_space *live, uint64_t interpreter,
			  const struct rls_frame_layout *layout, struct listed_thread *threads,
			  size_t count)
{
	uint64_t state;

	if (!read_pointer(live, interpreter + layout->interpreter_threads, &state))
		return count;
	for (int step = 0; state && step < STEPS_MAX && count < THREADS_MAX; step++) {
		struct listed_thread *thread = &threads[count];

		thread->state = state;
		if (!read_pointer(live, state + layout->thread_id, &thread->thread_pointer) ||
		    !read_pointer(live, state + layout->thread_next, &state))
			break;
		count += thread->thread_pointer != 0;
	}
	return count;
}

/* The main interpreter, and then those that it has made (subinterpreters), the newest first. */
static size_t list_interpreters(const struct rls_live_space *live, uint64_t runtime,
				const struct rls_frame_layout *layout,
				uint64_t interpreters[INTERPRETERS_MAX])
{
	uint64_t ends[2], at; /* the newest, the main one */
	size_t count = 0;

	if (!rls_space_read(&live->space, runtime + layout->runtime_interpreters, ends,
			    sizeof(ends)) ||
	    !ends[0])
		return 0;
	if (ends[1])
		interpreters[count++] = ends[1];
	at = ends[0];
	for (int step = 0; at && step < STEPS_MAX && count < INTERPRETERS_MAX; step++) {
		if (at != ends[1])
			interpreters[count++] = at;
		if (!read_pointer(live, at + layout->interpreter_next, &at))
			break;
	}
	return count;
}

static size_t list_threads(const struct rls_live_space *live, uint64_t runtime,
			   const struct rls_frame_layout *layout, struct listed_thread *threads)
{
	uint64_t interpreters[INTERPRETERS_MAX];
	size_t found = list_interpreters(live, runtime, layout, interpreters), count = 0;

	for (size_t i = 0; i < found; i++)
		count = list_of_one(live, interpreters[i], layout, threads, count);
	return count;
}

/* A thread that is being made or has ended may lack it, so the place is the one that most
 * threads agree on. */
static int most_common_place(const struct rls_live_space *live, const struct listed_thread *threads,
			     size_t count, uint32_t *out)
{
	uint64_t values[(SLOT_END - SLOT_FIRST) / sizeof(uint64_t)];
	uint8_t votes[sizeof(values) / sizeof(values[0])] = {0};
	size_t best = 0;

	for (size_t i = 0; i < count; i++) {
		if (!rls_space_read(&live->space, threads[i].thread_pointer + SLOT_FIRST, values,
				    sizeof(values)))
			continue;
		for (size_t at = 0; at < sizeof(votes); at++)
			votes[at] += values[at] == threads[i].state;
	}
	for (size_t at = 1; at < sizeof(votes); at++)
		best = votes[at] > votes[best] ? at : best;
	if (!votes[best])
		return -ENOENT;
	*out = SLOT_FIRST + best * sizeof(uint64_t);
	return 0;
}

size_t rls_frame_count_threads(pid_t pid, const struct rls_python *python,
			       const struct rls_frame_layout *layout)
{
	struct listed_thread threads[THREADS_MAX];
	_cleanup_live_space_ struct rls_live_space live;

	rls_live_space_open(&live, pid);
	return list_threads(&live, python->runtime, layout, threads);
}

int rls_frame_slot_find(pid_t pid, const struct rls_python *python,
			const struct rls_frame_layout *layout, uint32_t *out)
{
	struct listed_thread threads[THREADS_MAX];
	_cleanup_live_space_ struct rls_live_space live;
	size_t count;
	int r;

	rls_live_space_open(&live, pid);
	r = rls_live_space_probe(&live, python->runtime);
	if (r)
		return r;
	count = list_threads(&live, python->runtime, layout, threads);
	return count ? most_common_place(&live, threads, count, out) : -ENOENT;
}

/* 0; -ENOENT: it has no dictionary of modules. */
static int modules_of(const struct rls_live_space *live, uint64_t interpreter,
		      const struct rls_python *python, const struct rls_frame_layout *layout,
		      uint64_t *out)
{
	struct {
		uint64_t type, used;
	} dictionary;
	uint64_t modules;

	if (!read_pointer(live, interpreter + layout->interpreter_modules, &modules) ||
	    !rls_space_read(&live->space, modules + layout->object_bytes - sizeof(uint64_t),
			    &dictionary, sizeof(dictionary)) ||
	    dictionary.type != python->dict_type)
		return -ENOENT;
	*out = dictionary.used;
	return 0;
}

int rls_frame_count_modules(pid_t pid, const struct rls_python *python,
			    const struct rls_frame_layout *layout, uint64_t *out)
{
	_cleanup_live_space_ struct rls_live_space live;
	uint64_t interpreters[INTERPRETERS_MAX], modules, sum = 0;
	size_t count;

	rls_live_space_open(&live, pid);
	count = python->dict_type ? list_interpreters(&live, python->runtime, layout, interpreters)
				  : 0;
	for (size_t i = 0; i < count; i++) {
		if (!modules_of(&live, interpreters[i], python, layout, &modules))
			sum += modules;
		else if (!i)
			return -ENOENT;
	}
	*out = sum;
	return count ? 0 : -ENOENT;
}
