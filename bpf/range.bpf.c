/* Ranges of other people's APIs (NVTX, record_function): their sites. */
#include "bpf/operation.bpf.h"
#include "bpf/range_totals.bpf.h"

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

/* All of these return the length. */
static __always_inline __u32 read_std_string(char *text, __u64 string)
{
	__u64 data = word_at(string), length = word_at(string + 8);

	if (length > RLS_WIRE_NAME_BYTES - 1)
		length = RLS_WIRE_NAME_BYTES - 1;
	if (bpf_probe_read_user(text, length & (RLS_WIRE_NAME_BYTES - 1), (void *)data))
		return 0;
	return length;
}

static __always_inline __u32 read_narrow(char *text, __u64 string)
{
	long length = bpf_probe_read_user_str(text, RLS_WIRE_NAME_BYTES, (void *)string);

	return length > 0 ? length - 1 : 0;
}

/* UTF-32; what is not ASCII is shown as '?'. */
static __always_inline __u32 read_wide(char *text, __u64 string)
{
	__u32 length = 0;

	for (__u32 i = 0; i < RLS_WIRE_NAME_BYTES - 1; i++) {
		__u32 character = 0;

		if (bpf_probe_read_user(&character, sizeof(character), (void *)(string + 4 * i)) ||
		    !character)
			break;
		text[i] = character < 128 ? character : '?';
		length = i + 1;
	}
	return length;
}

static __always_inline __u32 read_attributes(char *text, __u64 attributes)
{
	__u64 message = word_at(attributes + NVTX_MESSAGE_OFFSET);
	__u16 size = word_at(attributes + NVTX_SIZE_OFFSET);
	__u32 type = word_at(attributes + NVTX_TYPE_OFFSET);

	if (size < NVTX_SIZE_MIN)
		return 0;
	if (type == NVTX_TYPE_ASCII)
		return read_narrow(text, message);
	return type == NVTX_TYPE_WIDE ? read_wide(text, message) : 0;
}

/* text: RLS_WIRE_NAME_BYTES, which are zero after the name. */
static __always_inline __u32 read_name(char *text, __u8 kind, __u64 name)
{
	__builtin_memset(text, 0, RLS_WIRE_NAME_BYTES);
	switch (kind) {
	case PUSH_STD_STRING:
		return read_std_string(text, name);
	case PUSH_CSTR:
		return read_narrow(text, name);
	case PUSH_WCSTR:
		return read_wide(text, name);
	case PUSH_NVTX_ATTRIBUTES:
		return read_attributes(text, name);
	default:
		return 0;
	}
}

static __always_inline void send_range(struct thread_state *thread,
				       const struct registers *registers, __u64 cookie)
{
	__u8 kind = cookie;
	struct rls_wire_range *record = control_reserve(
		struct rls_wire_range, kind == POP ? RLS_WIRE_RANGE_POP : RLS_WIRE_RANGE_PUSH,
		thread->pid, thread->tid, bpf_ktime_get_ns());

	if (!record) {
		thread->missed |= MISSED_RANGES;
		return;
	}
	if (thread->missed & MISSED_RANGES)
		record->header.flags = RLS_WIRE_RANGE_AFTER_LOSS;
	thread->missed &= ~MISSED_RANGES;
	record->token = argument_of(registers, cookie >> 16);
	record->reserved = 0;
	record->length = kind == POP ? 0 : thread->ranges.length;
	__builtin_memcpy(record->text, thread->ranges.text, sizeof(record->text));
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

static __always_inline void totals_range(struct thread_state *thread,
					 const struct registers *registers, __u64 cookie)
{
	__u64 token = argument_of(registers, cookie >> 16);
	__u8 kind = cookie;

	if (kind == POP) {
		range_totals_pop(thread, bpf_ktime_get_ns(), token);
		return;
	}
	range_totals_push(thread, bpf_ktime_get_ns(), token);
}

/* Its name is in thread->ranges after that. False: its end may not be seen. */
static __always_inline bool count_begin(struct thread_state *thread,
					const struct registers *registers, __u64 cookie)
{
	thread->ranges.length =
		read_name(thread->ranges.text, (__u8)cookie, argument_of(registers, cookie >> 8));
	__sync_fetch_and_add(&ranges_begun[is_library_own(thread) ? 1 : 0], 1);
	return !ranges_windowed;
}

static __always_inline int handle_range(struct pt_regs *ctx)
{
	struct registers registers = {{
		READ_REGISTER(PT_REGS_PARM1(ctx)),
		READ_REGISTER(PT_REGS_PARM2(ctx)),
		READ_REGISTER(PT_REGS_PARM3(ctx)),
		READ_REGISTER(PT_REGS_PARM4(ctx)),
		READ_REGISTER(PT_REGS_PARM5(ctx)),
		READ_REGISTER(ctx->r9),
	}};
	struct thread_state *thread = current_thread();
	__u64 cookie;

	if (!thread)
		return 0;
	cookie = bpf_get_attach_cookie(ctx);
	thread->hit_totals.hits++;
	thread->hit_totals.cost_ns += RLS_COOKIE_COST_NS(cookie);
	if ((__u8)cookie != POP && !count_begin(thread, &registers, cookie))
		return 0;
	sync_operations(thread);
	if (totals_mode)
		totals_range(thread, &registers, cookie);
	else
		send_range(thread, &registers, cookie);
	return 0;
}

/* Twice: for uprobe_multi links (kernel >= 6.6) and for perf events. */
SEC("uprobe.multi")
int on_range_multi(struct pt_regs *ctx)
{
	return handle_range(ctx);
}

SEC("uprobe")
int on_range(struct pt_regs *ctx)
{
	return handle_range(ctx);
}
