/* Kernel → user space: the files that a process has mapped (mapped_files.bpf.c), one record for each mapping of one.
 * Compiled by clang -target bpf and by gcc.
 */
#ifndef RLS_WIRE_MAPPED_FILE_H
#define RLS_WIRE_MAPPED_FILE_H

#include "bpf/wire/types.h"

struct rls_wire_mapped_file {
	RLS_U64 start, end; /* addresses in the process */
	RLS_U64 inode; /* of the file that the kernel has there, below any overlay */
	RLS_U32 device; /* its file system's: major << 20 | minor */
	RLS_U32 reserved;
};

#endif
