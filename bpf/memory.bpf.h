/* Memory: whose line a thread that allocates is in.
 *
 * The line is that of its innermost Python frame. Its operation is the thread's own, read from its annotation record; a
 * thread that never had one has that of the thread that it works for (operation_inherit.h in user space).
 */
#ifndef RLS_MEMORY_BPF_H
#define RLS_MEMORY_BPF_H

#include "bpf/operation.bpf.h"
#include "bpf/shared/python.bpf.h"
#include "bpf/wire/memory.h"

/* enum rls_memory_source; attach/cookie.c asserts them. */
#define MEMORY_TENSOR 0
#define MEMORY_ARRAY 1
#define MEMORY_MALLOC 2
#define MEMORY_GPU 4

#define OWNERLESS_FRAMES 4 /* entries from C that may lie above the innermost frame with code */

/* The first fields of struct rls_thread_record. */
struct record_head {
	__u64 head;
	__u32 tid;
	__u32 depth;
};

static __always_inline bool read_record(__u64 record, struct record_head *out)
{
	return record && !bpf_probe_read_user(out, sizeof(*out), (void *)record) && out->head;
}

static __always_inline __u64 innermost_name(__u64 record, const struct record_head *head)
{
	__u32 depth = head->depth < RLS_STACK_MAX ? head->depth : RLS_STACK_MAX;

	return depth ? word_at(RECORD_FIELD(record, stack) + (depth - 1) * sizeof(__u64)) : 0;
}

/* The main thread is it if there are several. */
static __always_inline void note_annotated(struct thread_state *thread,
					   const struct record_head *head)
{
	struct annotated_thread own = {.record = thread->record, .tid = head->tid};
	__u32 pid = thread->pid;

	if (thread->noted)
		return;
	thread->noted = 1;
	bpf_map_update_elem(&annotated_threads, &pid, &own,
			    thread->tid == pid ? BPF_ANY : BPF_NOEXIST);
}

static __always_inline __u64 inherited_operation(const struct thread_state *thread)
{
	struct annotated_thread *source;
	struct record_head head;
	__u32 pid = thread->pid;
	__u64 record;

	source = bpf_map_lookup_elem(&annotated_threads, &pid);
	if (!source)
		return 0;
	record = source->record;
	/* It may have ended. */
	if (!read_record(record, &head) || head.tid != source->tid)
		return 0;
	return innermost_name(record, &head);
}

static __always_inline void read_operation(struct thread_state *thread,
					   struct rls_wire_memory_key *key)
{
	struct record_head head;

	if (!thread->annotated)
		return;
	if (thread->phase_address)
		key->phase = word_at(thread->phase_address);
	if (!thread->record)
		find_record(thread);
	if (!read_record(thread->record, &head)) {
		key->operation = inherited_operation(thread);
		return;
	}
	note_annotated(thread, &head);
	key->operation = innermost_name(thread->record, &head);
}

static __always_inline void read_line(struct task_struct *task, struct rls_wire_memory_key *key)
{
	struct rls_wire_interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &key->pid);
	struct rls_wire_frame found = {0};
	__u64 frame;
	__u8 end;

	if (!interpreter)
		return;
	frame = innermost_frame(task, interpreter, &end);
	for (int i = 0; i < OWNERLESS_FRAMES && frame; i++) {
		int filled = read_python_frame(frame, interpreter, &found);

		if (filled > 0) {
			key->code = found.code;
			key->at = found.at;
			key->identity = found.identity;
			return;
		}
		if (filled < 0 || !read_word(frame + interpreter->frame_back, &frame))
			return;
	}
}

#endif
