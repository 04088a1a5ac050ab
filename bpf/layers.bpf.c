/* Layers: calls of a model's layers, at the one function by which the interpreter calls objects whose class has a
 * __call__ of its own (bpf/wire/layer.h).
 *
 * Each open call is known by the address of its return slot, as frames of state.bpf.h are: a hit at a stack pointer
 * at or above it proves that the call is over, however it ended.
 */
#include "bpf/name.bpf.h"
#include "bpf/state.bpf.h"
#include "bpf/wire/layer.h"

/* CPython's objects on x86-64, 3.8 to 3.14 (userspace/python/cpython_layout.h). */
#define OBJECT_TYPE 8
#define TYPE_NAME 24
#define TYPE_MRO 344
#define TUPLE_COUNT 16

#define BASES_MAX 32 /* of a class, in which the name is searched */
/* "Module" with its end, as a number. */
#define NAME_BYTES 7
#define LAYER_BASE 0x656c75646f4dULL

/* A body that was interrupted took longer than what it cost. */
#define BODY_NS_MAX 20000
#define CHARGED_NS_MAX 0xc0000000U

struct open_layer {
	__u64 slot;
	__u32 number;
	__u32 reserved;
};

struct layer_thread {
	__u32 depth;
	__u32 image; /* of the program that the calls are of */
	struct open_layer open[RLS_LAYERS_OPEN];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct layer_thread);
} layer_threads SEC(".maps");
/* User space leaves these one entry each where layers are not recorded. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RLS_LAYER_OBJECTS);
	__type(key, struct rls_wire_layer_key);
	__type(value, __u32);
} layer_objects SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RLS_LAYER_TYPES);
	__type(key, struct rls_wire_layer_key);
	__type(value, __u32);
} layer_types SEC(".maps");

__u64 layer_counts[RLS_LAYER_COUNT_MAX] = {};
bool layers_wanted = false;
/* Calls nested deeper are their caller's. */
__u32 layer_depth_max = RLS_LAYERS_OPEN;

#define OPEN(i)                                                                                    \
	({                                                                                         \
		__u32 open_ = (i);                                                                 \
		asm volatile("" : "+r"(open_));                                                    \
		open_ &(RLS_LAYERS_OPEN - 1);                                                      \
	})

static __always_inline void count_layer(enum rls_layer_count which, __u64 by)
{
	__sync_fetch_and_add(&layer_counts[which], by);
}

/* ---- which objects are layers ---- */

static __always_inline bool read_at(__u64 address, __u64 *out)
{
	return !bpf_probe_read_user(out, sizeof(*out), (void *)address);
}

/* Whether one of the classes that a type's objects have attributes of has the name. */
__noinline int has_layer_base(__u64 type, __u32 items_bytes)
{
	__u64 bases, count = 0;

	if (!read_at(type + TYPE_MRO, &bases) || !read_at(bases + TUPLE_COUNT, &count))
		return -1;
	for (__u32 i = 0; i < BASES_MAX && i < count; i++) {
		__u64 base, name, text = 0;

		if (!read_at(bases + items_bytes + 8 * i, &base) ||
		    !read_at(base + TYPE_NAME, &name) ||
		    bpf_probe_read_user(&text, NAME_BYTES, (void *)name))
			continue;
		if (text == LAYER_BASE)
			return 1;
	}
	return 0;
}

static __always_inline bool is_layer_type(const struct rls_wire_layer_key *of, __u32 items_bytes)
{
	struct rls_wire_layer_key key = *of;
	__u32 *known, now;
	int found;

	key.address = 0;
	known = bpf_map_lookup_elem(&layer_types, &key);
	if (known)
		return *known == RLS_LAYER_TYPE_YES;
	found = has_layer_base(key.type, items_bytes);
	if (found < 0) /* it is not in memory now */
		return false;
	now = found ? RLS_LAYER_TYPE_YES : RLS_LAYER_TYPE_NO;
	bpf_map_update_elem(&layer_types, &key, &now, BPF_ANY);
	return found;
}

/* Another CPU may be about to give it one, too. */
__noinline int number_layer(struct thread_state *thread, const struct rls_wire_layer_key *of,
			    __u32 root)
{
	struct rls_wire_layer_object *record;
	struct rls_wire_layer_key key;
	__u32 number, *known;

	if (!thread || !of)
		return 0;
	key = *of; /* before 6.2 keys of maps must lie on the stack */
	number = __sync_fetch_and_add(&layer_counts[RLS_LAYER_NUMBERS], 1) + 1;
	if (bpf_map_update_elem(&layer_objects, &key, &number, BPF_NOEXIST)) {
		known = bpf_map_lookup_elem(&layer_objects, &key);
		if (!known)
			count_layer(RLS_LAYER_LOST, 1);
		return known ? *known : 0;
	}
	record = control_reserve(struct rls_wire_layer_object, RLS_WIRE_LAYER_OBJECT, thread->pid,
				 thread->tid, bpf_ktime_get_ns());
	if (record) {
		record->address = key.address;
		record->type = key.type;
		record->number = number;
		record->root = root;
		bpf_ringbuf_submit(record, 0);
	}
	return number;
}

/* 0: it is none. */
static __always_inline __u32 find_layer(struct thread_state *thread, __u64 object, __u32 image,
					__u32 root, __u32 items_bytes)
{
	struct rls_wire_layer_key key = {.address = object, .pid = thread->pid, .image = image};
	__u32 *known;

	if (!object || !read_at(object + OBJECT_TYPE, &key.type) || !key.type)
		return 0;
	known = bpf_map_lookup_elem(&layer_objects, &key);
	if (known)
		return *known;
	if (!is_layer_type(&key, items_bytes))
		return 0;
	return number_layer(thread, &key, root);
}

/* ---- what is open on a thread ---- */

static __always_inline struct layer_thread *open_layers(struct task_struct *task, __u32 image)
{
	struct layer_thread *layers =
		bpf_task_storage_get(&layer_threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (layers && layers->image != image) {
		layers->image = image;
		layers->depth = 0;
	}
	return layers;
}

/* Calls whose return slot is at or below that are over. Whether there were any. */
__noinline int close_layers(struct layer_thread *layers, __u64 limit)
{
	__u32 depth;
	int any = 0;

	if (!layers)
		return 0;
	depth = layers->depth;
	for (int i = 0; i < RLS_LAYERS_OPEN; i++) {
		if (!depth || layers->open[OPEN(depth - 1)].slot > limit)
			break;
		depth--;
		any = 1;
	}
	layers->depth = depth;
	return any;
}

/* One record on the transitions ring, as of a category (bpf/emit.bpf.h). */
__noinline int emit_layer(struct thread_state *thread, const struct layer_thread *layers,
			  __u32 begun)
{
	struct rls_wire_place *place;
	struct rls_wire_layer *event;
	__u64 now_ns, turn;
	__u32 depth;

	if (!thread || !layers)
		return 0;
	depth = layers->depth;
	now_ns = next_event_ns(thread);
	place = take_place_after_losses(thread, now_ns, &turn);
	if (!place)
		return 0;
	event = (struct rls_wire_layer *)&place->event;
	fill_event(thread, &event->header, sizeof(*event), RLS_WIRE_LAYER, now_ns,
		   &event->hit_totals);
	event->number = depth ? layers->open[OPEN(depth - 1)].number : 0;
	event->depth = depth;
	event->begun = begun;
	event->category = thread->category;
	hand_over(place, turn);
	return 0;
}

/* ---- hits ---- */

static __always_inline void begin_layer(struct thread_state *thread, struct layer_thread *layers,
					__u64 object, __u64 slot, __u64 cookie)
{
	bool over = close_layers(layers, slot);
	__u32 depth = layers->depth, number = 0;
	struct open_layer *open;

	if (depth < layer_depth_max && depth < RLS_LAYERS_OPEN)
		number = find_layer(thread, object, layers->image,
				    depth ? layers->open[0].number : 0,
				    RLS_LAYER_ITEMS_BYTES(cookie));
	if (number) {
		open = &layers->open[OPEN(depth)];
		open->slot = slot;
		open->number = number;
		layers->depth = depth + 1;
		count_layer(RLS_LAYER_CALLS, 1);
	}
	if (number || over)
		emit_layer(thread, layers, number != 0);
}

/* A hit costs time before its instant and after it (bpf/boundary.bpf.c). A thread may meet nothing else for long. */
static __always_inline void charge_layer(struct thread_state *thread, __u64 cost_ns)
{
	if (thread->hit_totals.cost_ns < CHARGED_NS_MAX)
		thread->hit_totals.cost_ns += cost_ns;
	count_layer(RLS_LAYER_HIT_NS, cost_ns);
}

static __always_inline int handle_layer(struct pt_regs *ctx)
{
	__u64 object = READ_REGISTER(PT_REGS_PARM1(ctx)), sp = READ_REGISTER(PT_REGS_SP(ctx));
	struct task_struct *task = NULL;
	struct thread_state *thread = current_thread_and_task(&task);
	__u64 cookie, since_ns, body_ns;
	struct layer_thread *layers;
	__u32 cost_ns, before_ns;
	__u8 edge;

	if (!thread || !layers_wanted)
		return 0;
	layers = open_layers(task, current_image());
	if (!layers)
		return 0;
	cookie = bpf_get_attach_cookie(ctx);
	cost_ns = RLS_COOKIE_COST_NS(cookie);
	edge = RLS_LAYER_EDGE(cookie);
	before_ns = cost_before_ns[edge == RLS_LAYER_RETURNED];
	if (before_ns > cost_ns)
		before_ns = cost_ns;
	thread->hit_totals.hits++;
	charge_layer(thread, before_ns);
	since_ns = bpf_ktime_get_ns();
	if (edge == RLS_LAYER_BEGINS)
		begin_layer(thread, layers, object, sp, cookie);
	else if (close_layers(layers, edge == RLS_LAYER_RETURNED
					      ? sp - 8
					      : sp + RLS_LAYER_SLOT_BYTES(cookie)))
		emit_layer(thread, layers, 0);
	body_ns = bpf_ktime_get_ns() - since_ns;
	charge_layer(thread, cost_ns - before_ns + (body_ns < BODY_NS_MAX ? body_ns : 0));
	count_layer(RLS_LAYER_HITS, 1);
	return 0;
}

/* Each program twice: for uprobe_multi links (kernel >= 6.6) and for perf events. */
SEC("uprobe.multi")
int on_layer_multi(struct pt_regs *ctx)
{
	return handle_layer(ctx);
}

SEC("uretprobe.multi")
int on_layer_return_multi(struct pt_regs *ctx)
{
	return handle_layer(ctx);
}

SEC("uprobe")
int on_layer(struct pt_regs *ctx)
{
	return handle_layer(ctx);
}

SEC("uretprobe")
int on_layer_return(struct pt_regs *ctx)
{
	return handle_layer(ctx);
}
