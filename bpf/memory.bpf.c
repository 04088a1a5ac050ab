/* Memory: what the allocators of stock libraries report of each block (bpf/wire/memory.h). */
#include "bpf/memory.bpf.h"
#include "bpf/name.bpf.h"
#include "bpf/tensor.bpf.h"

/* User space sizes them, and leaves them one entry each where memory is not recorded. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RLS_MEMORY_LINES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct rls_wire_memory_line);
} memory_lines SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RLS_MEMORY_LINES);
	__type(key, struct rls_wire_memory_key);
	__type(value, __u32);
} memory_places SEC(".maps");
/* Places that were given back. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, RLS_MEMORY_LINES);
	__uint(key_size, 0);
	__type(value, __u32);
} memory_free_places SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RLS_MEMORY_BLOCKS);
	__type(key, struct rls_wire_block_key);
	__type(value, struct rls_wire_block);
} memory_blocks SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RLS_MEMORY_DEVICES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct rls_wire_device_key);
	__type(value, struct rls_wire_device);
} memory_devices SEC(".maps");

__u64 memory_counts[RLS_MEMORY_COUNT_MAX] = {};
/* Sources whose new blocks are counted now, and those whose blocks are followed to their ends: a bit for each
 * enum rls_memory_source. */
__u32 memory_counted = 0, memory_followed = 0;

/* A body that was interrupted took longer than what it cost. */
#define BODY_NS_MAX 20000
#define CHARGED_NS_MAX 0xc0000000U

static __always_inline void count_memory(enum rls_memory_count which, __u64 by)
{
	__sync_fetch_and_add(&memory_counts[which], by);
}

static __always_inline bool in_sources(const __u32 *sources, __u32 source)
{
	return *(const volatile __u32 *)sources >> (source & (RLS_MEMORY_SOURCES - 1)) & 1;
}

/* ---- lines ---- */

static __always_inline bool take_line_place(__u32 *place)
{
	__u64 next;

	if (memory_counts[RLS_MEMORY_PLACES] < RLS_MEMORY_LINES) {
		next = __sync_fetch_and_add(&memory_counts[RLS_MEMORY_PLACES], 1);
		if (next < RLS_MEMORY_LINES) {
			*place = next;
			return true;
		}
	}
	return !bpf_map_pop_elem(&memory_free_places, place);
}

/* A place for a key that is new. Another CPU may be about to make one too. */
__noinline int make_line(struct thread_state *thread, const struct rls_wire_memory_key *of)
{
	struct rls_wire_memory_line *line;
	struct rls_wire_memory_key key;
	__u32 place = 0, *made;

	if (!thread || !of)
		return -1;
	key = *of; /* before 6.2 keys of maps must lie on the stack */
	if (!take_line_place(&place))
		return -1;
	line = bpf_map_lookup_elem(&memory_lines, &place);
	if (!line)
		return -1;
	line->key = key;
	if (bpf_map_update_elem(&memory_places, &key, &place, BPF_NOEXIST)) {
		line->key.pid = 0;
		bpf_map_push_elem(&memory_free_places, &place, 0);
		made = bpf_map_lookup_elem(&memory_places, &key);
		return made ? (int)*made : -1;
	}
	count_memory(RLS_MEMORY_MADE, 1);
	return place;
}

static __always_inline int find_line(struct thread_state *thread,
				     const struct rls_wire_memory_key *key)
{
	__u32 *place = bpf_map_lookup_elem(&memory_places, key);

	if (place)
		return *place;
	send_name(thread, key->operation);
	send_name(thread, key->phase);
	return make_line(thread, key);
}

/* A row's places form a ring, of which so many are added up. */
#define PLACES_ADDED 4

static __always_inline __u64 live_bytes_of(const struct rls_wire_memory_line *line)
{
	__u64 freed_bytes = *(volatile __u64 *)&line->freed_bytes;

	return *(volatile __u64 *)&line->alloc_bytes - freed_bytes;
}

static __always_inline void raise_peak(struct rls_wire_memory_line *line)
{
	__u64 live_bytes = live_bytes_of(line);
	struct rls_wire_memory_line *other = line;

	for (int i = 1; i < PLACES_ADDED && other->next; i++) {
		__u32 next = other->next - 1;

		other = bpf_map_lookup_elem(&memory_lines, &next);
		if (!other || other == line)
			break;
		live_bytes += live_bytes_of(other);
	}
	if ((__s64)live_bytes > (__s64) * (volatile __u64 *)&line->peak_bytes)
		*(volatile __u64 *)&line->peak_bytes = live_bytes;
}

static __always_inline void count_alloc(struct rls_wire_memory_line *line, __u64 bytes)
{
	__sync_fetch_and_add(&line->alloc_bytes, bytes);
	__sync_fetch_and_add(&line->allocs, 1);
	raise_peak(line);
}

static __always_inline void count_free(const struct rls_wire_block *block, __u64 now_ns)
{
	struct rls_wire_memory_line *line = bpf_map_lookup_elem(&memory_lines, &block->line);
	__u64 lived_ns = now_ns - block->born_ns;
	__u32 bucket = rls_age_bucket(lived_ns);

	if (!line)
		return;
	__sync_fetch_and_add(&line->frees, 1);
	__sync_fetch_and_add(&line->freed_bytes, block->bytes);
	if (lived_ns < RLS_TEMPORARY_NS)
		__sync_fetch_and_add(&line->temporary_bytes, block->bytes);
	if (bucket < RLS_AGES)
		__sync_fetch_and_add(&line->ages[bucket], 1);
}

/* ---- blocks ---- */

/* A hit. */
struct memory_hit {
	struct rls_wire_block_key block;
	__u64 bytes;
	__u64 now_ns;
};

/* Blocks from before the recording are not there, nor are those of a parent in its child. */
__noinline int end_block(const struct memory_hit *hit)
{
	struct rls_wire_block *found, block;
	struct rls_wire_block_key key;

	if (!hit)
		return 0;
	key = hit->block;
	found = bpf_map_lookup_elem(&memory_blocks, &key);
	if (!found)
		return 0;
	block = *found;
	if (!bpf_map_delete_elem(&memory_blocks, &key))
		count_free(&block, hit->now_ns);
	return 0;
}

/* The place of the line that is executing; -1: there is no room. */
__noinline int line_of_hit(struct thread_state *thread, const struct memory_hit *hit)
{
	struct rls_wire_memory_key key = {0};
	int found;

	if (!thread || !hit)
		return -1;
	key.pid = thread->pid;
	key.image = hit->block.image;
	key.source = hit->block.source;
	key.device = key.source == MEMORY_GPU ? hit->block.domain : 0;
	read_line(bpf_get_current_task_btf(), &key);
	read_operation(thread, &key);
	found = find_line(thread, &key);
	if (found < 0)
		count_memory(RLS_MEMORY_LOST_LINES, 1);
	return found;
}

/* That line, and its place. NULL: there is no room. */
static __always_inline struct rls_wire_memory_line *
find_line_of_hit(struct thread_state *thread, const struct memory_hit *hit, __u32 *place)
{
	int found = line_of_hit(thread, hit);

	*place = found;
	return found < 0 ? NULL : bpf_map_lookup_elem(&memory_lines, place);
}

__noinline int begin_block(struct thread_state *thread, const struct memory_hit *hit)
{
	struct rls_wire_block_key block_key;
	struct rls_wire_memory_line *line;
	struct rls_wire_block block = {0};
	__u32 place;

	if (!thread || !hit)
		return 0;
	line = find_line_of_hit(thread, hit, &place);
	if (!line)
		return 0;
	count_alloc(line, hit->bytes);
	if (!in_sources(&memory_followed, hit->block.source))
		return 0;
	block.bytes = hit->bytes;
	block.born_ns = hit->now_ns;
	block.line = place;
	block_key = hit->block;
	if (bpf_map_update_elem(&memory_blocks, &block_key, &block, BPF_ANY))
		count_memory(RLS_MEMORY_LOST_BLOCKS, 1);
	return 0;
}

/* ---- copies ---- */

__noinline int count_copy(struct thread_state *thread, const struct memory_hit *hit)
{
	struct rls_wire_memory_line *line;
	__u32 place;

	if (!thread || !hit || !hit->bytes)
		return 0;
	line = find_line_of_hit(thread, hit, &place);
	if (!line)
		return 0;
	__sync_fetch_and_add(&line->alloc_bytes, hit->bytes);
	__sync_fetch_and_add(&line->allocs, 1);
	return 0;
}

/* PyTorch counts a tensor where it is copied to, and is in the C library's memmove for it, or not. */
static __always_inline void take_tensor_copy(struct thread_state *thread, __u64 sp, __u64 to,
					     __u64 from, struct memory_hit *hit)
{
	struct tensor source, target;
	int from_known, to_known;

	if (word_at(to) == word_at(from))
		return; /* itself: nothing is copied */
	from_known = read_tensor(word_at(from), &source);
	to_known = read_tensor(word_at(to), &target);
	if (from_known == TENSOR_ELSEWHERE || to_known == TENSOR_ELSEWHERE)
		return; /* the GPU's own records say what it copied */
	if (from_known != TENSOR_HERE || to_known != TENSOR_HERE) {
		count_memory(RLS_MEMORY_LOST_COPIES, 1);
		return;
	}
	hit->block.source = RLS_MEMORY_COPIES;
	hit->bytes = target.bytes;
	thread->copying.sp = sp;
	thread->copying.return_address = word_at(sp);
	thread->copying.start = target.address;
	thread->copying.bytes = target.address ? target.bytes : 0;
	thread->copying.left = thread->copying.bytes;
	count_copy(thread, hit);
}

/* Whether it is a part of a tensor's copy, which has been counted: that has not returned, and this writes there. */
static __always_inline bool is_tensor_s(struct thread_state *thread, __u64 sp, __u64 to,
					__u64 bytes)
{
	__u64 offset = to - thread->copying.start;

	if (bytes > thread->copying.left || sp >= thread->copying.sp)
		return false;
	if (offset > thread->copying.bytes || bytes > thread->copying.bytes - offset)
		return false;
	if (word_at(thread->copying.sp) != thread->copying.return_address)
		return false;
	thread->copying.left -= bytes;
	return true;
}

static __always_inline void take_copy(struct thread_state *thread, struct pt_regs *ctx,
				      __u32 report, const __u64 argument[5], struct memory_hit *hit)
{
	__u64 sp = READ_REGISTER(PT_REGS_SP(ctx));

	if (report == RLS_MEMORY_COPY_TENSOR) {
		take_tensor_copy(thread, sp, argument[0], argument[1], hit);
		return;
	}
	if (is_tensor_s(thread, sp, argument[0], argument[2]))
		return;
	hit->block.source = RLS_MEMORY_COPIES;
	hit->bytes = argument[2];
	count_copy(thread, hit);
}

/* ---- what the C library gives ---- */

#define REGISTER(number, name)                                                                     \
	case number:                                                                               \
		return READ_REGISTER(ctx->name)

static __always_inline __u64 register_of(struct pt_regs *ctx, __u32 number)
{
	switch (number) {
		REGISTER(0, ax);
		REGISTER(1, cx);
		REGISTER(2, dx);
		REGISTER(3, bx);
		REGISTER(5, bp);
		REGISTER(6, si);
		REGISTER(7, di);
		REGISTER(8, r8);
		REGISTER(9, r9);
		REGISTER(10, r10);
		REGISTER(11, r11);
		REGISTER(12, r12);
		REGISTER(13, r13);
		REGISTER(14, r14);
		REGISTER(15, r15);
	default:
		return 0;
	}
}

__noinline int count_malloc(struct thread_state *thread, const struct memory_hit *hit)
{
	struct rls_wire_memory_line *line;
	__u32 place;
	int found;

	if (!thread || !hit)
		return 0;
	thread->unreported.bytes = 0;
	found = line_of_hit(thread, hit);
	place = found;
	line = found < 0 ? NULL : bpf_map_lookup_elem(&memory_lines, &place);
	if (!line)
		return 0;
	__sync_fetch_and_add(&line->alloc_bytes, hit->bytes - RLS_MALLOC_HEAD_BYTES);
	__sync_fetch_and_add(&line->allocs, 1);
	thread->unreported.bytes = hit->bytes;
	thread->unreported.line = place;
	return 0;
}

static __always_inline void take_malloc(struct thread_state *thread, struct pt_regs *ctx,
					__u64 cookie, struct memory_hit *hit)
{
	hit->bytes = register_of(ctx, RLS_MEMORY_RUNG_REGISTER(cookie));
	hit->block.source = MEMORY_MALLOC;
	if (hit->bytes > RLS_MALLOC_KEPT_BYTES)
		count_malloc(thread, hit);
}

/* So much more than a block's bytes its allocator may have asked for, to align it: PyTorch to 64 bytes, large ones to
 * a page. */
#define ALIGNED_MORE 160
#define PAGE_ALIGNED_MORE 4352
#define PAGE_ALIGNED_BYTES (1 << 20)

/* A block that is reported is the one that the C library has just given, if that is as large: it counts once. */
static __always_inline void take_back_malloc(struct thread_state *thread,
					     const struct memory_hit *hit)
{
	__u64 more = thread->unreported.bytes - hit->bytes;
	struct rls_wire_memory_line *line;
	__u32 place = thread->unreported.line;

	if (!thread->unreported.bytes ||
	    more > (hit->bytes < PAGE_ALIGNED_BYTES ? ALIGNED_MORE : PAGE_ALIGNED_MORE))
		return;
	line = bpf_map_lookup_elem(&memory_lines, &place);
	if (line && line->key.pid == thread->pid && line->key.source == MEMORY_MALLOC) {
		__sync_fetch_and_add(&line->freed_bytes,
				     thread->unreported.bytes - RLS_MALLOC_HEAD_BYTES);
		__sync_fetch_and_add(&line->frees, 1);
	}
	thread->unreported.bytes = 0;
}

/* ---- reports ---- */

/* What a caching allocator has of a device now. */
static __always_inline void note_device(struct thread_state *thread, const struct memory_hit *hit,
					__u64 allocated_bytes, __u64 reserved_bytes, bool full)
{
	struct rls_wire_device_key key = {.pid = thread->pid, .device = hit->block.domain};
	struct rls_wire_device *known = bpf_map_lookup_elem(&memory_devices, &key), device = {0};

	if (known && known->image == hit->block.image)
		device.full_ns = known->full_ns;
	device.allocated_bytes = allocated_bytes;
	device.reserved_bytes = reserved_bytes;
	device.image = hit->block.image;
	if (full)
		device.full_ns = hit->now_ns;
	bpf_map_update_elem(&memory_devices, &key, &device, BPF_ANY);
	count_memory(RLS_MEMORY_REPORTS, 1);
}

/* c10::Device: its type, then its index. The CPU's memory has a reporter of its own. */
#define DEVICE_TYPE(device) ((device)&0xff)
#define DEVICE_INDEX(device) ((device) >> 8 & 0xff)

static __always_inline void take_report(struct thread_state *thread, __u32 report,
					const __u64 argument[5], struct memory_hit *hit)
{
	switch (report) {
	case RLS_MEMORY_TENSOR_NEW:
	case RLS_MEMORY_TENSOR_DELETE:
		hit->block.source = MEMORY_TENSOR;
		hit->block.address = argument[1];
		hit->bytes = argument[2];
		break;
	case RLS_MEMORY_TRACK:
	case RLS_MEMORY_UNTRACK:
		hit->block.source = MEMORY_ARRAY;
		hit->block.domain = argument[0];
		hit->block.address = argument[1];
		hit->bytes = argument[2];
		break;
	case RLS_MEMORY_DEVICE:
		if (!DEVICE_TYPE(argument[4]))
			return;
		hit->block.source = MEMORY_GPU;
		hit->block.domain = DEVICE_INDEX(argument[4]);
		hit->block.address = argument[0];
		hit->bytes = argument[1];
		note_device(thread, hit, argument[2], argument[3], false);
		break;
	case RLS_MEMORY_DEVICE_FULL:
		if (!DEVICE_TYPE(argument[3]))
			return;
		hit->block.domain = DEVICE_INDEX(argument[3]);
		note_device(thread, hit, argument[1], argument[2], true);
		return;
	default:
		return;
	}
	if (!hit->block.address || !in_sources(&memory_counted, hit->block.source))
		return;
	/* Also what is followed at this address: its end was not seen. */
	if (in_sources(&memory_followed, hit->block.source))
		end_block(hit);
	if (report == RLS_MEMORY_TENSOR_DELETE || report == RLS_MEMORY_UNTRACK ||
	    (report == RLS_MEMORY_DEVICE && (__s64)hit->bytes <= 0))
		return;
	if (hit->block.source != MEMORY_GPU)
		take_back_malloc(thread, hit);
	begin_block(thread, hit);
}

/* A thread may meet nothing else for long. What has no room in its totals is not charged. */
static __always_inline void charge_hit(struct thread_state *thread, __u64 cost_ns)
{
	thread->hit_totals.hits++;
	if (thread->hit_totals.cost_ns < CHARGED_NS_MAX)
		thread->hit_totals.cost_ns += cost_ns;
}

static __always_inline int handle_memory(struct pt_regs *ctx)
{
	__u64 argument[5] = {
		READ_REGISTER(PT_REGS_PARM1(ctx)), READ_REGISTER(PT_REGS_PARM2(ctx)),
		READ_REGISTER(PT_REGS_PARM3(ctx)), READ_REGISTER(PT_REGS_PARM4(ctx)),
		READ_REGISTER(PT_REGS_PARM5(ctx)),
	};
	struct thread_state *thread = current_thread();
	struct memory_hit hit = {0};
	__u64 cookie, body_ns;
	__u32 cost;

	if (!thread)
		return 0;
	cookie = bpf_get_attach_cookie(ctx);
	if ((__u8)cookie == RLS_MEMORY_FINALIZE || (__u8)cookie == RLS_MEMORY_EXIT)
		thread->finalizing = 1;
	/* The end of a process frees nothing. */
	if (thread->finalizing)
		return 0;
	hit.now_ns = bpf_ktime_get_ns();
	hit.block.pid = thread->pid;
	hit.block.image = current_image();
	if ((__u8)cookie == RLS_MEMORY_RUNG) {
		cost = MEMORY_MALLOC;
		if (in_sources(&memory_counted, MEMORY_MALLOC))
			take_malloc(thread, ctx, cookie, &hit);
	} else if ((__u8)cookie >= RLS_MEMORY_COPY_TENSOR) {
		cost = RLS_MEMORY_COPY_COST;
		if (in_sources(&memory_counted, RLS_MEMORY_COPY_COST))
			take_copy(thread, ctx, (__u8)cookie, argument, &hit);
	} else {
		take_report(thread, (__u8)cookie, argument, &hit);
		cost = hit.block.source;
	}
	body_ns = bpf_ktime_get_ns() - hit.now_ns;
	if (body_ns > BODY_NS_MAX)
		body_ns = 0;
	body_ns += RLS_COOKIE_COST_NS(cookie);
	charge_hit(thread, body_ns);
	count_memory(RLS_MEMORY_HITS, 1);
	count_memory(RLS_MEMORY_HIT_NS, body_ns);
	count_memory(RLS_MEMORY_SOURCE_NS + (cost & (RLS_MEMORY_SOURCES - 1)), body_ns);
	return 0;
}

/* Twice: for uprobe_multi links (kernel >= 6.6) and for perf events. */
SEC("uprobe.multi")
int on_memory_multi(struct pt_regs *ctx)
{
	return handle_memory(ctx);
}

SEC("uprobe")
int on_memory(struct pt_regs *ctx)
{
	return handle_memory(ctx);
}
