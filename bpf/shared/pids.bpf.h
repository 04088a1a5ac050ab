/* The numbers of tasks: those that user space knows them by.
 *
 * A task has a number in its own pid namespace and in each one around it:
 *
 *      level 0   initial      4711     what the kernel's own structures hold
 *      level 1   container      23     user space, when it runs in the container too
 *      level 2   nested          1     the task itself
 */
#ifndef RLS_PIDS_BPF_H
#define RLS_PIDS_BPF_H

#include "bpf/shared/maps.bpf.h"

#define NAMESPACE_LEVELS_MAX 32

static __always_inline __u32 number_at_level(struct pid *pid, __u32 level, __u32 *namespace)
{
	struct upid upid;

	if (bpf_core_read(&upid, sizeof(upid), &pid->numbers[level & (NAMESPACE_LEVELS_MAX - 1)]))
		return 0;
	if (namespace)
		*namespace = BPF_CORE_READ(upid.ns, ns.inum);
	return upid.nr;
}

/* In the task's own pid namespace, the innermost. */
static __always_inline __u32 own_number(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);

	return number_at_level(pid, BPF_CORE_READ(pid, level), NULL);
}

/* In user space's namespace; 0 when the task is not in it. */
SUBPROGRAM __u32 translate_number(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 levels = BPF_CORE_READ(pid, level);

	for (__u32 level = 0; level < NAMESPACE_LEVELS_MAX; level++) {
		__u32 namespace = 0, number;

		if (level > levels)
			break;
		number = number_at_level(pid, level, &namespace);
		if (namespace == pid_namespace)
			return number;
	}
	return 0;
}

/* What user space calls the task, and its process. */
static __always_inline __u32 task_number(struct task_struct *task)
{
	return pid_namespace ? translate_number(task) : (__u32)task->pid;
}

static __always_inline __u32 process_number(struct task_struct *task)
{
	return pid_namespace ? translate_number(task->group_leader) : (__u32)task->tgid;
}

#endif
