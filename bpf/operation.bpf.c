/* Operations: the annotation library's flush site, and ranges of other people's APIs. */
#include "bpf/operation.bpf.h"

/* A global function: verified by itself, and not with all that follows it. */
__attribute__((noinline)) int sync_before_switch(struct thread_state *thread)
{
	if (booking && thread)
		sync_operations(thread);
	return 0;
}

/* Hit every RLS_EDGE_FLUSH edges and at a thread's end, only while someone listens. */
static __always_inline int handle_flush(struct pt_regs *ctx)
{
	__u64 record = READ_REGISTER(PT_REGS_PARM1(ctx));
	struct thread_state *thread = current_thread();

	if (!thread)
		return 0;
	/* At thread end the library has already hidden its record: the site's argument is it. */
	if (thread->annotated && !thread->record)
		thread->record = record;
	thread->pile.hits++;
	thread->pile.cost_ns += RLS_COOKIE_COST_NS(bpf_get_attach_cookie(ctx));
	sync_operations(thread);
	return 0;
}

/* As enum rls_range_kind of userspace/annotate/foreign_ranges.h; attach/cookie.c asserts it. */
enum { PUSH_STD_STRING = 1, PUSH_CSTR, PUSH_WCSTR, PUSH_NVTX_ATTRIBUTES, POP };

#define NVTX_SIZE_OFFSET 2
#define NVTX_TYPE_OFFSET 32
#define NVTX_MESSAGE_OFFSET 40
#define NVTX_SIZE_MIN 48
#define NVTX_TYPE_ASCII 1
#define NVTX_TYPE_WIDE 2

struct registers {
	__u64 argument[6];
};

static __always_inline __u64 argument_of(const struct registers *registers, __u8 index)
{
	switch (index) {
	case 0:
		return registers->argument[0];
	case 1:
		return registers->argument[1];
	case 2:
		return registers->argument[2];
	case 3:
		return registers->argument[3];
	case 4:
		return registers->argument[4];
	case 5:
		return registers->argument[5];
	default:
		return 0;
	}
}

static __always_inline void read_std_string(struct rls_wire_range *record, __u64 string)
{
	__u64 data = word_at(string), length = word_at(string + 8);

	if (length > RLS_WIRE_NAME_BYTES - 1)
		length = RLS_WIRE_NAME_BYTES - 1;
	if (!bpf_probe_read_user(record->text, length & (RLS_WIRE_NAME_BYTES - 1), (void *)data))
		record->length = length;
}

static __always_inline void read_narrow(struct rls_wire_range *record, __u64 text)
{
	long length = bpf_probe_read_user_str(record->text, sizeof(record->text), (void *)text);

	if (length > 0)
		record->length = length - 1;
}

/* UTF-32; what is not ASCII is shown as '?'. */
static __always_inline void read_wide(struct rls_wire_range *record, __u64 text)
{
	for (__u32 i = 0; i < RLS_WIRE_NAME_BYTES - 1; i++) {
		__u32 character = 0;

		if (bpf_probe_read_user(&character, sizeof(character), (void *)(text + 4 * i)) ||
		    !character)
			break;
		record->text[i] = character < 128 ? character : '?';
		record->length = i + 1;
	}
}

static __always_inline void read_attributes(struct rls_wire_range *record, __u64 attributes)
{
	__u64 message = word_at(attributes + NVTX_MESSAGE_OFFSET);
	__u16 size = word_at(attributes + NVTX_SIZE_OFFSET);
	__u32 type = word_at(attributes + NVTX_TYPE_OFFSET);

	if (size < NVTX_SIZE_MIN)
		return;
	if (type == NVTX_TYPE_ASCII)
		read_narrow(record, message);
	else if (type == NVTX_TYPE_WIDE)
		read_wide(record, message);
}

static __always_inline void send_range(struct thread_state *thread,
				       const struct registers *registers, __u64 cookie)
{
	__u64 name = argument_of(registers, cookie >> 8);
	__u8 kind = cookie;
	struct rls_wire_range *record =
		control_reserve(struct rls_wire_range,
				kind == POP ? RLS_WIRE_RANGE_POP : RLS_WIRE_RANGE_PUSH,
				thread->pid, thread->tid, bpf_ktime_get_ns());

	if (!record) {
		thread->missed |= MISSED_RANGES;
		return;
	}
	if (thread->missed & MISSED_RANGES)
		record->header.flags = RLS_WIRE_RANGE_AFTER_LOSS;
	thread->missed &= ~MISSED_RANGES;
	record->token = argument_of(registers, cookie >> 16);
	record->length = 0;
	record->reserved = 0;
	__builtin_memset(record->text, 0, sizeof(record->text));
	if (kind == PUSH_STD_STRING)
		read_std_string(record, name);
	else if (kind == PUSH_CSTR)
		read_narrow(record, name);
	else if (kind == PUSH_WCSTR)
		read_wide(record, name);
	else if (kind == PUSH_NVTX_ATTRIBUTES)
		read_attributes(record, name);
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

static __always_inline int handle_range(struct pt_regs *ctx)
{
	struct registers registers = { {
		READ_REGISTER(PT_REGS_PARM1(ctx)),
		READ_REGISTER(PT_REGS_PARM2(ctx)),
		READ_REGISTER(PT_REGS_PARM3(ctx)),
		READ_REGISTER(PT_REGS_PARM4(ctx)),
		READ_REGISTER(PT_REGS_PARM5(ctx)),
		READ_REGISTER(ctx->r9),
	} };
	struct thread_state *thread = current_thread();
	__u64 cookie;

	if (!thread)
		return 0;
	cookie = bpf_get_attach_cookie(ctx);
	thread->pile.hits++;
	thread->pile.cost_ns += RLS_COOKIE_COST_NS(cookie);
	sync_operations(thread);
	send_range(thread, &registers, cookie);
	return 0;
}

/* Each program twice: for uprobe_multi links (kernel >= 6.6) and for perf events. */
SEC("uprobe.multi")
int on_flush_multi(struct pt_regs *ctx)
{
	return handle_flush(ctx);
}

SEC("uprobe.multi")
int on_range_multi(struct pt_regs *ctx)
{
	return handle_range(ctx);
}

SEC("uprobe")
int on_flush(struct pt_regs *ctx)
{
	return handle_flush(ctx);
}

SEC("uprobe")
int on_range(struct pt_regs *ctx)
{
	return handle_range(ctx);
}
