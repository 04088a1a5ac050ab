/* Loaded calls: where a library calls a function of libpython by an address that it has loaded from a
 * word before: into a register, one of several by a condition, into its stack frame, or from a table or
 * a variable of its own (code built with -fno-plt, `(method ? PyObject_VectorcallMethod :
 * PyObject_Vectorcall)(…)`, pointers kept).
 *
 * A call is found when each way to it has loaded such a word (pointer_trace.h): a pointer that may be
 * something else too is no callback, for then the count would be wrong.
 */
#ifndef RLS_LOADED_CALLS_H
#define RLS_LOADED_CALLS_H

#include "userspace/discover/callbacks/leads.h"
#include "userspace/elf/elf.h"

/* Of each file, half a second's worth. Extents that name a word take a step for each 16 bytes. */
#define RLS_LOADED_STEPS (1U << 22)
#define RLS_LOADED_TABLES 64

struct rls_loaded_calls {
	struct rls_elf *elf;
	/* What holds the functions' addresses; from rls_loaded_words() on with the library's variables. */
	struct rls_leads words;
	struct rls_leads
		references; /* where code names a word other than by a call or jump through it */
	bool has_landing_pads; /* the library catches C++ exceptions */
	uint64_t steps_left; /* of work on this file, which may be hostile */
	size_t tables_left; /* likewise */
};

/* Adds to words, which hold those that relocations fill, the variables that the library's code fills from
 * them and from nothing else, and takes out those that it fills with something else as well. 0 or -ENOMEM. */
int rls_loaded_words(struct rls_loaded_calls *calls);

/* After that: adds to places the calls and tail jumps by a loaded address. 0 or -ENOMEM. */
int rls_loaded_places(struct rls_loaded_calls *calls, struct rls_leads *places);

#endif
