/* Boundary functions: what discovery finds and the planner turns into sites.
 *
 * A boundary function is one where Python enters a library with a role, a CUDA entry
 * point, or a place where such a library calls back into Python (doc/architecture.md,
 * "Finding the boundary"). All addresses are ELF virtual addresses of the library's file,
 * so they hold for every process that maps it.
 */
#ifndef RLS_BOUNDARY_H
#define RLS_BOUNDARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "analysis/event/category.h"

enum rls_role {
	RLS_ROLE_NONE = 0,
	RLS_ROLE_PYTHON,
	RLS_ROLE_SIMULATOR,
	RLS_ROLE_BACKEND,
	RLS_ROLE_CUDA,
	RLS_ROLE_NATIVE, /* named by --native: probed, but with no role of its own */
	RLS_ROLE_MAX,
};

const char *rls_role_name(enum rls_role role);
/* The category a thread is in while it executes a library of this role. */
enum rls_category rls_role_category(enum rls_role role);

/* Where a function was found; a function may have several sources. */
enum rls_boundary_source {
	RLS_SOURCE_SYMBOL = 1 << 0, /* exported symbol */
	RLS_SOURCE_METHOD_FILE = 1 << 1, /* PyMethodDef in the file's relocated data */
	RLS_SOURCE_METHOD_LIVE = 1 << 2, /* PyMethodDef in the process's memory */
	RLS_SOURCE_SLOT = 1 << 3, /* type slot or vectorcall */
	RLS_SOURCE_GETTER = 1 << 4, /* PyGetSetDef get or set */
	RLS_SOURCE_CALLBACK = 1 << 5, /* call out of the library into Python */
};

/* How control reaches it. This decides what a first hit says about the caller, and how the
 * end of the call may be probed. */
enum rls_boundary_kind {
	RLS_BOUNDARY_PYTHON_CALLS, /* only the interpreter calls it, through a PyMethodDef, slot or
	                             * getter: no C++ exception may leave it, a return probe is safe */
	RLS_BOUNDARY_DROPPED, /* tp_dealloc: whoever drops the last reference to an object ends up
	                             * here; no C++ exception may leave it either */
	RLS_BOUNDARY_EXPORTED, /* anyone may call it, an exception may leave it unless the
	                             * library cannot throw */
	RLS_BOUNDARY_CALLBACK_CALL, /* vaddr is a `call` instruction, direct or indirect, inside the library
	                             * that enters the interpreter */
	RLS_BOUNDARY_CALLBACK_JUMP, /* vaddr is a tail `jmp` that enters the interpreter */
	RLS_BOUNDARY_CALLBACK_ENTRY, /* vaddr is a function of libpython that enters the interpreter
	                             * (eval loop, PyGILState_Ensure family): category python */
};

struct rls_boundary_function {
	uint64_t vaddr;
	uint64_t size_bytes; /* extent from symbol or FDE; 0 when unknown */
	char *name; /* "torch._C._nn.linear", "mj_step", "tp_call of X"; owned */
	unsigned int sources; /* enum rls_boundary_source, or-ed */
	enum rls_boundary_kind kind;
};

/* One library file, as one or more processes map it. */
struct rls_library {
	dev_t device; /* as rls_mapping_locate has it, never of /proc/PID/maps: they differ on overlayfs */
	ino_t inode;
	char *path; /* as the target sees it; owned */
	char *host_path; /* opens from here: /proc/PID/root/... or map_files; owned */
	enum rls_role role;
	uint64_t load_bias; /* runtime address = vaddr + load_bias, in the process looked at */
	bool may_throw; /* rls_library_may_throw() */
	bool may_switch_stacks; /* imports swapcontext or the like: the kernel takes its return
	                             * probes for left behind when the stack pointer moves to another
	                             * stack, and a return to one that it dropped kills the target */
	struct rls_boundary_function *functions; /* sorted by vaddr, unique; owned */
	size_t function_count;
};

#endif
