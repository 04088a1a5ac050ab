#include "userspace/host/host.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/capability.h>

#include "analysis/base/cleanup.h"
#include "userspace/attach/features.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/base/log.h"
#include "userspace/host/bpf_trials.h"
#include "userspace/process/space.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

__attribute__((format(printf, 3, 4))) static void reply(struct rls_host_answer *answer, bool yes,
							const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(answer->detail, sizeof(answer->detail), format, arguments);
	va_end(arguments);
	answer->yes = yes;
}

static void reply_trial(struct rls_host_answer *answer, int r)
{
	if (r == 0)
		reply(answer, true, "tried, works");
	else if (r == -ENODATA)
		reply(answer, false, "accepted by the kernel, but no hit was counted");
	else
		reply(answer, false, "tried, refused: %s", strerror(-r));
	answer->denied = r == -EPERM || r == -EACCES;
}

/* First line of a small file of the kernel's: 0 or -errno. */
static int read_line(const char *path, char *line, size_t size)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");

	if (!file)
		return -errno;
	if (!fgets(line, (int)size, file))
		return -EIO;
	line[strcspn(line, "\n")] = '\0';
	return 0;
}

static int read_capabilities(uint64_t *out)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/status", "re");
	char line[256];

	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "CapEff: %" SCNx64, out) == 1)
			return 0;
	return -ENOENT;
}

static void probe_privileges(struct rls_host_answer *answer)
{
	/* CAP_SYS_ADMIN stands in for the two that were split off it in 5.8. */
	static const struct {
		const char *name;
		int number;
		int instead;
	} wanted[] = {
		{"CAP_BPF", CAP_BPF, CAP_SYS_ADMIN},
		{"CAP_PERFMON", CAP_PERFMON, CAP_SYS_ADMIN},
		{"CAP_SYS_PTRACE", CAP_SYS_PTRACE, CAP_SYS_PTRACE},
	};
	char missing[64] = "";
	uint64_t held = 0;

	if (read_capabilities(&held)) {
		reply(answer, false, "/proc/self/status cannot be read");
		return;
	}
	for (size_t i = 0; i < COUNT_OF(wanted); i++) {
		uint64_t either = 1ULL << wanted[i].number | 1ULL << wanted[i].instead;
		size_t used = strlen(missing);

		if (!(held & either))
			snprintf(missing + used, sizeof(missing) - used, " %s", wanted[i].name);
	}
	if (missing[0])
		reply(answer, false, "user %u lacks%s", geteuid(), missing);
	else
		reply(answer, true, "user %u has CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE",
		      geteuid());
}

static void probe_btf(struct rls_host_answer *answer)
{
	struct btf *types = btf__load_vmlinux_btf();

	if (types)
		reply(answer, true, "%u types", btf__type_cnt(types));
	else
		reply(answer, false,
		      "this kernel has no BTF type information (/sys/kernel/btf/vmlinux)");
	btf__free(types);
}

static void probe_kernel(struct rls_host_answer *answer)
{
	struct utsname system = {0};
	int r = rls_trial_cookie();

	uname(&system);
	if (!r)
		reply(answer, true, "Linux %s tells probes apart", system.release);
	else if (r == -EINVAL)
		reply(answer, false, "Linux %s is too old, 5.15 or newer is needed",
		      system.release);
	else
		reply_trial(answer, r);
}

static void probe_lockdown(struct rls_host_answer *answer)
{
	char line[128];

	if (read_line("/sys/kernel/security/lockdown", line, sizeof(line)))
		reply(answer, true, "no lockdown here");
	else if (strstr(line, "[confidentiality]"))
		reply(answer, false, "lockdown is at confidentiality");
	else
		reply(answer, true, "lockdown: %s", line);
}

static void probe_bpf(struct rls_host_answer *answer)
{
	reply_trial(answer, rls_trial_bpf());
}

static void probe_task_storage(struct rls_host_answer *answer)
{
	reply_trial(answer, rls_trial_task_storage());
}

static void probe_ring_buffer(struct rls_host_answer *answer)
{
	reply_trial(answer, rls_trial_ring_buffer());
}

static void probe_tracepoint(struct rls_host_answer *answer)
{
	reply_trial(answer, rls_trial_tracepoint());
}

static void probe_uprobe(struct rls_host_answer *answer)
{
	int r = rls_trial_uprobe();

	/* Kernels ask for CAP_SYS_ADMIN for one by one, and for less for all at once. */
	if ((r == -EPERM || r == -EACCES) && !rls_trial_uprobe_multi())
		reply(answer, true, "not permitted one by one, and not needed: see uprobe-multi");
	else
		reply_trial(answer, r);
}

static void probe_uprobe_multi(struct rls_host_answer *answer)
{
	reply_trial(answer, rls_trial_uprobe_multi());
}

static void probe_sandbox(struct rls_host_answer *answer)
{
	if (rls_feature_returns_kill())
		reply(answer, false, "return probes make a sandbox's filter kill the process");
	else
		reply(answer, true, "none was killed");
}

static void probe_sampling(struct rls_host_answer *answer)
{
	reply_trial(answer, rls_trial_sampling());
}

/* The whole of bpf/, through the kernel's verifier. */
static void probe_programs(struct rls_host_answer *answer)
{
	static const struct rls_kernel_options options;
	struct rls_kernel *kernel = NULL;
	int r;

	rls_log_set_muted(true);
	r = rls_kernel_open(&options, &kernel);
	rls_log_set_muted(false);
	rls_kernel_close(kernel);
	reply_trial(answer, r);
}

/* The child has changed `word` before it waits, so what is read is the child's. */
static int read_child_word(pid_t child, volatile uint64_t *word)
{
	uint64_t seen = 0;
	int r = rls_live_read(child, (uint64_t)(uintptr_t)word, &seen, sizeof(seen));

	if (r)
		return r;
	return seen == 2 ? 0 : -ENODATA;
}

static void wait_as_child(volatile uint64_t *word, int ready, int stop)
{
	char byte = 0;

	*word = 2;
	if (write(ready, &byte, 1) == 1)
		(void)!read(stop, &byte, 1);
	_exit(0);
}

static int read_child_memory(void)
{
	_cleanup_close_ int ready_read = -1, ready_write = -1;
	int ready[2], stop[2], r;
	uint64_t word = 1;
	pid_t child;
	char byte;

	if (pipe(ready))
		return -errno;
	ready_read = ready[0];
	ready_write = ready[1];
	if (pipe(stop))
		return -errno;
	child = fork();
	if (child == 0) {
		close(stop[1]);
		wait_as_child(&word, ready_write, stop[0]);
	}
	r = child < 0 ? -errno : 0;
	if (!r)
		r = read(ready_read, &byte, 1) == 1 ? read_child_word(child, &word) : -EIO;
	close(stop[0]);
	close(stop[1]); /* the child's read ends */
	if (child > 0)
		waitpid(child, NULL, 0);
	return r;
}

static void probe_memory(struct rls_host_answer *answer)
{
	reply_trial(answer, read_child_memory());
}

static void probe_ptrace_scope(struct rls_host_answer *answer)
{
	char line[16];

	if (read_line("/proc/sys/kernel/yama/ptrace_scope", line, sizeof(line)))
		reply(answer, true, "no Yama here");
	else
		reply(answer, line[0] != '3', "kernel.yama.ptrace_scope is %s", line);
}

static void probe_paranoid(struct rls_host_answer *answer)
{
	char line[16];

	if (read_line("/proc/sys/kernel/perf_event_paranoid", line, sizeof(line)))
		reply(answer, false, "kernel.perf_event_paranoid is missing: no perf events");
	else
		reply(answer, true, "kernel.perf_event_paranoid is %s, which CAP_PERFMON overrides",
		      line);
}

static void probe_unprivileged(struct rls_host_answer *answer)
{
	char line[16];

	if (read_line("/proc/sys/kernel/unprivileged_bpf_disabled", line, sizeof(line)))
		reply(answer, true, "no such setting here");
	else
		reply(answer, line[0] != '0', "kernel.unprivileged_bpf_disabled is %s", line);
}

static void probe_memlock(struct rls_host_answer *answer)
{
	struct rlimit limit = {0};

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur == RLIM_INFINITY)
		reply(answer, true, "locked memory is unlimited");
	else
		reply(answer, true,
		      "locked memory is limited to %llu KiB, which kernels since 5.11 "
		      "do not count BPF against",
		      (unsigned long long)limit.rlim_cur / 1024);
}

static void probe_bpf_stats(struct rls_host_answer *answer)
{
	char line[16];

	if (read_line("/proc/sys/kernel/bpf_stats_enabled", line, sizeof(line)))
		reply(answer, true, "no such setting here");
	else
		reply(answer, line[0] == '0', "kernel.bpf_stats_enabled is %s", line);
}

#define NEWER_KERNEL                                                                               \
	"use a kernel >= 5.15 built with CONFIG_BPF_SYSCALL, CONFIG_UPROBE_EVENTS and "            \
	"CONFIG_DEBUG_INFO_BTF"

const struct rls_host_check rls_host_checks[] = {
	{"privileges", RLS_HOST_REQUIRED, "the user may load BPF programs and read other processes",
	 probe_privileges,
	 "run with sudo, or give the program CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE; in a "
	 "container also allow bpf() and perf_event_open()"},
	{"btf", RLS_HOST_REQUIRED, "the kernel describes its types (BTF)", probe_btf,
	 "use a kernel built with CONFIG_DEBUG_INFO_BTF; in a container mount /sys"},
	{"lockdown", RLS_HOST_REQUIRED, "BPF programs may read memory", probe_lockdown,
	 "boot with lockdown=integrity or without lockdown"},
	{"kernel", RLS_HOST_REQUIRED, "the kernel is new enough", probe_kernel, NEWER_KERNEL},
	{"bpf", RLS_HOST_REQUIRED, "BPF maps and programs load", probe_bpf, NEWER_KERNEL},
	{"ring-buffer", RLS_HOST_REQUIRED, "BPF ring buffers exist", probe_ring_buffer,
	 NEWER_KERNEL},
	{"task-storage", RLS_HOST_REQUIRED, "BPF programs keep state per thread",
	 probe_task_storage, NEWER_KERNEL},
	{"tracepoint", RLS_HOST_REQUIRED, "new processes are seen", probe_tracepoint, NEWER_KERNEL},
	{"uprobe", RLS_HOST_REQUIRED, "a probed function runs our program, cookie included",
	 probe_uprobe, NEWER_KERNEL},
	{"sandbox", RLS_HOST_REQUIRED, "probes spare processes in a sandbox (seccomp)",
	 probe_sandbox, "update the kernel: 6.14 is repaired, and so are later 6.12 and 6.13"},
	{"programs", RLS_HOST_REQUIRED, "the profiler's own BPF programs load", probe_programs,
	 "repair what is no above; if nothing is, report this with `rlscope-bpf check --format "
	 "json`"},
	{"memory", RLS_HOST_REQUIRED, "other processes' memory can be read", probe_memory,
	 "run as root; set kernel.yama.ptrace_scope below 3, which needs a reboot"},
	{"uprobe-multi", RLS_HOST_BETTER, "thousands of probes attach at once", probe_uprobe_multi,
	 "a kernel >= 6.6 has it; without it probes go on one by one, and off at 0.1 s each by a "
	 "process of its own after the report"},
	{"sampling", RLS_HOST_BETTER, "the software clock samples", probe_sampling,
	 "allow perf_event_open(); without it sampled figures are left out"},
	{"bpf-stats", RLS_HOST_REMARK, "the kernel does not time every BPF program",
	 probe_bpf_stats, "sysctl kernel.bpf_stats_enabled=0 makes each probe less expensive"},
	{"ptrace-scope", RLS_HOST_REMARK, "Yama does not forbid reading processes",
	 probe_ptrace_scope, "set kernel.yama.ptrace_scope below 3, which needs a reboot"},
	{"perf-paranoid", RLS_HOST_REMARK, "perf events exist", probe_paranoid,
	 "use a kernel built with CONFIG_PERF_EVENTS"},
	{"unprivileged-bpf", RLS_HOST_REMARK, "only the privileged may use BPF", probe_unprivileged,
	 "not needed by this program; sysctl kernel.unprivileged_bpf_disabled=2 is safer"},
	{"memlock", RLS_HOST_REMARK, "locked memory suffices", probe_memlock,
	 "ulimit -l unlimited"},
};
const size_t rls_host_check_count = COUNT_OF(rls_host_checks);

const char *rls_host_need_name(enum rls_host_need need)
{
	static const char *const names[] = {"required", "better", "remark"};

	_Static_assert(COUNT_OF(names) == RLS_HOST_NEED_MAX, "names of needs");
	return names[need];
}

const char *rls_host_remedy(const struct rls_host_check *check,
			    const struct rls_host_answer *answer)
{
	if (answer->yes)
		return "";
	return answer->denied ? "run as root, or see `privileges`" : check->remedy;
}

const struct rls_host_check *rls_host_hindrance(const struct rls_host_answer *answers)
{
	for (size_t i = 0; i < rls_host_check_count; i++)
		if (rls_host_checks[i].need == RLS_HOST_REQUIRED && !answers[i].yes)
			return &rls_host_checks[i];
	return NULL;
}

bool rls_host_ask(struct rls_host_answer *answers)
{
	/* The answers say what was refused; libbpf need not. */
	libbpf_print_fn_t print = libbpf_set_print(NULL);

	for (size_t i = 0; i < rls_host_check_count; i++)
		rls_host_checks[i].probe(&answers[i]);
	libbpf_set_print(print);
	return !rls_host_hindrance(answers);
}
