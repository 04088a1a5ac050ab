/* A thread's stack of categories.
 *
 * Only changes of category are frames, each known by the address of its return slot:
 *
 *      high addresses   python (base)
 *                       ├─ frame 0: sp = 0x7ffe80  backend      torch.linear called from Python
 *                       ├─ frame 1: sp = 0x7ffd10  python       it calls back
 *      low addresses    └─ frame 2: sp = 0x7ffc48  simulator    the callback steps the simulator
 *
 * A call from backend into backend changes nothing: no frame, no event, one silent hit. A stack
 * grows down. So a hit at a stack pointer at or above a frame's slot proves that the frame is
 * over, however it ended: by return, C++ exception, longjmp, or past the kernel's limit of 64
 * pending return probes. Each frame that is dropped is one event. Transitions are therefore
 * counted exactly, even where the exit itself was not detected.
 */
#ifndef RLS_STATE_BPF_H
#define RLS_STATE_BPF_H

#include "bpf/emit.bpf.h"
#include "bpf/shared/interpreter.bpf.h"
#include "bpf/shared/pids.bpf.h"

/* A frame's index with its mask in plain sight: where clang knows a bound it leaves the mask
 * out, and the verifiers of older kernels (6.1) have lost sight of the bound by then. */
#define FRAME(i)                                                                                   \
	({                                                                                         \
		__u32 index_ = (i);                                                                \
		asm volatile("" : "+r"(index_));                                                   \
		index_ &(RLS_FRAMES_MAX - 1);                                                      \
	})
#define PYTHON 1 /* enum rls_category; attach/cookie.c asserts them */
#define CUDA_API 4

/* A frame is one word, so that an entry touches one line of memory for it: user space ends
 * below 2^56, with five levels of page tables too. */
#define FRAME_SP(frame) ((frame)&0xffffffffffffffULL)
#define FRAME_KIND(frame) ((__u8)((frame) >> 56))
#define FRAME_OF(sp, kind) (FRAME_SP(sp) | (__u64)(kind) << 56)
/* The kind: a category, and what will see the frame's end. */
#define FRAME_RETURN_PROBE 0x80
#define FRAME_EXIT_SITES 0x40
#define FRAME_CATEGORY 0x0f

static __always_inline void load_settings(struct thread_state *thread,
					  const struct rls_wire_process *process)
{
	thread->generation = settings_generation;
	if ((process->flags & RLS_PROCESS_ANNOTATED) && !thread->annotated) {
		thread->annotated = 1;
		thread->annotate_offset = process->annotate_offset;
		thread->phase_address = process->phase_address;
	}
}

/* Followed before it meets a probe, if it ever does: for how long it runs. Nothing else is known
 * of the thread. */
static __always_inline struct thread_state *begin_thread(struct task_struct *task, __u32 pid,
							 __u32 tid)
{
	struct thread_state *thread =
		bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!thread)
		return NULL;
	thread->pid = pid;
	thread->tid = tid;
	thread->window = window_edges;
	thread->wait.ticked_ran_ns = task->se.sum_exec_runtime;
	return thread;
}

/* The thread was seen to run: its life in the trace begins. */
SUBPROGRAM void announce(struct thread_state *thread, struct task_struct *task)
{
	struct rls_wire_thread *record;
	__u64 born_ns = BPF_CORE_READ(task, start_time);

	if (born_ns < recording_since_ns)
		born_ns = recording_since_ns;
	if (totals_mode)
		totals_begin(thread, born_ns, thread->sequence ? 0 : thread->category);
	record = control_reserve(struct rls_wire_thread, RLS_WIRE_THREAD, thread->pid, thread->tid,
				 born_ns);
	if (!record)
		return;
	record->ns_tid = own_number(task);
	record->category = thread->sequence ? 0 : thread->category;
	BPF_CORE_READ_INTO(&record->comm, task, comm);
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	thread->announced = 1;
	if (!totals_mode && thread->period.away_ns)
		send_off_cpu(thread);
}

SUBPROGRAM struct thread_state *create_thread(struct task_struct *task)
{
	__u32 pid = process_number(task);
	struct rls_wire_process *process = bpf_map_lookup_elem(&tracked, &pid);
	struct thread_state *thread;

	if (!process)
		return NULL;
	thread = bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread) /* this CPU's store was empty, and has been asked to be filled again */
		thread = bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread) {
		count_drop(RLS_DROP_THREADS);
		return NULL;
	}
	thread->pid = pid;
	thread->tid = task_number(task);
	load_settings(thread, process);
	thread->window = window_edges;
	if (!thread->wait.ticked_ran_ns)
		thread->wait.ticked_ran_ns = task->se.sum_exec_runtime;
	announce(thread, task);
	return thread;
}

/* What has changed of its process's settings; and it was seen to run. */
static __always_inline void update_thread(struct thread_state *thread, struct task_struct *task)
{
	if (thread->generation != settings_generation) {
		struct rls_wire_process *process = bpf_map_lookup_elem(&tracked, &thread->pid);

		if (process)
			load_settings(thread, process);
	}
	if (!thread->announced)
		announce(thread, task);
}

/* The state of the thread that runs now, while something is being recorded; NULL when its process is not tracked. */
static __always_inline struct thread_state *running_thread(struct task_struct *task)
{
	struct thread_state *thread = bpf_task_storage_get(&threads, task, NULL, 0);

	if (!thread || !thread->pid)
		return create_thread(task);
	update_thread(thread, task);
	return thread;
}

/* NULL also when nothing is being recorded; then *task stays as it is. The task is handed on, as to ask for it
 * again costs 19 ns where each return of the kernel's is made safe. */
static __always_inline struct thread_state *current_thread_and_task(struct task_struct **task)
{
	if (!recording_since_ns)
		return NULL;
	*task = bpf_get_current_task_btf();
	return running_thread(*task);
}

static __always_inline struct thread_state *current_thread(void)
{
	struct task_struct *task;

	return current_thread_and_task(&task);
}

/* What began before a window's edge may have ended unseen: as at the start of recording,
 * the next hit tells what the thread is in. */
static __always_inline void forget_stale_frames(struct thread_state *thread)
{
	if (!windows || thread->window == window_edges)
		return;
	thread->window = window_edges;
	thread->depth = 0;
	thread->base = 0;
	thread->category = 0;
}

/* Between windows; while they are put on and taken off, some are still live. */
static __always_inline bool is_out_of_window(__u64 cookie)
{
	return windows && RLS_COOKIE_WINDOWED(cookie) && window_edges & 1;
}

/* The category of the code at an address: that of the library with a role that holds it,
 * else Python's. For callers that were entered before recording began. */
SUBPROGRAM __u8 category_of_address(__u32 pid, __u64 address)
{
	struct rls_wire_ranges *known = bpf_map_lookup_elem(&ranges, &pid);

	if (!known)
		return PYTHON;
	for (__u32 i = 0; i < RLS_RANGES_MAX; i++) {
		if (i >= known->count)
			break;
		if (address >= known->range[i].start && address < known->range[i].end)
			return known->range[i].category;
	}
	return PYTHON;
}

static __always_inline __u64 word_at(__u64 address)
{
	__u64 word = 0;

	bpf_probe_read_user(&word, sizeof(word), (void *)address);
	return word;
}

/* Whether there is a top frame whose return slot is at or below limit. */
static __always_inline bool is_over(const struct thread_state *thread, __u64 limit)
{
	__u32 depth = thread->depth;

	return depth && FRAME_SP(thread->frames[FRAME(depth - 1)]) <= limit;
}

/* Takes that frame off: false if there is none. *below: the category then. */
static __always_inline bool leave_frame(struct thread_state *thread, __u64 limit, __u8 *below)
{
	__u32 top = thread->depth;

	if (top == 0)
		return false;
	top--;
	if (FRAME_SP(thread->frames[FRAME(top)]) > limit)
		return false;
	thread->depth = top;
	*below = top ? FRAME_KIND(thread->frames[FRAME(top - 1)]) & FRAME_CATEGORY : thread->base;
	return true;
}

/* Of all frames but the first. */
extern int leave_further_frames(struct thread_state *thread, __u64 limit, __u32 site);

/* Ends every frame whose return slot is at or below limit: mostly one. */
static __always_inline void leave_frames(struct thread_state *thread, __u64 limit, __u32 site)
{
	__u8 below;

	if (!leave_frame(thread, limit, &below))
		return;
	if (below != thread->category)
		emit_category_here(thread, below, site);
	if (is_over(thread, limit))
		leave_further_frames(thread, limit, site);
}

/* Whether what is below the first frame is known for good. */
static __always_inline bool is_python_s_own(const struct thread_state *thread)
{
	return thread->base == PYTHON;
}

/* With no frame left, a hit has shown what is below: Python, for good; or a library, until
 * another hit shows more. The thread may have been inside that library when recording began, or
 * the library may own the thread. CUDA is never such an owner: what a thread does there ends
 * soon, and with nothing else below, its return is not detected. */
static __always_inline void set_base_category(struct thread_state *thread, __u8 base, __u32 site)
{
	if (thread->depth || is_python_s_own(thread) || thread->base == base)
		return;
	if (base == CUDA_API && thread->base)
		return;
	/* Code without a role, on a thread without Python frames: samples say what it is in. */
	if (base == PYTHON && !may_be_in_python(thread->pid))
		return;
	thread->base = base;
	if (thread->category != base)
		emit_category(thread, base, site);
}

/* The same, from an address that the thread came from or returns to. */
static __always_inline void classify_base(struct thread_state *thread, __u64 address, __u32 site)
{
	if (!thread->depth && !is_python_s_own(thread))
		set_base_category(thread, category_of_address(thread->pid, address), site);
}

/* As enum rls_site_exit of userspace/machine_code/site.h; attach/cookie.c asserts it. */
enum { EXIT_RETURN_PROBE, EXIT_SITES, EXIT_UNSEEN };

/* The kernel sets no more return probes on a task that has so many pending. */
#define PENDING_RETURNS_MAX 64

/* What will see the end of the function entered now: FRAME_*, or 0 for nothing. */
static __always_inline __u8 end_seen_by(const struct task_struct *task, __u8 exit)
{
	if (exit != EXIT_RETURN_PROBE)
		return exit == EXIT_SITES ? FRAME_EXIT_SITES : 0;
	/* Loads of its own: two calls of bpf_probe_read_kernel() are a tenth of the hit. */
	return task->utask->depth < PENDING_RETURNS_MAX ? FRAME_RETURN_PROBE : 0;
}

/* Where the kernel makes a function with a return probe return to. */
static __always_inline __u64 return_trampoline(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
}

/* An entry with the return slot of a frame whose end would have been seen: the function
 * has jumped to another one, which will return in its place. Under a return probe the slot
 * tells that from a new call after a longjmp or an exception: it was rewritten. Else it is
 * known of the function entered whether any jumps to it. */
static __always_inline bool is_tail_jump(const struct thread_state *thread, __u64 sp, __u64 cookie)
{
	__u32 top = thread->depth;
	__u64 frame;

	if (!top)
		return false;
	frame = thread->frames[FRAME(top - 1)];
	if (FRAME_SP(frame) != sp)
		return false;
	if (FRAME_KIND(frame) & FRAME_RETURN_PROBE)
		return word_at(sp) == return_trampoline();
	return (FRAME_KIND(frame) & FRAME_EXIT_SITES) && RLS_COOKIE_JUMPED_TO(cookie);
}

/* Frames that sp proves over must have been left before. */
static __always_inline void enter_frame(struct thread_state *thread, const struct task_struct *task,
					__u64 sp, __u8 category, __u8 exit, __u32 site)
{
	__u32 top;

	if (thread->category == category)
		return;
	top = thread->depth;
	if (top && FRAME_SP(thread->frames[FRAME(top - 1)]) == sp)
		top--; /* it has jumped here */
	if (top >= RLS_FRAMES_MAX) {
		thread->overflowed++;
		return;
	}
	thread->frames[FRAME(top)] = FRAME_OF(sp, category | end_seen_by(task, exit));
	thread->depth = top + 1;
	emit_category_here(thread, category, site);
}

#endif
