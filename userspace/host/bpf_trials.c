#include "userspace/host/bpf_trials.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "analysis/base/cleanup.h"
#include "userspace/attach/features.h"

/* enum bpf_attach_type of kernel 6.6; Debian 12's own <linux/bpf.h> is older. */
#define ATTACH_TYPE_UPROBE_MULTI 48
#define COOKIE 7
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define CALL(helper)                                                                               \
	{                                                                                          \
		.code = BPF_JMP | BPF_CALL, .imm = (helper)                                        \
	}
#define MOVE(to, from)                                                                             \
	{                                                                                          \
		.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = (to), .src_reg = (from)            \
	}
#define SET(to, value)                                                                             \
	{                                                                                          \
		.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (to), .imm = (value)               \
	}
#define ADD(to, value)                                                                             \
	{                                                                                          \
		.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = (to), .imm = (value)               \
	}
#define LOAD_MAP(to, fd)                                                                           \
	{.code = BPF_LD | BPF_DW | BPF_IMM,                                                        \
	 .dst_reg = (to),                                                                          \
	 .src_reg = BPF_PSEUDO_MAP_FD,                                                             \
	 .imm = (fd)},                                                                             \
	{                                                                                          \
		.code = 0                                                                          \
	}
#define EXIT                                                                                       \
	{                                                                                          \
		.code = BPF_JMP | BPF_EXIT                                                         \
	}

/* A program that adds to a counter each time it runs. */
struct counter {
	int map;
	int program;
};

static void free_counter(const struct counter *counter)
{
	rls_cleanup_close(&counter->program);
	rls_cleanup_close(&counter->map);
}

#define _cleanup_counter_ __attribute__((cleanup(free_counter)))
#define NO_COUNTER                                                                                 \
	{                                                                                          \
		.map = -1, .program = -1                                                           \
	}

/* Adds 1, or with `cookie` the cookie its link was made with. Where the helper is missing
 * (before 5.15) the load fails, as it must: cookies distinguish sites. */
static int make_counter(enum bpf_prog_type type, struct bpf_prog_load_opts *options, bool cookie,
			struct counter *counter)
{
	counter->map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "rls_count", 4, 8, 1, NULL);
	if (counter->map < 0)
		return counter->map;

	const struct bpf_insn get_cookie = CALL(BPF_FUNC_get_attach_cookie);
	const struct bpf_insn one = SET(BPF_REG_0, 1);
	const struct bpf_insn code[] = {
		cookie ? get_cookie : one,
		MOVE(BPF_REG_7, BPF_REG_0),
		{.code = BPF_ST | BPF_W | BPF_MEM, .dst_reg = BPF_REG_10, .off = -4},
		MOVE(BPF_REG_2, BPF_REG_10),
		ADD(BPF_REG_2, -4),
		LOAD_MAP(BPF_REG_1, counter->map),
		CALL(BPF_FUNC_map_lookup_elem),
		{.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = BPF_REG_0, .off = 1},
		{.code = BPF_STX | BPF_DW | BPF_ATOMIC,
		 .dst_reg = BPF_REG_0,
		 .src_reg = BPF_REG_7,
		 .imm = BPF_ADD},
		SET(BPF_REG_0, 0),
		EXIT,
	};

	counter->program = bpf_prog_load(type, "rls_trial", "GPL", code, COUNT_OF(code), options);
	return counter->program < 0 ? counter->program : 0;
}

/* 0 when exactly `wanted` was counted, or with `wanted` 0 anything at all. */
static int expect_count(const struct counter *counter, uint64_t wanted)
{
	uint64_t count = 0;
	uint32_t key = 0;

	if (bpf_map_lookup_elem(counter->map, &key, &count))
		return -errno;
	return (wanted ? count == wanted : count > 0) ? 0 : -ENODATA;
}

static int open_perf_event(struct perf_event_attr *attributes)
{
	attributes->size = sizeof(*attributes);
	int fd = (int)syscall(SYS_perf_event_open, attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int rls_trial_bpf(void)
{
	_cleanup_counter_ struct counter counter = NO_COUNTER;

	return make_counter(BPF_PROG_TYPE_SOCKET_FILTER, NULL, false, &counter);
}

int rls_trial_ring_buffer(void)
{
	_cleanup_close_ int map = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "rls_ring", 0, 0,
						 (uint32_t)sysconf(_SC_PAGESIZE), NULL);
	return map < 0 ? map : 0;
}

/* Task storage wants its key and value described: a BTF of two integers. */
static int make_task_storage(void)
{
	struct btf *types = btf__new_empty();
	int key, value, map;

	if (!types)
		return -errno;
	key = btf__add_int(types, "int", 4, BTF_INT_SIGNED);
	value = btf__add_int(types, "long", 8, BTF_INT_SIGNED);
	map = btf__load_into_kernel(types);
	if (map >= 0) {
		LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_NO_PREALLOC,
			    .btf_fd = (uint32_t)btf__fd(types), .btf_key_type_id = (uint32_t)key,
			    .btf_value_type_id = (uint32_t)value);
		map = bpf_map_create(BPF_MAP_TYPE_TASK_STORAGE, "rls_task", 4, 8, 0, &options);
	}
	btf__free(types);
	return map;
}

int rls_trial_task_storage(void)
{
	_cleanup_close_ int program = -1;
	_cleanup_close_ int map = make_task_storage();

	if (map < 0)
		return map;

	const struct bpf_insn code[] = {
		CALL(BPF_FUNC_get_current_task_btf),
		MOVE(BPF_REG_2, BPF_REG_0),
		LOAD_MAP(BPF_REG_1, map),
		SET(BPF_REG_3, 0),
		SET(BPF_REG_4, BPF_LOCAL_STORAGE_GET_F_CREATE),
		CALL(BPF_FUNC_task_storage_get),
		SET(BPF_REG_0, 0),
		EXIT,
	};

	program =
		bpf_prog_load(BPF_PROG_TYPE_KPROBE, "rls_task", "GPL", code, COUNT_OF(code), NULL);
	return program < 0 ? program : 0;
}

/* What the probes of the trials are put on. */
__attribute__((noinline)) static void be_probed(void)
{
	asm volatile("");
}

static int open_uprobe_event(unsigned long offset)
{
	_cleanup_fclose_ FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	struct perf_event_attr attributes = {
		.config1 = (uintptr_t) "/proc/self/exe",
		.config2 = offset,
	};

	if (!file)
		return -errno;
	if (fscanf(file, "%u", &attributes.type) != 1)
		return -EINVAL;
	return open_perf_event(&attributes);
}

int rls_trial_cookie(void)
{
	_cleanup_counter_ struct counter counter = NO_COUNTER;

	return make_counter(BPF_PROG_TYPE_KPROBE, NULL, true, &counter);
}

int rls_trial_uprobe(void)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .perf_event.bpf_cookie = COOKIE);
	_cleanup_counter_ struct counter counter = NO_COUNTER;
	_cleanup_close_ int event = -1, link = -1;
	unsigned long offset;
	int r;

	r = rls_own_file_offset(be_probed, &offset);
	if (!r)
		r = make_counter(BPF_PROG_TYPE_KPROBE, NULL, true, &counter);
	if (r)
		return r;
	event = open_uprobe_event(offset);
	if (event < 0)
		return event;
	link = bpf_link_create(counter.program, event, BPF_PERF_EVENT, &options);
	if (link < 0)
		return link;
	be_probed();
	return expect_count(&counter, COOKIE);
}

int rls_trial_uprobe_multi(void)
{
	static const __u64 cookie = COOKIE;
	LIBBPF_OPTS(bpf_prog_load_opts, load, .expected_attach_type = ATTACH_TYPE_UPROBE_MULTI);
	LIBBPF_OPTS(bpf_link_create_opts, options);
	_cleanup_counter_ struct counter counter = NO_COUNTER;
	_cleanup_close_ int link = -1;
	unsigned long offset;
	int r;

	r = rls_own_file_offset(be_probed, &offset);
	if (!r)
		r = make_counter(BPF_PROG_TYPE_KPROBE, &load, true, &counter);
	if (r)
		return r;
	options.uprobe_multi.path = "/proc/self/exe";
	options.uprobe_multi.offsets = &offset;
	options.uprobe_multi.cookies = &cookie;
	options.uprobe_multi.cnt = 1;
	link = bpf_link_create(counter.program, 0, ATTACH_TYPE_UPROBE_MULTI, &options);
	if (link < 0)
		return link;
	be_probed();
	return expect_count(&counter, COOKIE);
}

int rls_trial_tracepoint(void)
{
	LIBBPF_OPTS(bpf_prog_load_opts, load, .expected_attach_type = BPF_TRACE_RAW_TP);
	_cleanup_counter_ struct counter counter = NO_COUNTER;
	_cleanup_close_ int link = -1;
	pid_t child;
	int r;

	r = libbpf_find_vmlinux_btf_id("sched_process_fork", BPF_TRACE_RAW_TP);
	if (r < 0)
		return r;
	load.attach_btf_id = (uint32_t)r;
	r = make_counter(BPF_PROG_TYPE_TRACING, &load, false, &counter);
	if (r)
		return r;
	link = bpf_raw_tracepoint_open(NULL, counter.program);
	if (link < 0)
		return link;
	child = fork();
	if (child < 0)
		return -errno;
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	return expect_count(&counter, 0);
}

static void work_ms(long duration_ms)
{
	struct timespec now;
	long end_ms;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	end_ms = now.tv_sec * 1000 + now.tv_nsec / 1000000 + duration_ms;
	while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < end_ms)
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
}

int rls_trial_sampling(void)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000, /* ns */
	};
	_cleanup_counter_ struct counter counter = NO_COUNTER;
	_cleanup_close_ int event = -1, link = -1;
	int r;

	r = make_counter(BPF_PROG_TYPE_PERF_EVENT, NULL, false, &counter);
	if (r)
		return r;
	event = open_perf_event(&attributes);
	if (event < 0)
		return event;
	link = bpf_link_create(counter.program, event, BPF_PERF_EVENT, NULL);
	if (link < 0)
		return link;
	work_ms(20);
	return expect_count(&counter, 0);
}
