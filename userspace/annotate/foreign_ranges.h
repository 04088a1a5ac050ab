/* Foreign ranges: operations that a running, unmodified process already has.
 *
 * Where a thread can be watched entering and leaving (1) torch.profiler.record_function and
 * (2) NVTX push/pop ranges, with no profiler of PyTorch's or NVIDIA's active. For each
 * site: where it is, what kind of edge it is, and which argument registers hold the name
 * and the token that pairs a push with its pop.
 *
 * 1. record_function
 * ------------------
 *
 *   with torch.profiler.record_function("x"):          Python, torch/autograd/profiler.py
 *        │ __enter__                     __exit__ │
 *        ▼                                        ▼
 *   torch.ops.profiler.               torch.ops.profiler.
 *     _record_function_enter[_new]      _record_function_exit
 *        │ new:     record_function_enter_new(name, args)         exported
 *        │ legacy:  record_function_enter_legacy(name, args)      local     │
 *        ▼                                                                  ▼
 *   new at::RecordFunction(scope USER_SCOPE)                 at::RecordFunction::end()
 *        ▼                                                       exported
 *   record_function_enter(name, args, RecordFunction&)       local
 *        └─▶ RecordFunction::before() only if a profiler is active
 *
 * Seen with gdb on PyTorch 2.15 (wheel: symbols, uses _new) and Debian's 1.13 (stripped,
 * uses the legacy op), no profiler active: one entry per range, and end() twice, once by
 * the exit op, once more by ~RecordFunction when the Python object goes.
 *
 * The obvious probes are wrong or expensive:
 *   - record_function_enter_new alone misses the legacy op, and at its entry the
 *     RecordFunction does not exist yet (rdi is the hidden return slot, rsi the name).
 *   - end() begins with `cmpb $0, 0x68(%rdi)`, single-stepped at 9 us, and is also reached
 *     from the destructor of every RecordFunction on a stack: 5 more hits in one small
 *     forward, backward and optimizer step, and every operator while torch.profiler runs.
 *
 * So we probe the *calls*, which the kernel emulates (0.65 us) and which only the user's
 * ranges pass. All of the code above is one translation unit (record_function_ops.cpp),
 * hence close together: within NEARBY bytes of the exported record_function_enter_new,
 *   - the call that follows its call of RecordFunction's constructor tells where the local
 *     record_function_enter is; every direct call to that is a push, with the
 *     const std::string * in rdi and the RecordFunction * in rdx;
 *   - every direct call or tail jump to end() (through its PLT stub) is a pop, with the
 *     RecordFunction * in rdi.
 * Both torches above give 2 pushes (new, legacy) and 4 or 5 pops. Where the compiler has
 * inlined record_function_enter, the entry of record_function_enter_new is the push, with
 * the name in rsi and no token.
 *
 * Pairing: by token, on the same thread. A pop whose token is not open there is to be
 * ignored: it is a destructor's, or an asynchronous range that ended on another thread
 * (_call_end_callbacks_on_future). A push whose token is open already closes that range
 * first, as the address was used again. With torch.profiler active nothing changes.
 *
 * Not taken: _RecordFunctionFast, made by torch.compile's code for itself. It keeps its
 * name in a Python object, and its ranges are not the user's.
 *
 * std::string (libstdc++, both ABI's since GCC 5): char *data at 0, uint64_t length at 8;
 * short ones point into themselves, at 16. Nothing else need be known.
 *
 * PyTorch opens ranges of its own by the same function ("Optimizer.step#Adam.step" in every
 * training loop). As the innermost operation wins they would hide what the user wrote:
 * rls_range_is_library_own tells them by name.
 *
 * 2. NVTX
 * -------
 * Libraries that export NVTX as functions (libnvToolsExt.so.1 of CUDA <= 12, used by
 * PyTorch up to 2.x of those; libnvtx3interop.so.1) are probed at the functions' entries.
 * They keep no object per range: no token, a pop ends the innermost range of its thread.
 * nvtxEventAttributes_t: int32 messageType at 32 (1 char *, 2 wchar_t *, 3 a registered
 * string's handle, which tells nothing from outside), the message at 40, after checking
 * uint16 size (at 2) >= 48.
 *
 * NVTX 3 itself is header-only. Its push is a test of a function pointer, inlined, and does
 * nothing when no tool was named at start: PyTorch 2.15's libtorch_python.so and the PyPI
 * nvtx module have no function left to probe. For those the process must have been started
 * with NVTX_INJECTION64_PATH=/.../librlscope_annotate.so (nvtx.c), as `run` does; their
 * ranges then are operations like any other.
 */
#ifndef RLS_FOREIGN_RANGES_H
#define RLS_FOREIGN_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "userspace/elf/elf.h"

/* Numbers are handed to the kernel side: append only. */
enum rls_range_kind {
	RLS_RANGE_PUSH_STD_STRING = 1, /* const std::string * */
	RLS_RANGE_PUSH_CSTR = 2, /* const char *, NUL-terminated */
	RLS_RANGE_PUSH_WCSTR = 3, /* const wchar_t *, UTF-32, NUL-terminated */
	RLS_RANGE_PUSH_NVTX_ATTRIBUTES = 4, /* const nvtxEventAttributes_t * */
	RLS_RANGE_POP = 5,
};

/* Index of an argument register: rdi, rsi, rdx, rcx, r8, r9. */
#define RLS_RANGE_NO_ARGUMENT 0xff

struct rls_range_site {
	uint64_t file_offset; /* where the uprobe goes */
	uint64_t vaddr;
	enum rls_range_kind kind;
	uint8_t name_argument; /* PUSH: the register that holds the name */
	uint8_t token_argument; /* the one that holds what pairs push and pop, or
	                                 * RLS_RANGE_NO_ARGUMENT: the innermost */
};

#define RLS_RANGE_SITES_MAX 32

/* Whether a library of this file name can have sites: a cheap test before opening it. */
bool rls_range_library(const char *file_name);

/* The sites in a library: their number, 0 when it has none of what is known here. Pushes
 * without pops, or the reverse, are never given. */
size_t rls_range_sites(struct rls_elf *elf, struct rls_range_site sites[RLS_RANGE_SITES_MAX]);

/* Whether a range of this name is the framework's own and not the user's. */
bool rls_range_is_library_own(const char *name);

#endif
