/* The control ring: records of every kind but transitions. */
#ifndef RLS_CONTROL_BPF_H
#define RLS_CONTROL_BPF_H

#include "bpf/shared/maps.bpf.h"

static __always_inline void fill_header(struct rls_wire_header *header, __u16 size, __u8 kind,
					__u32 pid, __u32 tid, __u64 time_ns)
{
	header->size = size;
	header->kind = kind;
	header->flags = 0;
	header->pid = pid;
	header->tid = tid;
	header->sequence = 0;
	header->time_ns = time_ns;
}

/* A control record of this type, header filled; NULL (and counted) when there is no room. */
#define control_reserve(type, kind, pid, tid, time_ns)                                             \
	({                                                                                         \
		type *record_ = bpf_ringbuf_reserve(&control, sizeof(type), 0);                    \
		if (record_)                                                                       \
			fill_header(&record_->header, sizeof(type), kind, pid, tid, time_ns);      \
		else                                                                               \
			count_drop(RLS_DROP_CONTROL);                                              \
		record_;                                                                           \
	})

#endif
