/* Memory: what the kernel side counts of each line that allocates.
 *
 *     New, Track, … ─▶ block by its address ─▶ the line that allocated it: sums, ages
 *     Delete, …     ─▶ ────────┘
 *
 * A line is a place in the array memory_lines, with its key in front. User space maps the array. It gives places back
 * when their process has ended.
 */
#ifndef RLS_WIRE_MEMORY_H
#define RLS_WIRE_MEMORY_H

#include "bpf/wire/types.h"

/* What a site reports: bits 0..7 of its cookie, bits 48..63 of which are the cost, as in wire/cookie.h. */
enum rls_memory_report {
	RLS_MEMORY_TENSOR_NEW = 1, /* (this, address, bytes) */
	RLS_MEMORY_TENSOR_DELETE = 2, /* (this, address) */
	RLS_MEMORY_DEVICE = 3, /* (address, ±bytes, allocated, reserved, device) */
	RLS_MEMORY_DEVICE_FULL = 4, /* (bytes, allocated, reserved, device) */
	RLS_MEMORY_TRACK = 5, /* (domain, address, bytes) */
	RLS_MEMORY_UNTRACK = 6, /* (domain, address) */
	RLS_MEMORY_FINALIZE =
		7, /* the interpreter's end begins, which frees what the program has kept */
	RLS_MEMORY_EXIT = 8, /* the same, by sys.exit */
	RLS_MEMORY_COPY_TENSOR = 9, /* (to, from): at::Tensor const * */
	RLS_MEMORY_COPY_BYTES = 10, /* (to, from, bytes): the C library's */
	RLS_MEMORY_RUNG =
		11, /* the C library looks for a block of that size (RLS_MEMORY_RUNG_COOKIE) */
	RLS_MEMORY_REPORT_MAX = 12,
};
#define RLS_MEMORY_COOKIE(report, cost) ((RLS_U64)(report) | (RLS_U64)(cost) << 48)

/* Bits 8..11: the register that has the size. */
#define RLS_MEMORY_RUNG_COOKIE(cookie, size_register) ((cookie) | (RLS_U64)(size_register) << 8)
#define RLS_MEMORY_RUNG_REGISTER(cookie) ((cookie) >> 8 & 15)
/* What the C library adds to a block, and up to which size, that included, it keeps some of each size without ever
 * looking for one. */
#define RLS_MALLOC_HEAD_BYTES 16
#define RLS_MALLOC_KEPT_BYTES 1040

/* No source of blocks: allocs and alloc_bytes are copies within main memory, and what they wrote. */
#define RLS_MEMORY_COPIES 16

/* All that tells lines apart. */
struct rls_wire_memory_key {
	RLS_U64 code; /* of the innermost Python frame, as in struct rls_wire_frame; 0: none */
	RLS_U64 operation; /* address of the innermost one's struct rls_name; 0: none */
	RLS_U64 phase;
	RLS_U32 at;
	RLS_U32 identity;
	RLS_U32 pid;
	RLS_U32 image; /* tells programs apart that had this pid */
	RLS_U32 source; /* enum rls_memory_source, or RLS_MEMORY_COPIES */
	RLS_U32 device;
};

/* How long blocks live: four buckets an octave from 2^RLS_AGE_FIRST ns on, one for what is below. */
#define RLS_AGE_FIRST 10
#define RLS_AGE_LAST 40
#define RLS_AGE_PARTS 4
#define RLS_AGES (2 + (RLS_AGE_LAST - RLS_AGE_FIRST) * RLS_AGE_PARTS)
#define RLS_TEMPORARY_NS 10000000ULL

struct rls_wire_memory_line {
	struct rls_wire_memory_key key; /* pid 0: the place is free */
	RLS_U64 allocs, alloc_bytes;
	RLS_U64 frees, freed_bytes; /* of malloc: what others have reported */
	RLS_U64 temporary_bytes;
	RLS_U64 peak_bytes; /* with those below */
	RLS_U32 next; /* plus one: another place of the same row, as user space has found; 0: none */
	RLS_U32 reserved;
	RLS_U32 ages[RLS_AGES]; /* of blocks that were freed */
};
#define RLS_MEMORY_LINES 16384
#define RLS_MEMORY_BLOCKS 262144

/* memory_blocks: what lives. */
struct rls_wire_block_key {
	RLS_U64 address;
	RLS_U32 pid;
	RLS_U32 image;
	RLS_U32 source;
	RLS_U32 domain; /* or device */
};
struct rls_wire_block {
	RLS_U64 bytes;
	RLS_U64 born_ns;
	RLS_U32 line; /* its place in memory_lines */
	RLS_U32 reserved;
};

/* memory_devices: what a caching allocator has said last. */
struct rls_wire_device_key {
	RLS_U32 pid;
	RLS_U32 device;
};
struct rls_wire_device {
	RLS_U64 allocated_bytes, reserved_bytes;
	RLS_U64 full_ns; /* when it last had no room; 0: never */
	RLS_U32 image;
	RLS_U32 reserved;
};
#define RLS_MEMORY_DEVICES 1024

/* Sources that the masks of the kernel side have room for: a power of two. */
#define RLS_MEMORY_SOURCES 8
/* Where there are sources, copies are this one. */
#define RLS_MEMORY_COPY_COST 5

/* memory_counts */
enum rls_memory_count {
	RLS_MEMORY_HITS = 0, /* of tracked processes */
	RLS_MEMORY_HIT_NS = 1, /* what they cost */
	RLS_MEMORY_LOST_BLOCKS = 2, /* no room: their frees will not be seen */
	RLS_MEMORY_LOST_LINES = 3, /* allocations of lines for which there was no room */
	RLS_MEMORY_REPORTS = 4, /* of devices */
	RLS_MEMORY_PLACES = 5, /* of memory_lines: those from here on have never been used */
	RLS_MEMORY_MADE = 6, /* lines, so far */
	RLS_MEMORY_LOST_COPIES = 7, /* tensors of a layout that is not known */
	RLS_MEMORY_SOURCE_NS =
		8, /* of what hits cost, each source's part, from here on; RLS_MEMORY_COPY_COST: copies' */
	RLS_MEMORY_COUNT_MAX = 16,
};

/* The bucket of an age, and where it begins. */
static inline RLS_U32 rls_age_bucket(RLS_U64 ns)
{
	RLS_U32 octave = 0;
	RLS_U64 rest = ns;

	if (ns >> RLS_AGE_LAST)
		return RLS_AGES - 1;
	if (!(ns >> RLS_AGE_FIRST))
		return 0;
	for (RLS_U32 bits = 32; bits; bits /= 2) {
		if (rest >> bits) {
			rest >>= bits;
			octave += bits;
		}
	}
	return 1 + (octave - RLS_AGE_FIRST) * RLS_AGE_PARTS +
	       (RLS_U32)(ns >> (octave - 2) & (RLS_AGE_PARTS - 1));
}

static inline RLS_U64 rls_age_from_ns(RLS_U32 bucket)
{
	RLS_U32 part;

	if (!bucket)
		return 0;
	part = bucket - 1;
	return (RLS_U64)(RLS_AGE_PARTS + part % RLS_AGE_PARTS)
	       << (RLS_AGE_FIRST + part / RLS_AGE_PARTS - 2);
}

#ifndef __VMLINUX_H__
_Static_assert(sizeof(struct rls_wire_memory_key) == 48, "memory key");
_Static_assert(sizeof(struct rls_wire_memory_line) == 104 + 4 * RLS_AGES, "memory line");
_Static_assert(sizeof(struct rls_wire_memory_line) % 8 == 0, "an array of them has no gaps");
_Static_assert(sizeof(struct rls_wire_block_key) == 24, "block key");
_Static_assert(sizeof(struct rls_wire_block) == 24, "block");
_Static_assert(sizeof(struct rls_wire_device) == 32, "device");
_Static_assert(RLS_AGE_PARTS == 4, "parts are two bits");
_Static_assert(RLS_MEMORY_COUNT_MAX == RLS_MEMORY_SOURCE_NS + RLS_MEMORY_SOURCES, "a count each");
#endif

#endif
