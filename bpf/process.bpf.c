/* Processes and threads: fork, exec, exit, and what they hold at the end. */
#include "bpf/operation.bpf.h"
#include "bpf/range_totals.bpf.h"
#include "bpf/shared/off_cpu.bpf.h"
#include "bpf/wait.bpf.h"

/* The child's only thread goes on where its parent's was: same frames, same operations. */
static __always_inline void inherit_state(struct thread_state *child,
					  const struct thread_state *parent)
{
	child->generation = parent->generation;
	child->record = parent->record;
	child->annotate_offset = parent->annotate_offset;
	child->phase_address = parent->phase_address;
	child->edges_seen = parent->edges_seen;
	child->annotated = parent->annotated;
	child->record_seen = parent->record_seen;
	child->base = parent->base;
	child->category = parent->category;
	child->depth = parent->depth;
	child->window = parent->window;
	bpf_probe_read_kernel(child->frames, sizeof(child->frames), parent->frames);
}

static __always_inline void track_child(__u32 parent_pid, __u32 child_pid,
					const struct rls_wire_process *process)
{
	struct rls_wire_ranges *known = bpf_map_lookup_elem(&ranges, &parent_pid);
	struct rls_wire_interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &parent_pid);

	bpf_map_update_elem(&tracked, &child_pid, process, BPF_ANY);
	if (known)
		bpf_map_update_elem(&ranges, &child_pid, known, BPF_ANY);
	if (interpreter) /* it begins with all of its parent's memory */
		bpf_map_update_elem(&interpreters, &child_pid, interpreter, BPF_ANY);
}

/* It is new, and has yet to be given a CPU. */
static __always_inline void begin_off_cpu(struct thread_state *thread, struct task_struct *task)
{
	if (thread)
		begin_away(&thread->away, task, bpf_ktime_get_ns());
}

/* User space has heard of the thread, or is to hear of it by what follows. */
static __always_inline bool is_known(const struct thread_state *thread)
{
	return thread->announced || thread->sequence;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_pid = process_number(parent), child_pid;
	struct thread_state *mine, *childs = NULL;
	struct rls_wire_process *process;
	struct rls_wire_fork *record;

	process = bpf_map_lookup_elem(&tracked, &parent_pid);
	if (parent->tgid == child->tgid) {
		if (process && recording_since_ns && !totals_mode)
			begin_off_cpu(begin_thread(child, parent_pid, task_number(child)), child);
		return 0;
	}
	if (!process || !(process->flags & RLS_PROCESS_FOLLOW))
		return 0;
	child_pid = process_number(child);
	track_child(parent_pid, child_pid, process);

	mine = bpf_task_storage_get(&threads, parent, NULL, 0);
	if ((mine || !totals_mode) && recording_since_ns)
		childs = begin_thread(child, child_pid, child_pid);
	begin_off_cpu(childs, child);
	if (mine && recording_since_ns) {
		read_annotations(mine, parent, true);
		if (childs) {
			inherit_state(childs, mine);
			childs->missed = MISSED_EDGES | MISSED_RANGES;
			if (totals_mode) {
				range_totals_fork(mine, childs);
				totals_fork(mine, childs, bpf_ktime_get_ns());
			}
		}
	}
	record = control_reserve(struct rls_wire_fork, RLS_WIRE_FORK, parent_pid,
				 task_number(parent), bpf_ktime_get_ns());
	if (!record)
		return 0;
	if (childs) { /* user space takes the record for its announcement */
		childs->announced = 1;
		childs->missed = mine ? mine->missed : 0;
	}
	record->child_pid = child_pid;
	record->child_ns_pid = own_number(child);
	record->category = childs ? childs->category : 0;
	record->header.flags = childs != NULL;
	__builtin_memset(record->reserved, 0, sizeof(record->reserved));
	BPF_CORE_READ_INTO(&record->comm, child, comm);
	bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
	return 0;
}

static __always_inline void forget_image(struct thread_state *thread, __u32 pid)
{
	thread->pid = pid;
	thread->tid = pid;
	thread->depth = 0;
	thread->base = 0;
	thread->category = 0;
	thread->record = 0;
	thread->record_seen = 0;
	thread->annotated = 0;
	thread->noted = 0;
	thread->finalizing = 0;
	thread->phase_address = 0;
	thread->edges_seen = 0;
	__builtin_memset(thread->names, 0, sizeof(thread->names));
	thread->generation = 0;
	thread->missed = 0;
	thread->announced = 1; /* user space takes the exec record for it */
}

/* A new program may be an interpreter that is known: then nothing native can have been entered yet. */
static __always_inline bool begin_image(__u32 pid, struct linux_binprm *bprm)
{
	struct rls_wire_image image = {0};
	struct rls_wire_interpreter *interpreter;

	image.inode = BPF_CORE_READ(bprm, file, f_inode, i_ino);
	image.device = BPF_CORE_READ(bprm, file, f_inode, i_sb, s_dev);
	interpreter = bpf_map_lookup_elem(&images, &image);
	if (interpreter)
		bpf_map_update_elem(&interpreters, &pid, interpreter, BPF_ANY);
	else
		bpf_map_delete_elem(&interpreters, &pid);
	return interpreter != NULL;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm)
{
	__u32 pid = process_number(task), caller = pid;
	struct rls_wire_process *process = bpf_map_lookup_elem(&tracked, &pid);
	struct thread_state *thread;
	struct rls_wire_exec *record;
	bool is_python;

	if (!process)
		return 0;
	process->flags &= ~RLS_PROCESS_ANNOTATED;
	process->annotate_offset = 0;
	process->phase_address = 0;
	bpf_map_delete_elem(&ranges, &pid);
	bpf_map_delete_elem(&annotated_threads, &pid);
	is_python = begin_image(pid, bprm);
	thread = bpf_task_storage_get(&threads, task, NULL, 0);
	if (!thread && recording_since_ns && !totals_mode)
		thread = begin_thread(task, pid, pid);
	if (thread) {
		caller = thread->tid; /* old_pid, as user space knows it */
		if (totals_mode) {
			range_totals_clear(thread);
			totals_exec(thread, bpf_ktime_get_ns());
		}
		forget_image(thread, pid);
		/* User space emits that too. What it forks has it from here. */
		if (is_python && !totals_mode)
			thread->base = thread->category = PYTHON;
	}
	record = control_reserve(struct rls_wire_exec, RLS_WIRE_EXEC, pid, caller,
				 bpf_ktime_get_ns());
	if (!record)
		return 0;
	BPF_CORE_READ_INTO(&record->comm, task, comm);
	bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
	return 0;
}

static __always_inline void report_exit(struct thread_state *thread, struct task_struct *task,
					__u32 pid, bool over)
{
	__u32 tid = task_number(task);
	struct rls_wire_exit *record = control_reserve(struct rls_wire_exit, RLS_WIRE_THREAD_EXIT,
						       pid, tid, bpf_ktime_get_ns());

	if (!record)
		return;
	__builtin_memset(&record->hit_totals, 0, sizeof(record->hit_totals));
	__builtin_memset(record->reserved, 0, sizeof(record->reserved));
	record->process_over = over;
	record->out_of_memory = BPF_CORE_READ(task, signal, oom_mm) != NULL;
	record->traced = thread != NULL;
	if (thread) {
		if (thread->lost)
			emit_loss(thread, record->header.time_ns);
		take_hit_totals(thread, &record->hit_totals);
	}
	bpf_ringbuf_submit(record, over ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

/* On the thread that ends: its memory is still there since Linux 6.16; before that nothing can be read, and nothing is.
 * Its record may be gone since the last hit, so it is looked up anew. A short worker may have met no probe at all. */
static __always_inline void sync_before_exit(struct thread_state *thread, struct task_struct *task)
{
	struct rls_wire_process *process;

	if (!recording_since_ns)
		return;
	process = bpf_map_lookup_elem(&tracked, &thread->pid);
	if (process)
		load_settings(thread, process);
	if (!thread->annotated)
		return;
	find_record(thread);
	if (!thread->record)
		return;
	if (!thread->announced)
		announce(thread, task);
	sync_operations(thread);
}

/* It was neither sampled nor seen to leave its CPU. One that is older than the recording has slept, and was
 * woken to end. */
static __always_inline void announce_brief(struct thread_state *thread, struct task_struct *task)
{
	if (totals_mode || is_known(thread) || !recording_since_ns ||
	    BPF_CORE_READ(task, start_time) < recording_since_ns ||
	    !bpf_map_lookup_elem(&tracked, &thread->pid))
		return;
	update_thread(thread, task);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	__u32 pid = process_number(task);
	struct thread_state *thread = bpf_task_storage_get(&threads, task, NULL, 0);
	bool over = BPF_CORE_READ(task, signal, live.counter) == 0;
	__u64 now_ns;

	if (thread)
		announce_brief(thread, task);
	if (thread)
		sync_before_exit(thread, task);
	/* Threads that end side by side may all see that none is alive: who forgets the process
	 * reports its end, and the others are only threads. */
	if (over && bpf_map_delete_elem(&tracked, &pid))
		over = false;
	if (thread) {
		now_ns = bpf_ktime_get_ns();
		if (returned_unseen(thread))
			add_off_cpu(thread, task, now_ns);
		end_wait(thread, task); /* it runs, though its return was not reported */
		if (totals_mode)
			totals_close(thread, now_ns);
	}
	if (over) {
		bpf_map_delete_elem(&ranges, &pid);
		bpf_map_delete_elem(&interpreters, &pid);
		bpf_map_delete_elem(&annotated_threads, &pid);
	}
	if (thread && !is_known(thread))
		thread = NULL;
	if (thread || over)
		report_exit(thread, task, pid, over);
	return 0;
}

/* The thread's annotation record, which its next hit may be the first to find. */
static __always_inline __u64 record_of(struct task_struct *task, const struct thread_state *thread)
{
	__u64 record = thread->record;

	if (record || !thread->annotated ||
	    bpf_copy_from_user_task(
		    &record, sizeof(record),
		    (void *)(BPF_CORE_READ(task, thread.fsbase) + thread->annotate_offset), task,
		    0))
		return thread->record;
	return record;
}

/* The instant of the first edge that the thread has not read yet: until then its operation is
 * known. UINT64_MAX: there is none, or nothing can be read. */
static __always_inline __u64 first_unread_edge(struct task_struct *task,
					       const struct thread_state *thread)
{
	__u64 record = record_of(task, thread), head = 0, time_ns = 0;
	__u64 seen = thread->record_seen ? thread->edges_seen : 0;

	if (!record ||
	    bpf_copy_from_user_task(&head, sizeof(head), (void *)RECORD_FIELD(record, head), task,
				    0) ||
	    head == seen)
		return ~0ULL;
	if (head - seen > RLS_EDGE_RING)
		seen = head - RLS_EDGE_RING + 1; /* those before are gone: it is to be the stack */
	if (bpf_copy_from_user_task(&time_ns, sizeof(time_ns), (void *)EDGE_AT(record, seen), task,
				    0))
		return ~0ULL;
	return time_ns - clock_ahead_ns(task);
}

/* The thread, if it is watched. First threads are from when their process is and has a library
 * with a role: in a closed window none may meet a probe for long. */
static __always_inline struct thread_state *watched_thread(struct task_struct *task)
{
	struct thread_state *thread = bpf_task_storage_get(&threads, task, NULL, 0);
	struct rls_wire_ranges *known;
	__u32 pid;

	if (thread && thread->pid)
		return bpf_map_lookup_elem(&tracked, &thread->pid) ? thread : NULL;
	if (task->pid != task->tgid || !task->mm)
		return NULL;
	pid = process_number(task);
	known = bpf_map_lookup_elem(&ranges, &pid);
	thread = known && known->count ? create_thread(task) : NULL;
	if (thread && task->__state && !BPF_CORE_READ(task, on_cpu) && !thread->away.since_ns) {
		begin_away(&thread->away, task, bpf_ktime_get_ns());
		totals_waits(thread);
	}
	return thread;
}

/* Run by user space when it is about to read the cells: what is not in them yet. What comes after
 * an edge that the thread has yet to read is left to it. */
SEC("iter.s/task")
int flush_totals(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread_state *thread;
	__u64 now_ns = bpf_ktime_get_ns(), edge_ns;

	if (!task || !recording_since_ns)
		return 0;
	thread = watched_thread(task);
	if (!thread)
		return 0;
	edge_ns = first_unread_edge(task, thread);
	totals_flush(thread, edge_ns < now_ns ? edge_ns : now_ns);
	return 0;
}

/* The same where another task's memory cannot be read from here (before 5.18): its time goes to
 * the operation that is known. */
SEC("iter/task")
int flush_totals_blind(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread_state *thread;

	if (!task || !recording_since_ns)
		return 0;
	thread = watched_thread(task);
	if (thread)
		totals_flush(thread, bpf_ktime_get_ns());
	return 0;
}

/* Run once by user space when recording stops: what each living thread still holds. */
SEC("iter/task")
int final_states(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread_state *thread;
	struct rls_wire_final *record;
	__u64 now_ns = stopped_ns;

	if (!task)
		return 0;
	thread = bpf_task_storage_get(&threads, task, NULL, 0);
	if (!thread || !is_known(thread) || !bpf_map_lookup_elem(&tracked, &thread->pid))
		return 0;
	if (thread->lost)
		emit_loss(thread, now_ns);
	add_off_cpu(thread, task, now_ns);
	record = control_reserve(struct rls_wire_final, RLS_WIRE_FINAL, thread->pid, thread->tid,
				 now_ns);
	if (!record)
		return 0;
	take_hit_totals(thread, &record->hit_totals);
	record->record = thread->record;
	record->edges_seen = thread->edges_seen;
	record->clock_ahead_ns = thread->clock_ahead_ns;
	record->overflowed_frames = thread->overflowed;
	record->reserved = 0;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return 0;
}
