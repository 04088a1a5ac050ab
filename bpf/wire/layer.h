/* Layers: what the kernel side sends of calls of a model's layers.
 *
 *     the interpreter's function that calls objects ─▶ is it a layer, and which? ─▶ RLS_WIRE_LAYER (transitions)
 *                                                        └─ met first ─▶ RLS_WIRE_LAYER_OBJECT (control), before it
 *
 * A layer is an object of a class with a base named "Module". It has a number from its first call on.
 */
#ifndef RLS_WIRE_LAYER_H
#define RLS_WIRE_LAYER_H

#include "bpf/wire/record.h"

/* A thread's innermost open call of a layer, after the event. A place of the transitions ring has room for it. */
struct rls_wire_layer {
	struct rls_wire_header header;
	struct rls_wire_hit_totals hit_totals;
	RLS_U32 number; /* 0: none is open */
	RLS_U16 depth; /* open calls */
	RLS_U8 begun; /* a call of it begins */
	RLS_U8 category; /* the thread's */
};

/* An object that is called for the first time. */
struct rls_wire_layer_object {
	struct rls_wire_header header;
	RLS_U64 address, type;
	RLS_U32 number;
	RLS_U32 root; /* number of the outermost open call's; 0: this is it */
};

#define RLS_LAYERS_OPEN 64 /* calls that are distinguished on a thread */

/* layer_objects: the numbers of layers; layer_types: whether objects of a type are layers (address 0). */
struct rls_wire_layer_key {
	RLS_U64 address, type;
	RLS_U32 pid;
	RLS_U32 image; /* tells programs apart that had this pid */
};
#define RLS_LAYER_OBJECTS 16384
#define RLS_LAYER_TYPES 4096
#define RLS_LAYER_TYPE_YES 1
#define RLS_LAYER_TYPE_NO 2

/* layer_counts */
enum rls_layer_count {
	RLS_LAYER_NUMBERS = 0, /* given so far */
	RLS_LAYER_HITS = 1, /* of tracked processes, on objects of all kinds */
	RLS_LAYER_HIT_NS = 2, /* what they cost */
	RLS_LAYER_CALLS = 3, /* of layers, begun */
	RLS_LAYER_LOST = 4, /* calls of layers for which there was no number */
	RLS_LAYER_COUNT_MAX = 5,
};

/* A probe's cookie: bits 0..7 what it is at, 8..23 how many words above the stack pointer the return address lies,
 * 24..31 how many words within a tuple its items lie; 48..63 the cost, as in wire/cookie.h. */
enum rls_layer_edge {
	RLS_LAYER_BEGINS = 0,
	RLS_LAYER_ENDS = 1, /* at a ret, or what shows the same before it */
	RLS_LAYER_RETURNED = 2, /* a return probe */
};
#define RLS_LAYER_COOKIE(edge, slot_bytes, items_bytes, cost)                                      \
	((RLS_U64)(edge) | (RLS_U64)((slot_bytes) / 8 & 0xffff) << 8 |                             \
	 (RLS_U64)((items_bytes) / 8 & 0xff) << 24 | (RLS_U64)(cost) << 48)
#define RLS_LAYER_EDGE(cookie) ((RLS_U8)(cookie))
#define RLS_LAYER_SLOT_BYTES(cookie) ((RLS_U32)((cookie) >> 8 & 0xffff) * 8)
#define RLS_LAYER_ITEMS_BYTES(cookie) ((RLS_U32)((cookie) >> 24 & 0xff) * 8)

#ifndef __VMLINUX_H__
_Static_assert(sizeof(struct rls_wire_layer) == sizeof(struct rls_wire_category),
	       "they share places");
_Static_assert(sizeof(struct rls_wire_layer_object) == 48, "layer object");
_Static_assert(sizeof(struct rls_wire_layer_key) == 24, "layer key");
#endif

#endif
