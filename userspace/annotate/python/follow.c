#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03080000
#include "userspace/annotate/python/follow.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define THREAD_WORDS 40 /* of a thread's state, in which the chain's beginning is looked for */
#define GENERATOR_BYTES 256 /* in which its link is; a generator's frame comes after it */
#define LINK_WORDS 4
#define CODE_WORDS 24 /* of a generator, in which its code is */
#define STATE_BYTES 4096 /* no thread state is larger: a link in it is the chain's end */
#define CHAIN_MAX 64
#define SLOTS 1024 /* a power of two */
#define CODES 256 /* the same */

/* Of owners that are suspended, by address. */
struct suspended {
	struct suspended *next;
	const void *owner;
	unsigned int count;
	rlscope_name names[RLSCOPE_SUSPENDED_MAX];
};

/* What is known of generators with this code. */
struct followed_code {
	PyObject *code; /* owned, so that no other has its address; NULL: free */
	bool manager; /* they are context managers */
	bool watched;
};

static struct {
	bool known;
	size_t first; /* where in the thread's state the chain begins */
	size_t link; /* where in a generator its link is */
	size_t outer; /* where in a link the next one's address is */
	size_t code; /* where in a generator its code's address is */
	PyTypeObject *types[3]; /* generator, coroutine, asynchronous generator */
	const char *frames[3]; /* their attributes */
	PyObject *contextlib; /* name of its file */
	PyObject *watch, *tool, *events; /* set_local_events(tool, code, events) */
	struct followed_code seen[CODES];
	struct suspended *slots[SLOTS];
	unsigned int suspended;
} follow = {
	.frames = {"gi_frame", "cr_frame", "ag_frame"},
};

/* ---- the chain ---- */

static uintptr_t word(uintptr_t address)
{
	return *(const uintptr_t *)address;
}

/* 0: no generator runs. */
static uintptr_t first_link(void)
{
	uintptr_t state = (uintptr_t)PyThreadState_Get(), link;

	if (!follow.known)
		return 0;
	link = word(state + follow.first);
	return link - state < STATE_BYTES ? 0 : link;
}

static uintptr_t outer_link(uintptr_t link)
{
	uintptr_t state = (uintptr_t)PyThreadState_Get(), outer = word(link + follow.outer);

	return outer - state < STATE_BYTES ? 0 : outer;
}

static int type_of(const PyObject *generator)
{
	for (int i = 0; i < 3; i++) {
		if (Py_TYPE(generator) == follow.types[i])
			return i;
	}
	return -1;
}

static bool is_within(uintptr_t address, const PyObject *generator)
{
	return address - (uintptr_t)generator < GENERATOR_BYTES;
}

/* The address may carry marks in its lowest bits. */
static PyObject *code_of(const PyObject *generator)
{
	return (PyObject *)(word((uintptr_t)generator + follow.code) & ~(uintptr_t)3);
}

static bool learn_code(PyObject *generator)
{
	PyObject *code = PyObject_GetAttrString(generator, "gi_code");

	for (size_t i = 2; code && i < CODE_WORDS; i++) {
		follow.code = i * sizeof(uintptr_t);
		if (code_of(generator) == code) {
			Py_DECREF(code);
			return true;
		}
	}
	Py_XDECREF(code);
	PyErr_Clear();
	return false;
}

static bool learn_chain(PyObject *generator, PyObject *outer)
{
	uintptr_t state = (uintptr_t)PyThreadState_Get();

	for (size_t i = 0; i < THREAD_WORDS; i++) {
		uintptr_t link = word(state + i * sizeof(uintptr_t));
		size_t offset = link - (uintptr_t)generator;

		if (!is_within(link, generator) || !offset)
			continue;
		for (size_t k = 0; k < LINK_WORDS; k++) {
			if (word(link + k * sizeof(uintptr_t)) != (uintptr_t)outer + offset)
				continue;
			follow.first = i * sizeof(uintptr_t);
			follow.link = offset;
			follow.outer = k * sizeof(uintptr_t);
			follow.known = learn_code(generator);
			return follow.known;
		}
	}
	return false;
}

/* ---- context managers ---- */

static bool is_contextlib_code(PyObject *code)
{
	PyObject *file = code ? PyObject_GetAttrString(code, "co_filename") : NULL;
	bool is = file && follow.contextlib && PyUnicode_Compare(file, follow.contextlib) == 0;

	Py_XDECREF(file);
	return is;
}

static bool is_called_by_contextlib(PyObject *generator, int type)
{
	PyObject *frame = PyObject_GetAttrString(generator, follow.frames[type]), *caller = NULL,
		 *code = NULL;
	bool is;

	if (frame && frame != Py_None)
		caller = PyObject_GetAttrString(frame, "f_back");
	if (caller && caller != Py_None)
		code = PyObject_GetAttrString(caller, "f_code");
	is = is_contextlib_code(code);
	Py_XDECREF(code);
	Py_XDECREF(caller);
	Py_XDECREF(frame);
	return is;
}

static bool is_manager(PyObject *generator, int type, PyObject *code)
{
	PyObject *error, *value, *traceback;
	bool is;

	PyErr_Fetch(&error, &value, &traceback);
	/* A coroutine function is none. */
	is = is_contextlib_code(code) || (type != 1 && is_called_by_contextlib(generator, type));
	PyErr_Restore(error, value, traceback);
	return is;
}

/* A function is used as a context manager or it is not: of its generators the first decides. */
static struct followed_code *seen_code(PyObject *generator, int type)
{
	PyObject *code = code_of(generator);
	struct followed_code *seen = &follow.seen[((uintptr_t)code >> 5) % CODES];
	PyObject *before = seen->code;

	if (before == code)
		return seen;
	*seen = (struct followed_code){.code = code, .manager = is_manager(generator, type, code)};
	Py_INCREF(code);
	Py_XDECREF(before);
	return seen;
}

static const void *find_owner(uintptr_t link)
{
	for (int i = 0; i < CHAIN_MAX && link; i++, link = outer_link(link)) {
		PyObject *generator = (PyObject *)(link - follow.link);
		int type = type_of(generator);

		if (type < 0)
			break;
		if (!seen_code(generator, type)->manager)
			return generator;
	}
	return NULL;
}

const void *rls_follow_owner(void)
{
	uintptr_t link = first_link();

	return link ? find_owner(link) : NULL;
}

/* ---- suspended owners ---- */

static struct suspended **slot_of(const void *owner)
{
	return &follow.slots[((uintptr_t)owner >> 4) * 0x9e3779b97f4a7c15ULL >> 54 & (SLOTS - 1)];
}

static struct suspended **find_suspended(const void *owner)
{
	struct suspended **link = slot_of(owner);

	while (*link && (*link)->owner != owner)
		link = &(*link)->next;
	return link;
}

static void forget_suspended(struct suspended **link)
{
	struct suspended *found = *link;

	*link = found->next;
	free(found);
	follow.suspended--;
}

bool rls_follow_end_suspended(const void *owner, rlscope_name name)
{
	struct suspended **link = find_suspended(owner), *found = *link;

	for (unsigned int i = found ? found->count : 0; i-- > 0;) {
		if (found->names[i] != name)
			continue;
		memmove(&found->names[i], &found->names[i + 1],
			(--found->count - i) * sizeof(found->names[0]));
		if (!found->count)
			forget_suspended(link);
		return true;
	}
	return false;
}

static const void *running(void)
{
	uintptr_t link = first_link();

	return link ? (const void *)(link - follow.link) : NULL;
}

PyObject *rls_follow_on_yield(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
	rlscope_name names[RLSCOPE_SUSPENDED_MAX];
	const void *owner = running();
	unsigned int left = owner ? rlscope_operation_suspend(owner, names) : 0;
	struct suspended *suspended;

	if (left) {
		suspended = malloc(sizeof(*suspended));
		if (!suspended)
			return PyErr_NoMemory();
		*suspended =
			(struct suspended){.next = *slot_of(owner), .owner = owner, .count = left};
		memcpy(suspended->names, names, left * sizeof(names[0]));
		*slot_of(owner) = suspended;
		follow.suspended++;
	}
	Py_INCREF(Py_None);
	return Py_None;
}

PyObject *rls_follow_on_resume(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
	const void *owner = follow.suspended ? running() : NULL;
	struct suspended **link = owner ? find_suspended(owner) : NULL;

	if (link && *link) {
		rlscope_operation_resume(owner, (*link)->names, (*link)->count);
		forget_suspended(link);
	}
	Py_INCREF(Py_None);
	return Py_None;
}

/* ---- watching ---- */

int rls_follow_begin(const void *owner)
{
	PyObject *generator = (PyObject *)owner, *done;
	struct followed_code *seen = seen_code(generator, type_of(generator));
	struct suspended **stale = follow.suspended ? find_suspended(owner) : NULL;

	if (stale && *stale) /* it runs: one of its address has gone without an end */
		forget_suspended(stale);
	if (!follow.watch || seen->watched)
		return 0;
	seen->watched = true;
	done = PyObject_CallFunctionObjArgs(follow.watch, follow.tool, seen->code, follow.events,
					    NULL);
	if (!done)
		return -1;
	Py_DECREF(done);
	return 0;
}

static void keep(PyObject **into, PyObject *object)
{
	Py_INCREF(object);
	Py_XDECREF(*into);
	*into = object;
}

PyObject *rls_follow_learn(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
	if (count == 2)
		return PyBool_FromLong(learn_chain(args[0], args[1]));
	if (count != 5) {
		PyErr_SetString(PyExc_TypeError, "_learn takes 2 or 5 arguments");
		return NULL;
	}
	for (int i = 0; i < 3; i++)
		follow.types[i] = (PyTypeObject *)PyTuple_GetItem(args[0], i);
	keep(&follow.contextlib, args[1]);
	if (args[2] != Py_None) {
		keep(&follow.tool, args[3]);
		keep(&follow.events, args[4]);
		keep(&follow.watch, args[2]);
	}
	Py_INCREF(Py_None);
	return Py_None;
}
