/* What the parts of one ground-truth extension share.
 *
 * Every function Python can enter says so with truth_enter(), and every call out of the
 * module with truth_leave(): the counters, kept per thread, are the target's own proof of
 * the numbers that kinds.py claims by construction.
 */
#ifndef TRUTH_H
#define TRUTH_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

struct truth_counts {
	uint64_t entries; /* from Python into this module */
	uint64_t callouts; /* from this module into Python */
	uint64_t crossings; /* from this module into another library with a role */
};

/* initial-exec: one instruction to reach, so that the smallest functions stay small. */
extern __thread struct truth_counts truth_counts
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

static inline void truth_enter(void)
{
	truth_counts.entries++;
}

static inline void truth_leave(void)
{
	truth_counts.callouts++;
}

/* 3.8's PyMODINIT_FUNC leaves visibility to the compiler's options. */
#define TRUTH_INIT __attribute__((visibility("default"))) PyMODINIT_FUNC

/* truthsim's parts; each returns 0 or -1 with a Python error set. */
int truth_methods_add(PyObject *module);
int truth_static_types_add(PyObject *module);
int truth_heap_types_add(PyObject *module);
int truth_callbacks_add(PyObject *module);

/* Ways into Python by a loaded address (truthsim_loaded.c), for truthsim_callbacks.c's table. */
PyObject *truth_loaded_either(PyObject *target);
PyObject *truth_loaded_picked(PyObject *target);
PyObject *truth_loaded_either_jump(PyObject *target);
PyObject *truth_loaded_kept(PyObject *target);
PyObject *truth_loaded_frame(PyObject *target);
PyObject *truth_loaded_variable(PyObject *target);
PyObject *truth_loaded_structure(PyObject *target);
PyObject *truth_loaded_table(PyObject *target);
PyObject *truth_loaded_perhaps(PyObject *target);

#endif
