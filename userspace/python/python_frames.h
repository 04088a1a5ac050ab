/* Python frames: where an interpreter keeps each thread's stack, as byte offsets, and how
 * to find a thread's state from outside.
 *
 *     thread pointer + slot ──▶ PyThreadState ──▶ [C frame ──▶] frame ──▶ frame ──▶ ...
 *                                                                 │
 *                                                                 ▼
 *                                               code object: names, file, line table
 *
 * Offsets are of x86-64 builds by version: from the debug information of real interpreters
 * (3.8–3.13) and from _Py_DebugOffsets (3.14, free-threaded 3.13). Free-threaded 3.14 is not
 * there: each of its threads has a copy of the instructions, which the frame points into.
 *
 * The slot is the one of the pthread key that PyGILState uses (autoTSSkey). It is set for
 * threads that have released the GIL too, which the thread-local variable of 3.12 and later
 * is not. No table has its place. It is found by search: behind the thread pointer of each
 * thread that the interpreter lists, at one offset, lies the address of that thread's state.
 */
#ifndef RLS_PYTHON_FRAMES_H
#define RLS_PYTHON_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/python/python.h"

#define RLS_FRAMES_NO_OFFSET 0xffff

struct rls_frame_layout {
	uint16_t minor;
	bool free_threaded;
	/* the list of threads, and the dictionary of modules */
	uint16_t runtime_interpreters; /* the newest of the list; the main one is behind it */
	uint16_t interpreter_next, interpreter_threads, thread_next, thread_id;
	uint16_t interpreter_modules;
	/* The state that holds the GIL, and that did so last; 0: threads' slots follow what they run. Before 3.12 a
	 * slot stays what it was while its thread runs a subinterpreter (userspace/python/state_in_use.h). */
	uint16_t runtime_current, runtime_last_holder;
	uint8_t thread_interpreter;
	uint8_t thread_c_stack; /* an address of the C stack of the thread that runs there; 0: there is none */
	/* from the thread's state to its innermost frame */
	uint16_t thread_frame; /* or its C frame */
	uint16_t c_frame_frame; /* RLS_FRAMES_NO_OFFSET: there is no C frame */
	uint8_t c_frame_back;
	/* frames */
	uint16_t frame_back, frame_code, frame_instruction;
	uint16_t frame_owner; /* RLS_FRAMES_NO_OFFSET: all frames are Python's */
	uint8_t owner_of_shims; /* frames with this owner or a greater one have no code */
	uint8_t frame_is_entry; /* 0: those are the ones by which C entered */
	uint8_t index_unit_bytes; /* instruction is an index of units; 0: an address */
	/* code objects */
	uint16_t code_file, code_name, code_qualified_name, code_first_line, code_lines;
	uint16_t code_start; /* of the instructions, where instruction is an address */
	uint16_t ascii_text; /* PyASCIIObject → characters */
	uint8_t object_bytes; /* PyObject: what every object begins with */
};

/* NULL: none is known for this interpreter. */
const struct rls_frame_layout *rls_frame_layout_of(const struct rls_python *python);

/* The threads that its interpreters list (64 at most); 0 when it runs none, or cannot be
 * read. */
size_t rls_frame_count_threads(pid_t pid, const struct rls_python *python,
			       const struct rls_frame_layout *layout);

/* How many modules its interpreters have imported or begin to (the sizes of sys.modules), 0;
 * or -ENOENT when the main one has none yet, or what is there is not a dictionary. */
int rls_frame_count_modules(pid_t pid, const struct rls_python *python,
			    const struct rls_frame_layout *layout, uint64_t *out);

/* The slot: 0, -ENOENT (no thread of it has run Python yet, or none was recognised), or
 * -errno when the process cannot be read. */
int rls_frame_slot_find(pid_t pid, const struct rls_python *python,
			const struct rls_frame_layout *layout, uint32_t *out);

#endif
