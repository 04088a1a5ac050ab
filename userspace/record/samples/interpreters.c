#include "userspace/record/samples/interpreters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/index_map.h"
#include "bpf/wire/stack.h"
#include "userspace/attach/kernel/kernel_sampling.h"
#include "userspace/base/log.h"
#include "userspace/process/mappings.h"
#include "userspace/process/space.h"
#include "userspace/python/code_object.h"
#include "userspace/python/interpreter.h"
#include "userspace/python/python_frames.h"
#include "userspace/python/stack_walk.h"
#include "userspace/record/samples/interpreter_images.h"

#define CHECK_AGAIN_NS 50000000ULL /* doubles with each check in vain */
/* While it is there, but has no thread yet that runs Python: for so long after that was first seen. */
#define CHECK_SOON_NS 10000000ULL
#define BEGINS_NS_MAX 2000000000ULL
#define CHECK_AGAIN_MAX_NS 5000000000ULL
/* Code objects of a family that are kept; PyTorch's have 20 MB. A program that makes code by
 * exec without end, or a hostile one, has them read again. */
#define CODES_BYTES_MAX (64ULL << 20)

_Static_assert(RLS_STACK_NO_OFFSET == RLS_FRAMES_NO_OFFSET, "one word for none");

struct code {
	struct rls_code_object object;
	rls_string_id function, file;
	uint32_t identity; /* of the one that was asked for */
	pid_t asked; /* where; another may still have what this one has lost */
	bool readable;
	bool internal; /* of the interpreter's own */
};

/* A process and its children have the same code at the same addresses, as far as they have
 * met it before they parted: identities tell. A child that is read of late has lost its memory
 * when the founder still has it. */
struct family {
	unsigned int members;
	pid_t founder;
	struct rls_index_map codes; /* address → struct code */
	uint64_t codes_bytes; /* roughly what they take */
};

struct python {
	const struct rls_frame_layout *layout; /* NULL: not found (yet) */
	struct rls_wire_interpreter wire; /* the same and where, for the kernel side */
	uint64_t code_type;
	uint64_t checked_ns, wait_ns;
	uint64_t missed; /* samples, while there is no layout */
	bool assumed; /* the layout is that of other processes with this executable */
	uint64_t begins_ns; /* since when it has an interpreter without threads; 0: it has not */
	bool refused; /* there will be none: nobody knows this interpreter's */
	struct family *family; /* NULL while there is no layout */
};

struct rls_interpreters {
	struct rls_kernel *kernel;
	struct rls_event_sink names;
	bool named;
	struct rls_targets *targets;
	size_t place; /* of struct python among a target's states */
	struct rls_interpreter_images images;
	size_t beginning; /* how many were to be looked at again soon, at most */
	void (*found)(void *context, pid_t pid); /* NULL: nobody asks */
	void *found_context;
	uint64_t missed, refused;
};

static void code_free(struct code *code)
{
	if (!code)
		return;
	rls_code_object_release(&code->object);
	free(code);
}

static void forget_codes(struct family *family)
{
	for (size_t i = 0; i < family->codes.capacity; i++)
		code_free(family->codes.entries[i].value);
	rls_index_map_free(&family->codes);
	family->codes_bytes = 0;
}

static void family_leave(struct family *family)
{
	if (!family || --family->members)
		return;
	forget_codes(family);
	free(family);
}

static int family_new(pid_t founder, struct family **out)
{
	struct family *family = calloc(1, sizeof(*family));

	if (!family)
		return -ENOMEM;
	family->members = 1;
	family->founder = founder;
	*out = family;
	return 0;
}

static void python_free(struct python *python)
{
	family_leave(python->family);
	free(python);
}

static void forget(void *context, struct rls_target *target, enum rls_target_over why,
		   uint64_t time_ns)
{
	const struct rls_interpreters *interpreters = context;
	struct python *python = target->state[interpreters->place];

	if (!python)
		return;
	/* At exec the kernel side has set that of the new program. */
	if (why != RLS_TARGET_CLOSED && why != RLS_TARGET_EXECED)
		rls_kernel_set_interpreter(interpreters->kernel, target->pid, NULL);
	target->state[interpreters->place] = NULL;
	python_free(python);
}

/* NULL when it is no target, or nothing is known of it. */
static struct python *python_find(const struct rls_interpreters *interpreters, pid_t pid)
{
	const struct rls_target *target = rls_targets_find(interpreters->targets, pid);

	return target ? target->state[interpreters->place] : NULL;
}

static int python_get(const struct rls_interpreters *interpreters, struct rls_target *target,
		      struct python **out)
{
	if (!target->state[interpreters->place])
		target->state[interpreters->place] = calloc(1, sizeof(struct python));
	*out = target->state[interpreters->place];
	return *out ? 0 : -ENOMEM;
}

static struct rls_wire_interpreter on_the_wire(const struct rls_frame_layout *layout, uint32_t slot,
					       const struct rls_python *found)
{
	uint64_t runtime = layout->runtime_current ? found->runtime : 0;

	return (struct rls_wire_interpreter){
		.slot = slot,
		.code_type = found->code_type,
		.interpreter_next = (uint8_t)layout->interpreter_next,
		.interpreter_threads = (uint8_t)layout->interpreter_threads,
		.thread_next = (uint8_t)layout->thread_next,
		.thread_interpreter = layout->thread_interpreter,
		.thread_c_stack = layout->thread_c_stack,
		.interpreters = runtime ? runtime + layout->runtime_interpreters : 0,
		.holders = {runtime ? runtime + layout->runtime_current : 0,
			    runtime ? runtime + layout->runtime_last_holder : 0},
		.thread_frame = layout->thread_frame,
		.c_frame_frame = layout->c_frame_frame,
		.c_frame_back = layout->c_frame_back,
		.frame_back = layout->frame_back,
		.frame_code = layout->frame_code,
		.frame_instruction = layout->frame_instruction,
		.frame_owner = layout->frame_owner,
		.code_start = layout->code_start,
		.code_first_line = layout->code_first_line,
		.code_file = layout->code_file,
		.code_pointers_more = (layout->code_lines - layout->code_file) / sizeof(uint64_t),
		.owner_of_shims = layout->owner_of_shims,
		.frame_is_entry = layout->frame_is_entry,
		.index_unit_bytes = layout->index_unit_bytes,
	};
}

static void interpreters_refuse(const struct rls_interpreters *interpreters, struct python *python,
				pid_t pid, const struct rls_python *found)
{
	if (!python->refused && interpreters->named)
		rls_warning("the stacks of process %d cannot be walked: its Python is %s%s; its "
			    "samples have no Python functions and lines",
			    pid, found->version, found->free_threaded ? ", free-threaded" : "");
	python->refused = true;
}

/* The interpreter is there, but no thread of it: it is looked at again soon. */
static void begins(struct rls_interpreters *interpreters, struct python *python, uint64_t time_ns)
{
	if (!python->begins_ns)
		python->begins_ns = time_ns;
	interpreters->beginning++;
}

static int set_interpreter(struct rls_interpreters *interpreters, pid_t pid, struct python *python,
			   const struct rls_frame_layout *layout,
			   const struct rls_wire_interpreter *wire)
{
	int r = rls_kernel_set_interpreter(interpreters->kernel, pid, wire);

	if (!r && !python->family)
		r = family_new(pid, &python->family);
	if (r)
		return r;
	python->layout = layout;
	python->wire = *wire;
	python->code_type = wire->code_type;
	return 0;
}

/* What was assumed was wrong: nobody knows this one's stacks. */
static void unset_interpreter(struct rls_interpreters *interpreters, pid_t pid,
			      struct python *python)
{
	if (!python->assumed)
		return;
	rls_kernel_set_interpreter(interpreters->kernel, pid, NULL);
	family_leave(python->family);
	python->family = NULL;
	python->layout = NULL;
	python->assumed = false;
}

/* 0 when its stacks can be walked from now on. */
static int find_interpreter(struct rls_interpreters *interpreters, pid_t pid, struct python *python,
			    uint64_t time_ns)
{
	const struct rls_frame_layout *layout;
	struct rls_wire_interpreter wire;
	struct rls_mappings mappings;
	struct rls_python found;
	uint32_t slot;
	int r = rls_mappings_read(pid, &mappings);

	if (r)
		return r;
	r = rls_python_find(pid, &mappings, &found);
	layout = r ? NULL : rls_frame_layout_of(&found);
	if (!r && !layout && found.version[0]) {
		interpreters_refuse(interpreters, python, pid, &found);
		unset_interpreter(interpreters, pid, python);
	}
	if (!layout)
		r = -ENOENT;
	if (!r) {
		r = rls_frame_slot_find(pid, &found, layout, &slot);
		if (r == -ENOENT)
			begins(interpreters, python, time_ns);
	}
	rls_mappings_release(&mappings);
	if (r)
		return r;
	wire = on_the_wire(layout, slot, &found);
	r = set_interpreter(interpreters, pid, python, layout, &wire);
	if (r)
		return r;
	python->assumed = false;
	interpreters->missed += python->missed;
	python->missed = 0;
	rls_interpreter_images_learn(&interpreters->images, interpreters->kernel, pid, layout,
				     &wire);
	rls_debug("the stacks of process %d are walked as those of Python 3.%u, slot %u", pid,
		  layout->minor, slot);
	if (interpreters->found)
		interpreters->found(interpreters->found_context, pid);
	return 0;
}

static bool is_certain(const struct python *python)
{
	return python->layout && !python->assumed;
}

static bool is_beginning(const struct python *python, uint64_t time_ns)
{
	return !is_certain(python) && python->begins_ns &&
	       time_ns < python->begins_ns + BEGINS_NS_MAX;
}

static void wait_for_next_check(struct python *python, uint64_t time_ns)
{
	if (is_beginning(python, time_ns)) {
		python->wait_ns = CHECK_SOON_NS;
		return;
	}
	python->wait_ns = python->wait_ns ? python->wait_ns * 2 : CHECK_AGAIN_NS;
	if (python->wait_ns > CHECK_AGAIN_MAX_NS)
		python->wait_ns = CHECK_AGAIN_MAX_NS;
}

static int check(struct rls_interpreters *interpreters, struct rls_target *target, uint64_t time_ns)
{
	struct python *python;
	int r = python_get(interpreters, target, &python);

	if (r || is_certain(python) ||
	    (python->wait_ns && time_ns < python->checked_ns + python->wait_ns))
		return r;
	python->checked_ns = time_ns;
	r = find_interpreter(interpreters, target->pid, python, time_ns);
	wait_for_next_check(python, time_ns);
	return r == -ENOMEM ? r : 0;
}

int rls_interpreters_check(struct rls_interpreters *interpreters, pid_t pid, uint64_t time_ns)
{
	struct rls_target *target = rls_targets_find(interpreters->targets, pid);

	return target ? check(interpreters, target, time_ns) : 0;
}

void rls_interpreters_mapped(struct rls_interpreters *interpreters, pid_t pid)
{
	struct python *python = python_find(interpreters, pid);

	if (python)
		python->wait_ns = 0;
}

int rls_interpreters_execed(struct rls_interpreters *interpreters, pid_t pid, uint64_t time_ns)
{
	const struct rls_interpreter_image *image;
	struct rls_target *target = rls_targets_find(interpreters->targets, pid);
	struct python *python;
	int r = target ? python_get(interpreters, target, &python) : -ESRCH;

	if (r)
		return r == -ESRCH ? 0 : r;
	image = rls_interpreter_images_of(&interpreters->images, pid);
	if (image && !python->layout) {
		r = set_interpreter(interpreters, pid, python, image->layout, &image->wire);
		python->assumed = !r;
		begins(interpreters, python, time_ns);
	}
	return r == -ENOMEM ? r : check(interpreters, target, time_ns);
}

int rls_interpreters_tick(struct rls_interpreters *interpreters, uint64_t time_ns)
{
	const struct rls_targets *targets = interpreters->targets;
	bool any = interpreters->beginning != 0;
	int r = 0;

	interpreters->beginning = 0;
	for (size_t i = 0; any && !r && i < targets->count; i++) {
		const struct python *python = targets->all[i]->state[interpreters->place];

		if (!python || !is_beginning(python, time_ns))
			continue;
		r = check(interpreters, targets->all[i], time_ns);
		interpreters->beginning += is_beginning(python, time_ns);
	}
	return r;
}

bool rls_interpreters_knows(const struct rls_interpreters *interpreters, pid_t pid)
{
	const struct python *python = python_find(interpreters, pid);

	return python && python->layout;
}

void rls_interpreters_expect(struct rls_interpreters *interpreters, const char *path)
{
	rls_interpreter_images_expect(&interpreters->images, interpreters->kernel, path,
				      on_the_wire);
}

void rls_interpreters_on_found(struct rls_interpreters *interpreters,
			       void (*found)(void *context, pid_t pid), void *context)
{
	interpreters->found = found;
	interpreters->found_context = context;
}

/* The same for a child, which goes on in its parent's memory. */
static int forked(void *context, const struct rls_target *parent, struct rls_target *child,
		  uint64_t time_ns)
{
	struct rls_interpreters *interpreters = context;
	const struct python *from = parent ? parent->state[interpreters->place] : NULL;
	struct python *python;
	int r;

	if (!from || !from->layout)
		return check(interpreters, child, time_ns);
	r = python_get(interpreters, child, &python);
	if (r || python->layout)
		return r;
	/* The kernel side knows too, unless the parent's was found after the fork. */
	if (rls_kernel_set_interpreter(interpreters->kernel, child->pid, &from->wire))
		return check(interpreters, child, time_ns);
	python->layout = from->layout;
	python->assumed = from->assumed;
	python->begins_ns = from->assumed ? time_ns : 0;
	interpreters->beginning += from->assumed;
	python->wire = from->wire;
	python->code_type = from->code_type;
	python->family = from->family;
	python->family->members++;
	interpreters->missed += python->missed;
	return 0;
}

int rls_interpreters_new(struct rls_kernel *kernel, const struct rls_event_sink *names,
			 struct rls_targets *targets, struct rls_interpreters **out)
{
	struct rls_interpreters *interpreters = calloc(1, sizeof(*interpreters));
	const struct rls_target_observer observer = {forked, forget, interpreters};
	int r = interpreters ? rls_targets_observe(targets, &observer, &interpreters->place)
			     : -ENOMEM;

	if (r) {
		free(interpreters);
		return r;
	}
	interpreters->targets = targets;
	interpreters->kernel = kernel;
	interpreters->named = names != NULL;
	if (names)
		interpreters->names = *names;
	*out = interpreters;
	return 0;
}

void rls_interpreters_free(struct rls_interpreters *interpreters)
{
	if (!interpreters)
		return;
	rls_targets_leave(interpreters->targets, interpreters->place);
	free(interpreters);
}

int rls_interpreters_miss(struct rls_interpreters *interpreters, pid_t pid, uint64_t time_ns)
{
	struct rls_target *target = rls_targets_find(interpreters->targets, pid);
	struct python *python;
	int r = target ? python_get(interpreters, target, &python) : -ESRCH;

	if (r)
		return r == -ESRCH ? 0 : r; /* it has ended since */
	if (python->layout) { /* found since the sample was taken */
		interpreters->missed++;
		return 0;
	}
	python->missed++;
	r = check(interpreters, target, time_ns);
	interpreters->refused += python->refused;
	return r;
}

uint64_t rls_interpreters_missed(const struct rls_interpreters *interpreters)
{
	return interpreters->missed;
}

uint64_t rls_interpreters_refused(const struct rls_interpreters *interpreters)
{
	return interpreters->refused;
}

void rls_interpreters_walk(const struct rls_interpreters *interpreters,
			   struct rls_wire_stack *stack)
{
	const struct python *python = python_find(interpreters, (pid_t)stack->header.pid);
	_cleanup_live_space_ struct rls_live_space live = {.memory = -1};

	stack->frames = 0;
	stack->end = RLS_STACK_NO_INTERPRETER;
	if (!python || !python->layout)
		return;
	rls_live_space_open(&live, (pid_t)stack->header.pid);
	rls_stack_walk(&live.space, &python->wire, stack->thread_pointer, stack);
}

/* Behind __init__, specialised calls of classes have a frame of code that looks after what it
 * returns (3.13's specialize.c). No file is called so. */
static bool is_internal(const struct rls_code_object *code)
{
	return !strcmp(code->file, "__init__") && !strcmp(code->function, "__init__");
}

/* 0; -ENOENT: it is not there, or not what was met there; -ENOMEM. */
static int read_object(pid_t pid, const struct python *python, const struct rls_wire_frame *frame,
		       struct rls_code_object *out)
{
	_cleanup_live_space_ struct rls_live_space live;
	int r;

	rls_live_space_open(&live, pid);
	r = rls_code_object_read(&live.space, python->layout, python->code_type, frame->code, out);
	if (r)
		return r == -ENOMEM ? r : -ENOENT;
	if (out->identity == frame->identity)
		return 0;
	rls_code_object_release(out);
	*out = (struct rls_code_object){0};
	return -ENOENT;
}

/* What cannot be read is remembered too: it would be asked for again and again. */
static int read_code(const struct rls_interpreters *interpreters, pid_t pid,
		     const struct python *python, const struct rls_wire_frame *frame,
		     struct code *code)
{
	int r = read_object(pid, python, frame, &code->object);

	if (r == -ENOENT && python->family->founder != pid)
		r = read_object(python->family->founder, python, frame, &code->object);
	if (r)
		return r == -ENOMEM ? r : 0;
	code->readable = true;
	code->internal = is_internal(&code->object);
	r = rls_emit_intern(&interpreters->names, code->object.function,
			    strlen(code->object.function), &code->function);
	if (!r)
		r = rls_emit_intern(&interpreters->names, code->object.file,
				    strlen(code->object.file), &code->file);
	return r;
}

/* In place of another that was at the address. */
static int add_code(struct rls_interpreters *interpreters, pid_t pid, struct python *python,
		    const struct rls_wire_frame *frame, struct code **out)
{
	struct code *code = calloc(1, sizeof(*code)), *old;
	int r;

	if (python->family->codes_bytes > CODES_BYTES_MAX) {
		forget_codes(python->family);
		*out = NULL;
	}
	old = *out;
	r = code ? read_code(interpreters, pid, python, frame, code) : -ENOMEM;

	if (!r)
		r = rls_index_map_put(&python->family->codes, frame->code, 0, code);
	if (r) {
		code_free(code);
		return r;
	}
	python->family->codes_bytes += sizeof(*code) + code->object.lines_bytes;
	code->identity = frame->identity;
	code->asked = pid;
	if (old)
		python->family->codes_bytes -= sizeof(*old) + old->object.lines_bytes;
	code_free(old);
	*out = code;
	return 0;
}

int rls_interpreters_name(struct rls_interpreters *interpreters, pid_t pid,
			  const struct rls_wire_frame *frame, struct rls_frame *out)
{
	struct python *python = python_find(interpreters, pid);
	struct code *code;
	int r;

	if (!python || !python->layout)
		return -ENOENT;
	code = rls_index_map_get(&python->family->codes, frame->code, 0);
	if (!code || code->identity != frame->identity || (!code->readable && code->asked != pid)) {
		r = add_code(interpreters, pid, python, frame, &code);
		if (r)
			return r;
	}
	if (!code->readable)
		return -ENOENT;
	if (code->internal)
		return 1;
	*out = (struct rls_frame){
		.function = code->function,
		.file = code->file,
		.line = (uint32_t)rls_code_object_line(&code->object, (int32_t)frame->at),
	};
	return 0;
}
