/* A library in two versions for test_files.py: where the first has the beginning of its function, which is probed,
 * the second has the midst of an instruction.
 */
#if VERSION == 1
__asm__(".text\n"
	".byte 0x90, 0x90, 0x90, 0x90, 0x90\n"
	".globl sim_step\n"
	".type sim_step, @function\n"
	"sim_step:\n"
	".cfi_startproc\n"
	"push %rbp\n"
	".cfi_adjust_cfa_offset 8\n"
	"mov $7, %eax\n"
	"pop %rbp\n"
	".cfi_adjust_cfa_offset -8\n"
	"ret\n"
	".cfi_endproc\n"
	".size sim_step, . - sim_step\n"
	".skip 64, 0x90\n");
#else
__asm__(".text\n"
	".globl sim_value\n"
	".type sim_value, @function\n"
	"sim_value:\n"
	".cfi_startproc\n"
	"movabs $0x1122334455667788, %rax\n"
	"ret\n"
	".cfi_endproc\n"
	".size sim_value, . - sim_value\n"
	".skip 64, 0x90\n");
#endif
