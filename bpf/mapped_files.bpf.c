/* Which files a process has mapped, as the kernel holds them: on an overlay file system /proc/PID/maps names the file
 * that is seen, from Linux 6.17 on, and probes belong to the one below. A skeleton of its own: it is loaded where there
 * is such a file.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/wire/mapped_file.h"

#define NAMESPACE_LEVELS_MAX 32

char license_text[] SEC("license") = "Dual BSD/GPL";

/* Set before each run: the number of a thread, in which pid namespace. */
__u32 wanted = 0;
__u32 wanted_namespace = 0;
/* Mappings of others that were met: the kernel cannot be asked for one thread alone. */
__u64 others = 0;

static __always_inline bool is_wanted(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 levels = BPF_CORE_READ(pid, level);

	for (__u32 level = 0; level < NAMESPACE_LEVELS_MAX; level++) {
		struct upid upid;

		if (level > levels || bpf_core_read(&upid, sizeof(upid), &pid->numbers[level]))
			return false;
		if ((__u32)upid.nr == wanted && BPF_CORE_READ(upid.ns, ns.inum) == wanted_namespace)
			return true;
	}
	return false;
}

SEC("iter/task_vma")
int mapped_files(struct bpf_iter__task_vma *ctx)
{
	struct rls_wire_mapped_file record = {};
	struct task_struct *task = ctx->task;
	struct vm_area_struct *vma = ctx->vma;
	struct file *file;

	if (!task || !vma)
		return 0;
	if (!is_wanted(task)) {
		others++;
		return 0;
	}
	file = BPF_CORE_READ(vma, vm_file);
	if (!file)
		return 0;
	record.start = BPF_CORE_READ(vma, vm_start);
	record.end = BPF_CORE_READ(vma, vm_end);
	record.inode = BPF_CORE_READ(file, f_inode, i_ino);
	record.device = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}
