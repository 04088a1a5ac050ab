/* Follows operations of `with` blocks through the suspensions of generators and coroutines.
 *
 *     with operation("a"):        enter: the innermost generator that runs owns the operation
 *         work()
 *         await something()  ──▶  suspended: left;   resumed: entered again, no new entry
 *         work()
 *
 * CPython keeps the running generators of a thread as a chain, for the sake of exceptions being
 * handled. Where it lies is learnt by looking (rls_follow_learn). sys.monitoring (3.12 and later)
 * calls us at the suspensions of the code that has such blocks. Before 3.12 operations are owned
 * all the same, so that an end of one that is not the innermost is noticed.
 *
 * A generator that is a context manager (contextlib) owns nothing: its `with` is meant for the
 * block of its user. All of this is called with the GIL.
 */
#ifndef RLS_PYTHON_FOLLOW_H
#define RLS_PYTHON_FOLLOW_H

#include <Python.h>
#include <stdbool.h>

#include "rlscope_annotate.h"

/* Who owns an operation that the running code enters; NULL: its thread. Borrowed, only compared. */
const void *rls_follow_owner(void);
/* The owner has entered an operation: its suspensions are watched. 0, or -1 with an exception. */
int rls_follow_begin(const void *owner);
/* Ends an operation that its owner is suspended in; false: there is none. */
bool rls_follow_end_suspended(const void *owner, rlscope_name name);

/* _learn(generator, outer): called inside generator, which runs inside outer. True if known.
 * _learn(contextlib file name, set_local_events or None, tool, events): how to watch. */
PyObject *rls_follow_learn(PyObject *module, PyObject *const *args, Py_ssize_t count);
/* Callbacks of sys.monitoring. */
PyObject *rls_follow_on_yield(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *rls_follow_on_resume(PyObject *module, PyObject *const *args, Py_ssize_t count);

#endif
