/* Native file: a mapped executable or library, for naming addresses in it.
 *
 * Names come from its symbol tables or, if it was stripped, from a debug file (debug_file.h).
 * PLT stubs are named after what they jump to (plt.h). Functions without a name are shown by
 * their address; the extents for unwinders still separate them.
 */
#ifndef RLS_NATIVE_FILE_H
#define RLS_NATIVE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/python/evaluation.h"

#define RLS_VDSO_PATH "[vdso]" /* as mappings call it */

struct rls_native_file;

/* path opens it from here; the process sees it at seen_path, and its debug file from there
 * (pid 0: so do we). 0; -ENOEXEC when it is no ELF that is understood; -errno. */
int rls_native_file_open(const char *path, pid_t pid, const char *seen_path,
			 struct rls_native_file **out);
/* The library that the kernel maps into every process. 0 or -errno. */
int rls_native_file_open_vdso(struct rls_native_file **out);
void rls_native_file_close(struct rls_native_file *file);

/* Reads its names now, which the first question does else: 0.2 s for PyTorch's. */
void rls_native_file_prepare(struct rls_native_file *file);

/* Address in the file of what is mapped from this offset: 0 or -ERANGE. */
int rls_native_file_vaddr(const struct rls_native_file *file, uint64_t file_offset, uint64_t *out);

/* From the stack pointer up to behind the return address, as rls_elf_frame_bytes. 0 or -ENOENT. */
int rls_native_file_frame_bytes(const struct rls_native_file *file, uint64_t vaddr, uint64_t *out);

/* The function holding vaddr: its name, or "" for one without; *start is its address. The name
 * is the file's, as long as that is open. */
const char *rls_native_file_function(struct rls_native_file *file, uint64_t vaddr, uint64_t *start);

/* Whether it is a Python interpreter, and then whether vaddr is in its evaluation loop (or, in
 * builds without a loop, the code of an instruction). */
bool rls_native_file_is_interpreter(const struct rls_native_file *file);
bool rls_native_file_evaluates(struct rls_native_file *file, uint64_t vaddr);
/* Its loop, all the parts of it, by offsets in the file; empty when unknown. */
void rls_native_file_evaluation(const struct rls_native_file *file, struct rls_evaluation *out);
/* Whether it has no loop and has lost the names of what it has instead: which code evaluates is
 * then unknown. */
bool rls_native_file_hides_evaluation(struct rls_native_file *file);

#endif
