/* Callbacks: where a library calls back into Python.
 *
 * Method: the library's relocations tell which of its words (GOT entries, and pointers in
 * its data) hold functions of libpython that run Python code; the PLT stubs that jump through
 * such a word are recognised by their bytes; then the executable segments are searched for
 * calls and tail jumps to a stub or through a word. Each find is confirmed by decoding its
 * .eh_frame extent from the start, so bytes that merely look like a call are left out (and so
 * is code that has no .eh_frame). Functions that load such a word otherwise are decoded, and
 * the values of their indirect calls and jumps followed back (loaded_calls.h): a call by a
 * loaded address counts where each way to it has loaded one of these functions.
 *
 * Which functions count as calling Python is a choice between truth and noise:
 *
 *   CALLING   call an object, evaluate code, import, or resume an iterator. One hit is one
 *             callback as its author thinks of it: an extension that calls a Python
 *             function k times makes k transitions. The default.
 *   PROTOCOL  attributes, items, comparison, conversion, arithmetic, iter(): they run
 *             Python code only for objects whose class defines it in Python, and are
 *             mostly answered in C within 100 ns, less than a tenth of the two probes they
 *             would cost. Traced, each would be a transition that nobody calls a callback;
 *             so only on request. Untraced, a Python property read by C counts as the
 *             library's time.
 *
 * Measured on Stable-Baselines3's PPO (PyTorch 2.15, MuJoCo 4.0, CPython 3.11), hits per
 * environment step: libtorch_python CALLING 9 (PyIter_Next 5, PyObject_CallFunctionObjArgs
 * 4), PROTOCOL 85 (PyObject_IsInstance 80); MuJoCo's modules 0; NumPy, which has no role
 * unless the user gives it one, 20 and 29. At two probes of 0.65 us a hit, torch's PROTOCOL
 * would cost a sixth of that job's time, its CALLING 2 %.
 *
 * _PyObject_MakeTpCall counts as PROTOCOL: it is the inline vectorcall's way for types and
 * other callables without a vectorcall. ctypes makes every pointer argument of a callback by it,
 * and a library that reaches Python code by it is one of rls_calls_python_inline anyway.
 *
 * In neither: _Py_Dealloc and PyErr_* (hot, and Python code only in a finaliser), *_Check.
 *
 * Not seen either way: the static inline vectorcall of CPython 3.8's to 3.10's headers and of
 * Cython, which calls what the object holds (rls_calls_python_inline); conditional tail jumps; a
 * libpython linked into the caller; and of loaded addresses those
 *   - that may be something else too on some way, or belong to another family;
 *   - got by dlsym(), passed as an argument, or read through a pointer that is not always the
 *     same address (a table of another library, as a nanobind backend of its own hands out);
 *   - in a table picked from by an index, unless what follows the table is no pointer;
 *   - in the ninth or a later word of a structure that is named by its beginning alone;
 *   - kept over a jump into the function's split-off cold part, or in C++ over a catch.
 * A variable of the library counts by what its own code stores there by name: one that is changed
 * through its address would be miscounted.
 *
 * ctypes: _ctypes enters a CFUNCTYPE callback by PyObject_CallObject (3.8 to 3.10) or
 * PyObject_Vectorcall (from 3.11 on), both through its PLT, so rls_find_callbacks on that
 * module is complete for it, though it imports the names of the inline way as well:
 * qsort() with a Python comparison gave exactly one CALLING hit per comparison on 3.8.18,
 * 3.9.18, 3.10.13, 3.11.7, 3.12.1, 3.13.0 and Debian's 3.11.2. The conversion of a
 * callback's arguments and result counts as its caller's time.
 */
#ifndef RLS_CALLBACKS_H
#define RLS_CALLBACKS_H

#include <stdbool.h>
#include <stddef.h>

#include "userspace/discover/roles/boundary.h"
#include "userspace/elf/elf.h"

enum rls_callback_family {
	RLS_CALLBACKS_CALLING = 1 << 0,
	RLS_CALLBACKS_PROTOCOL = 1 << 1,
};

/* The library's callbacks of these families, or-ed, as RLS_BOUNDARY_CALLBACK_CALL and
 * _JUMP: sorted by vaddr, unique, named after the libpython function, size_bytes the
 * instruction's own. The array is malloc'd and each name too: rls_callbacks_free.
 * 0 or -ENOMEM; on failure the outputs are untouched. */
int rls_find_callbacks_of(struct rls_elf *elf, unsigned int families,
			  struct rls_boundary_function **out, size_t *count);
/* Of the default family. */
int rls_find_callbacks(struct rls_elf *elf, struct rls_boundary_function **out, size_t *count);
void rls_callbacks_free(struct rls_boundary_function *functions, size_t count);

/* The families a function of libpython belongs to, or 0. */
unsigned int rls_callback_families(const char *symbol);

/* Whether the library can call Python objects without a PLT call: it imports the helpers of
 * the inline vectorcall, or is a Cython module. For such a library only a probe on
 * the interpreter's own entry is complete (rls_find_eval_entry), at many times the hits. */
bool rls_calls_python_inline(const struct rls_elf *elf);

/* The interpreter's eval loop, in libpython or a static python. Entered for every Python call
 * up to 3.10, and on every entry from C from 3.11 on. The name is owned by *out.
 * 0, -ENOENT or -ENOMEM. */
int rls_find_eval_entry(const struct rls_elf *python, struct rls_boundary_function *out);

#endif
