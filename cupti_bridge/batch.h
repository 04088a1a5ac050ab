/* Bridge → kernel → recorder: GPU records as the bridge hands them over, in batches.
 *
 * The bridge's own thread decodes CUPTI's buffers into one of these and passes its address
 * and size through the USDT site rlscope_cupti:batch. The BPF program behind it copies the
 * bytes, stamps them with the process, and adds nothing. The site's semaphore is what arms
 * the bridge: raised, it switches CUPTI on; released, off.
 *
 *     struct rls_cupti_batch │ record[count] │ strings (string_bytes, each NUL-terminated)
 *
 * If another profiler attaches (the semaphore's value changes) while the bridge is armed or cannot
 * be, a status record says so to it too.
 *
 * A batch is complete in itself: it holds every string that its records name. A lost batch costs
 * its own records only, and a later profiler misses nothing. All of it is hostile input: a reader
 * checks everything (batch_validate).
 *
 * Compiled by gcc for the bridge and the recorder and by clang -target bpf; sizes and
 * offsets are asserted. Numbers are append-only.
 */
#ifndef RLS_CUPTI_BATCH_H
#define RLS_CUPTI_BATCH_H

#ifndef __VMLINUX_H__
#include <stddef.h>
#include <stdint.h>
#define RLS_CUPTI_U8 uint8_t
#define RLS_CUPTI_U16 uint16_t
#define RLS_CUPTI_U32 uint32_t
#define RLS_CUPTI_U64 uint64_t
#else
#define RLS_CUPTI_U8 __u8
#define RLS_CUPTI_U16 __u16
#define RLS_CUPTI_U32 __u32
#define RLS_CUPTI_U64 __u64
#endif

#define RLS_CUPTI_MAGIC 0x31545055434c5352ULL /* "RSLCUPT1" */
#define RLS_CUPTI_VERSION 1
#define RLS_CUPTI_PROVIDER "rlscope_cupti"
#define RLS_CUPTI_PROBE "batch"
#define RLS_CUPTI_RECORDS_MAX 128
#define RLS_CUPTI_STRING_BYTES_MAX 8096 /* of all strings of a batch */
#define RLS_CUPTI_NAME_BYTES_MAX 512 /* of one, NUL included; longer ones are cut */
#define RLS_CUPTI_BATCH_BYTES_MAX 16384
/* While armed the bridge flushes this often, and sends a batch then, an empty one (count 0) if
 * there is nothing to tell: the site and its semaphore go together, so nothing can be handed
 * over once it is disarmed. */
#define RLS_CUPTI_FLUSH_NS 200000000ULL

/* Work may lie this long before the call that launched it: CUPTI places the GPU's times on the CPU's
 * clock by interpolation, and a launch takes 5 us only. It is the work's place that is wrong then, not
 * its length. One recording on an H100 had a sixth of its work refused, most likely for this. */
#define RLS_CUPTI_EARLY_NS 1000000ULL

enum rls_cupti_kind {
	RLS_CUPTI_KERNEL = 1,
	RLS_CUPTI_MEMCPY = 2, /* subkind: CUPTI's copyKind */
	RLS_CUPTI_MEMSET = 3,
	RLS_CUPTI_SYNC =
		4, /* a call that waits, as long as it did; subkind: CUPTI's synchronisation type */
	RLS_CUPTI_GRAPH = 5, /* a whole graph launch, where its nodes are not traced */
	RLS_CUPTI_OVERHEAD = 6, /* CUPTI's own; subkind: its overhead kind >> 16 */
	RLS_CUPTI_API = 7, /* a launching call; subkind: RLS_CUPTI_RUNTIME or _DRIVER */
	RLS_CUPTI_STATUS = 8, /* subkind: enum rls_cupti_status; name: a sentence */
};

#define RLS_CUPTI_RUNTIME 1
#define RLS_CUPTI_DRIVER 2

/* What became of the bridge. A record each time that it changes, and at each arming. */
enum rls_cupti_status {
	RLS_CUPTI_ARMED = 1,
	RLS_CUPTI_DISARMED = 2, /* the last record of a session */
	RLS_CUPTI_NO_DRIVER = 3, /* libcuda is not loaded, yet: looked for again */
	RLS_CUPTI_NO_CUPTI = 4, /* no libcupti that can be used */
	RLS_CUPTI_SLOT_TAKEN = 5, /* another tool holds CUPTI (error 39) */
	RLS_CUPTI_STOLEN = 6, /* another tool took buffers or clock over while armed */
	RLS_CUPTI_FAILED = 7, /* CUPTI refused; value: its result code */
	RLS_CUPTI_FORKED = 8, /* in a child of a process that used CUDA: stays off */
};

struct rls_cupti_record {
	RLS_CUPTI_U8 kind; /* enum rls_cupti_kind */
	RLS_CUPTI_U8 subkind;
	RLS_CUPTI_U16 reserved;
	RLS_CUPTI_U32 correlation; /* joins a launching call and its work; 0: none */
	RLS_CUPTI_U64 start_ns; /* CLOCK_MONOTONIC */
	RLS_CUPTI_U64 end_ns;
	RLS_CUPTI_U32 device;
	RLS_CUPTI_U32 context;
	RLS_CUPTI_U32 stream;
	RLS_CUPTI_U32 tid; /* API, OVERHEAD: whose, in the target's own pid namespace */
	RLS_CUPTI_U64 value; /* MEMCPY, MEMSET: bytes; STATUS: code; API: CUPTI's cbid;
				     * OVERHEAD: its whole kind */
	RLS_CUPTI_U64 graph_node; /* 0: not from a graph */
	RLS_CUPTI_U32 graph;
	RLS_CUPTI_U32 name; /* offset in the strings + 1; 0: none */
};

struct rls_cupti_batch {
	RLS_CUPTI_U64 magic;
	RLS_CUPTI_U16 version;
	RLS_CUPTI_U16 record_bytes; /* sizeof(struct rls_cupti_record) */
	RLS_CUPTI_U16 count;
	RLS_CUPTI_U16 reserved;
	RLS_CUPTI_U32 string_bytes;
	RLS_CUPTI_U32 cupti_version; /* cuptiGetVersion's, 0: not asked yet */
	RLS_CUPTI_U64 sequence; /* of batches in this process, from 1: a gap is a loss */
	/* One reading of both clocks: CUPTI's own between two of CLOCK_MONOTONIC. When CUPTI's
	 * timestamps come from our callback, clock_gap_ns is about 0. 0, 0, 0: none taken. */
	RLS_CUPTI_U64 clock_ns; /* CLOCK_MONOTONIC, middle of the two */
	RLS_CUPTI_U64 clock_cupti_ns;
	RLS_CUPTI_U64 clock_width_ns; /* between the two: the reading's uncertainty */
	/* Totals since the process began. */
	RLS_CUPTI_U64 dropped; /* by CUPTI */
	RLS_CUPTI_U64 refused; /* by the bridge: times that cannot be */
	RLS_CUPTI_U64 unpooled; /* by the bridge: no buffer left, or one of a shape unknown */
	RLS_CUPTI_U64 unclaimed; /* kinds that the bridge does not decode */
	/* When the last flush of CUPTI's buffers began: work that ended before is in this batch
	 * or an earlier one. A profiler that stops waits for one that began after. */
	RLS_CUPTI_U64 flushed_ns; /* CLOCK_MONOTONIC; 0: none yet */
};

#ifndef __VMLINUX_H__
_Static_assert(sizeof(struct rls_cupti_record) == 64, "record");
_Static_assert(offsetof(struct rls_cupti_record, value) == 40, "record");
_Static_assert(sizeof(struct rls_cupti_batch) == 96, "batch");
_Static_assert(sizeof(struct rls_cupti_batch) +
			       RLS_CUPTI_RECORDS_MAX * sizeof(struct rls_cupti_record) <=
		       RLS_CUPTI_BATCH_BYTES_MAX,
	       "batch");
#endif

#endif
