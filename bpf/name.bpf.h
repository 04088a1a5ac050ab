/* Names of operations and phases: each is sent to user space once, with an id while totals are
 * kept.
 */
#ifndef RLS_NAME_BPF_H
#define RLS_NAME_BPF_H

#include "bpf/shared/control.bpf.h"
#include "bpf/totals.bpf.h"

/* Changes with each exec, and when the pid is given to another process. */
static __always_inline __u32 current_image(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return (__u32)BPF_CORE_READ(task, self_exec_id) +
	       (__u32)(BPF_CORE_READ(task, group_leader, start_time) >> 10);
}

/* The id of the name if it has been sent, or if it is not to be; else 0, and begin_name comes
 * next. */
static __always_inline __u32 find_name(struct thread_state *thread, __u64 address,
				       struct name_key *key)
{
	struct known_name *lately = &thread->names[NAME_PLACE(address) & (NAMES_KNOWN - 1)];
	__u32 *known;

	if (lately->id && lately->address == address)
		return lately->id;
	*key = (struct name_key){.address = address, .pid = thread->pid, .image = current_image()};
	known = bpf_map_lookup_elem(&names_sent, key);
	if (known) {
		*lately = (struct known_name){.address = address, .id = *known};
		return *known;
	}
	return totals_mode && !totals_may_name(thread->pid) ? RLS_TOTALS_OTHER : 0;
}

/* NULL: no room. Length and text are to be filled in. */
static __always_inline struct rls_wire_name *begin_name(const struct thread_state *thread,
							const struct name_key *key)
{
	struct rls_wire_name *record =
		control_reserve(struct rls_wire_name, RLS_WIRE_NAME, thread->pid, thread->tid, 0);

	if (record) {
		record->address = key->address;
		record->id = totals_mode ? __sync_fetch_and_add(&names_given, 1) + 1 : 0;
	}
	return record;
}

/* Its id in totals_mode, else 1. */
static __always_inline __u32 end_name(struct rls_wire_name *record, const struct name_key *key)
{
	__u32 id = totals_mode ? record->id : 1;

	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	bpf_map_update_elem(&names_sent, key, &id, BPF_ANY);
	return id;
}

#endif
