/* The interpreter of a process: where it is and which version. */
#ifndef RLS_INTERPRETER_H
#define RLS_INTERPRETER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/process/mappings.h"

struct rls_python {
	char version[32];           /* "3.11.2"; "3.11" when no more is known; "" : no Python */
	unsigned int major, minor;
	bool free_threaded;
	const struct rls_mapping *mapping; /* its executable mapping: libpython or the executable */
	uint64_t load_bias;
	uint64_t runtime;           /* address of _PyRuntime in the process; 0: unknown */
	uint64_t module_def_type;   /* address of PyModuleDef_Type; 0: unknown */
	uint64_t code_type;         /* address of PyCode_Type; 0: unknown */
	uint64_t dict_type;         /* address of PyDict_Type; 0: unknown */
	bool layout_known;          /* cpython_layout.h holds for it */
};

/* 0, with version "" when the process runs no Python; -errno. out->mapping points into
 * mappings. */
int rls_python_find(pid_t pid, const struct rls_mappings *mappings, struct rls_python *out);

/* "3.11.2 (main, ...) [GCC ...]" somewhere in bytes, as Py_GetVersion keeps it. */
bool rls_python_version_in(const uint8_t *bytes, size_t length, char *version, size_t size_bytes);

#endif
