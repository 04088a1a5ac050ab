/* Python: an interpreter that was found in a process (interpreter.h finds it). */
#ifndef RLS_PYTHON_H
#define RLS_PYTHON_H

#include <stdbool.h>
#include <stdint.h>

#include "userspace/process/mappings.h"

struct rls_python {
	char version[32]; /* "3.11.2"; "3.11" when no more is known; "" : no Python */
	unsigned int major, minor;
	bool free_threaded;
	const struct rls_mapping *mapping; /* its executable mapping: libpython or the executable */
	uint64_t load_bias;
	uint64_t runtime; /* address of _PyRuntime in the process; 0: unknown */
	uint64_t module_def_type; /* address of PyModuleDef_Type; 0: unknown */
	uint64_t code_type; /* address of PyCode_Type; 0: unknown */
	uint64_t dict_type; /* address of PyDict_Type; 0: unknown */
	bool layout_known; /* cpython_layout.h holds for it */
};

#endif
