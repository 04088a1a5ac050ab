#include "userspace/attach/features.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "analysis/cleanup.h"

/* enum bpf_attach_type of kernel 6.6; Debian 12's own <linux/bpf.h> is older. */
#define ATTACH_TYPE_UPROBE_MULTI 48

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

bool rls_feature_uprobe_multi(void)
{
	static const struct bpf_insn return_zero[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, load, .expected_attach_type = ATTACH_TYPE_UPROBE_MULTI);
	LIBBPF_OPTS(bpf_link_create_opts, link);
	_cleanup_close_ int program = -1, made = -1;
	unsigned long offset;

	if (rls_own_file_offset(probe_target, &offset))
		return false;
	program = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "rls_multi", "GPL", return_zero, 2, &load);
	if (program < 0)
		return false;
	link.uprobe_multi.path = "/proc/self/exe";
	link.uprobe_multi.offsets = &offset;
	link.uprobe_multi.cnt = 1;
	made = bpf_link_create(program, 0, ATTACH_TYPE_UPROBE_MULTI, &link);
	return made >= 0;
}

static bool loads(const struct bpf_insn *code, size_t count)
{
	_cleanup_close_ int program =
		bpf_prog_load(BPF_PROG_TYPE_KPROBE, "rls_feature", "GPL", code, count, NULL);

	return program >= 0;
}

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define RETURN_ZERO \
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 }, \
	{ .code = BPF_JMP | BPF_EXIT }
#define CALL(helper) { .code = BPF_JMP | BPF_CALL, .imm = (helper) }

bool rls_feature_probe_programs(void)
{
	static const struct bpf_insn code[] = { RETURN_ZERO };

	return loads(code, COUNT_OF(code));
}

const char *rls_feature_lacking(void)
{
	static const struct bpf_insn get_cookie[] = {
		CALL(BPF_FUNC_get_attach_cookie),
		RETURN_ZERO,
	};
	static const struct bpf_insn read_kernel[] = { /* 8 bytes at 0 onto the stack */
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_10 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_1, .imm = -8 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .imm = 8 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = 0 },
		CALL(BPF_FUNC_probe_read_kernel),
		RETURN_ZERO,
	};

	if (!loads(get_cookie, COUNT_OF(get_cookie)))
		return "it is too old, 5.15 or newer is needed";
	if (!loads(read_kernel, COUNT_OF(read_kernel)))
		return "its lockdown (at confidentiality) keeps them from reading the kernel's memory";
	return NULL;
}
