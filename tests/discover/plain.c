/* A library whose contents test_elf.c knows. */
#include <unistd.h>

int plain_data = 7;

static int plain_static(int x)
{
	return x * plain_data + getpid();
}

int (*plain_table[2])(int) = {plain_static, plain_static};

int plain_exported(int x)
{
	return plain_table[x & 1](x) + plain_data;
}

/* Method tables as CPython has them. */
struct plain_method {
	const char *name;
	int (*function)(int);
	int flags;
	const char *documentation;
};

struct plain_method plain_methods[] = {
	{"first", plain_static, 4, "does it"},
	{"second", plain_exported, 0x82, 0},
	{0, 0, 0, 0},
};

/* A function whose frame is known at each of its bytes; never called. */
__asm__(".text\n"
	".globl plain_frames\n"
	".type plain_frames, @function\n"
	"plain_frames:\n"
	".cfi_startproc\n"
	"nop\n" /* 0 */
	"push %rbx\n" /* 1 */
	".cfi_adjust_cfa_offset 8\n"
	".cfi_rel_offset %rbx, 0\n"
	"sub $64, %rsp\n" /* 2 */
	".cfi_adjust_cfa_offset 64\n"
	".cfi_remember_state\n"
	"add $64, %rsp\n" /* 6 */
	".cfi_adjust_cfa_offset -64\n"
	"pop %rbx\n" /* 10 */
	".cfi_adjust_cfa_offset -8\n"
	".cfi_restore %rbx\n"
	"ret\n" /* 11 */
	".cfi_restore_state\n"
	".skip 1000, 0x90\n" /* 12 */
	"push %rbp\n" /* 1012 */
	".cfi_adjust_cfa_offset 8\n"
	"mov %rsp, %rbp\n" /* 1013 */
	".cfi_def_cfa_register %rbp\n"
	"nop\n" /* 1016 */
	".cfi_def_cfa %rsp, 96\n"
	"nop\n" /* 1017 */
	".cfi_escape 0x0f, 0x02, 0x77, 0x08\n"
	"nop\n" /* 1018: by an expression */
	".cfi_endproc\n"
	".size plain_frames, . - plain_frames\n");
