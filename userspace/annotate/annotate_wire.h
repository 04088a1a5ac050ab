/* Annotation wire format: what librlscope_annotate.so writes into its process's memory for readers.
 *
 * Nothing here traps: an operation edge is a store into a per-thread ring. Readers are
 * (1) the BPF programs, running on that very thread at its next probe hit, and (2) the
 * recorder, from the process's memory, when recording starts, stops or a thread idles.
 *
 *     exported symbol rlscope_annotate_descriptor
 *            │ thread_pointer_offset
 *            ▼
 *     fsbase + offset ──▶ struct rls_thread_record * (NULL until the thread annotates)
 *                                 │ edges[head % RLS_EDGE_RING]
 *                                 ▼
 *                          name: struct rls_name * (interned, never freed)
 *
 * Compiled by gcc for the library and the recorder and by clang -target bpf; sizes and
 * offsets are asserted. All of it is untrusted input to a reader.
 */
#ifndef RLS_ANNOTATE_WIRE_H
#define RLS_ANNOTATE_WIRE_H

#ifndef __VMLINUX_H__
#include <stddef.h>
#include <stdint.h>
typedef uint32_t rls_u32;
typedef uint64_t rls_u64;
typedef uint16_t rls_u16;
typedef uint8_t rls_u8;
#else
typedef __u32 rls_u32;
typedef __u64 rls_u64;
typedef __u16 rls_u16;
typedef __u8 rls_u8;
#endif

#define RLS_ANNOTATE_MAGIC 0x31414e4e41534c52ULL /* "RLSANNA1" */
#define RLS_ANNOTATE_VERSION 1
#define RLS_EDGE_RING 256 /* edges kept per thread; a power of two */
#define RLS_EDGE_FLUSH 64 /* every so many edges the library calls its flush site */
#define RLS_STACK_MAX 64 /* operations distinguished per thread */
#define RLS_NAME_BYTES 128 /* longest name kept, NUL included */

#define RLS_NAME_STANDS_FOR_OTHERS 1 /* a flag: of all names for which there is no room */

/* One interned name. Immutable once its address has been published. */
struct rls_name {
	rls_u32 length; /* bytes of text, NUL excluded, < RLS_NAME_BYTES */
	rls_u32 flags;
	char text[RLS_NAME_BYTES];
};

enum rls_edge_kind {
	RLS_EDGE_PUSH = 1, /* name: the operation entered */
	RLS_EDGE_POP = 2, /* name: the operation that is innermost now, or 0 */
	RLS_EDGE_PHASE = 3, /* name: the process's phase from here on */
	RLS_EDGE_PROCESS_NAME = 4, /* name: what the user calls this process */
};

enum rls_edge_flag {
	RLS_EDGE_RESUMED = 1, /* PUSH: it was left when its coroutine or generator was suspended */
	RLS_EDGE_DISORDER = 2, /* an operation was ended that was not the innermost, or not open */
};

struct rls_edge {
	rls_u64 time_ns; /* CLOCK_MONOTONIC */
	rls_u64 name; /* address of a struct rls_name, or 0 */
	rls_u16 kind; /* enum rls_edge_kind */
	rls_u16 depth; /* operation depth after the edge (may exceed RLS_STACK_MAX) */
	rls_u32 flags; /* enum rls_edge_flag */
};

/* One per annotated thread. Written by its own thread only; head is stored last, with
 * release order. Slot i of edges holds edge number i, i + RLS_EDGE_RING, ...
 *
 * On the thread itself all of it is consistent at every probe hit outside the library. A
 * reader on another thread copies the record and then reads head again: of the copy, the
 * edges numbered above (head read last) - RLS_EDGE_RING are intact, the one below those may
 * be half overwritten; depth and stack may be one edge ahead of head, which shows in
 * edges[head - 1].depth (PHASE and PROCESS_NAME carry the depth too).
 *
 * Beyond RLS_STACK_MAX the depth goes on counting, a PUSH still carries its name, and a POP
 * to such a depth carries the name of the deepest operation that has a slot. The pages are
 * unmapped when the thread ends, after the pointer to them has been cleared. After fork the
 * child's record has the child's tid and keeps the older edges, those of the parent. */
struct rls_thread_record {
	rls_u64 head; /* number of edges ever written */
	rls_u32 tid; /* as the thread itself sees it (its pid namespace) */
	rls_u32 depth; /* operation depth now */
	rls_u64 stack[RLS_STACK_MAX]; /* names, outermost first */
	struct rls_edge edges[RLS_EDGE_RING];
};

/* The exported object rlscope_annotate_descriptor. Also reachable without symbols by magic. */
struct rls_annotate_descriptor {
	rls_u64 magic;
	rls_u32 version;
	rls_u32 size; /* of this struct */
	rls_u64 thread_pointer_offset; /* (int64) from the thread pointer (fsbase) to a
	                                * struct rls_thread_record *, same in every thread */
	rls_u64 phase; /* address of the current phase's struct rls_name, or 0 */
	rls_u64 process_name; /* address of a struct rls_name, or 0 */
	rls_u64 flush_site; /* address of the nop5 site hit every RLS_EDGE_FLUSH edges and
	                             * at thread end while listeners > 0; the site's argument
	                             * (rdi) is the struct rls_thread_record * */
	rls_u32 listeners; /* USDT-style semaphore: raised by the kernel while a
	                             * flush-site probe is attached (ref_ctr_offset) */
	rls_u32 reserved;
};

#ifdef __STDC_VERSION__
_Static_assert(sizeof(struct rls_name) == 8 + RLS_NAME_BYTES, "rls_name");
_Static_assert(sizeof(struct rls_edge) == 24, "rls_edge");
_Static_assert(sizeof(struct rls_thread_record) == 16 + 8 * RLS_STACK_MAX + 24 * RLS_EDGE_RING,
	       "rls_thread_record");
_Static_assert(sizeof(struct rls_annotate_descriptor) == 56, "rls_annotate_descriptor");
#endif

#endif
