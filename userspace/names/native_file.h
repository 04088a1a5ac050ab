/* Native file: a mapped executable or library, for naming addresses in it.
 *
 * Names are those of its symbol tables; where it has none (stripped), its functions are still
 * told apart by the extents that unwinders need, under their address.
 */
#ifndef RLS_NATIVE_FILE_H
#define RLS_NATIVE_FILE_H

#include <stdbool.h>
#include <stdint.h>

struct rls_native_file;

/* path opens it from here. 0; -ENOEXEC when it is no ELF that is understood; -errno. */
int rls_native_file_open(const char *path, struct rls_native_file **out);
void rls_native_file_close(struct rls_native_file *file);

/* Address in the file of what is mapped from this offset: 0 or -ERANGE. */
int rls_native_file_vaddr(const struct rls_native_file *file, uint64_t file_offset, uint64_t *out);

/* The function holding vaddr: its name, or "" for one without; *start is its address. The name
 * is the file's, as long as that is open. */
const char *rls_native_file_function(struct rls_native_file *file, uint64_t vaddr,
				     uint64_t *start);

/* Whether it is a Python interpreter, and then whether vaddr is in its evaluation loop. */
bool rls_native_file_is_interpreter(const struct rls_native_file *file);
bool rls_native_file_evaluates(const struct rls_native_file *file, uint64_t vaddr);

#endif
