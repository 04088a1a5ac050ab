#include "userspace/attach/features.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "analysis/base/cleanup.h"

/* enum bpf_attach_type of kernel 6.6; Debian 12's own <linux/bpf.h> is older. */
#define ATTACH_TYPE_UPROBE_MULTI 48
#define UPROBE_MULTI_RETURN 1
#define SYSCALL_URETPROBE 335 /* of x86-64 alone */

int rls_own_file_offset(const void *address, unsigned long *out)
{
	_cleanup_fclose_ FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, end, offset;
	char line[512];

	if (!maps)
		return -errno;
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %*4s %lx", &start, &end, &offset) != 3)
			continue;
		if ((unsigned long)address >= start && (unsigned long)address < end) {
			*out = (unsigned long)address - start + offset;
			return 0;
		}
	}
	return -ENOENT;
}

/* Never called: a place to put a probe. */
__attribute__((noinline)) static void probe_target(void)
{
	asm volatile("");
}

/* A descriptor of the link, or -errno. flags: of the uprobe_multi link. */
static int probe_by_multi(unsigned int flags)
{
	static const struct bpf_insn return_zero[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, load, .expected_attach_type = ATTACH_TYPE_UPROBE_MULTI);
	LIBBPF_OPTS(bpf_link_create_opts, link);
	_cleanup_close_ int program = -1;
	unsigned long offset;
	int r = rls_own_file_offset(probe_target, &offset);

	if (r)
		return r;
	program = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "rls_multi", "GPL", return_zero, 2, &load);
	if (program < 0)
		return program;
	link.uprobe_multi.flags = flags;
	link.uprobe_multi.path = "/proc/self/exe";
	link.uprobe_multi.offsets = &offset;
	link.uprobe_multi.cnt = 1;
	return bpf_link_create(program, 0, ATTACH_TYPE_UPROBE_MULTI, &link);
}

bool rls_feature_uprobe_multi(void)
{
	_cleanup_close_ int link = probe_by_multi(0);

	return link >= 0;
}

/* Goes through the probe under a filter that kills on the call. Ends 0 when it lives, and where
 * there are no filters and so no sandboxes. */
__attribute__((noreturn)) static void return_in_sandbox(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYSCALL_URETPROBE, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof(rules) / sizeof(rules[0]), .filter = rules};

	prctl(PR_SET_DUMPABLE, 0); /* no core file of it */
	if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	    !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		probe_target();
	_exit(0);
}

bool rls_feature_returns_kill(void)
{
	_cleanup_close_ int link = probe_by_multi(UPROBE_MULTI_RETURN);
	pid_t child;
	int status;

	if (link < 0)
		return false;
	child = fork();
	if (child == 0)
		return_in_sandbox();
	return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status);
}

static bool loads(const struct bpf_insn *code, size_t count)
{
	_cleanup_close_ int program =
		bpf_prog_load(BPF_PROG_TYPE_KPROBE, "rls_feature", "GPL", code, count, NULL);

	return program >= 0;
}

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define RETURN_ZERO                                                                                \
	{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},                     \
	{                                                                                          \
		.code = BPF_JMP | BPF_EXIT                                                         \
	}
#define CALL(helper)                                                                               \
	{                                                                                          \
		.code = BPF_JMP | BPF_CALL, .imm = (helper)                                        \
	}

bool rls_feature_probe_programs(void)
{
	static const struct bpf_insn code[] = {RETURN_ZERO};

	return loads(code, COUNT_OF(code));
}

const char *rls_feature_lacking(void)
{
	static const struct bpf_insn get_cookie[] = {
		CALL(BPF_FUNC_get_attach_cookie),
		RETURN_ZERO,
	};
	static const struct bpf_insn read_kernel[] = {
		/* 8 bytes at 0 onto the stack */
		{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_10},
		{.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_1, .imm = -8},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .imm = 8},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = 0},
		CALL(BPF_FUNC_probe_read_kernel),
		RETURN_ZERO,
	};

	if (!loads(get_cookie, COUNT_OF(get_cookie)))
		return "it is too old, 5.15 or newer is needed";
	if (!loads(read_kernel, COUNT_OF(read_kernel)))
		return "its lockdown (at confidentiality) forbids them to read the kernel's memory";
	return NULL;
}
