/* A library of functions whose sites are known: what test_planner and test_callbacks read.
 *
 * In assembly, so that no compiler's mood decides; with .cfi, so that .eh_frame has each
 * function's extent. A label at every instruction that matters. PyObject_* stay undefined
 * and make PLT stubs and GOT words.
 */
#define FUNCTION(name, ...)                                                                        \
	__asm__(".pushsection .text\n.p2align 4\n.globl " name "\n.type " name                     \
		", @function\n" name ":\n.cfi_startproc\n" __VA_ARGS__                             \
		"\n.cfi_endproc\n.size " name ", . - " name "\n.popsection\n")
#define LABEL(name) ".globl " name "\n" name ":\n"

/* A line for each instruction or so. */
/* clang-format off */
FUNCTION("two_rets", "test %rdi,%rdi\n" LABEL("two_rets_site") "je 1f\n"
	 LABEL("two_rets_first") "ret\n1:\nxor %eax,%eax\n" LABEL("two_rets_second") "ret");

/* Ends in another function: that one's ret is its exit. */
FUNCTION("tail_callee", "push %rbx\npop %rbx\n" LABEL("tail_callee_ret") "ret");
FUNCTION("tail_caller", "push %rbx\npop %rbx\n" "jmp tail_callee");
FUNCTION("conditional_tail", "push %rbx\npop %rbx\nje tail_caller\n"
	 LABEL("conditional_tail_ret") "rep ret");
/* Ends in itself: no new exit, and no endless search. */
FUNCTION("self_tail", "push %rbx\npop %rbx\nje self_tail\n" LABEL("self_tail_ret") "ret");

/* As gcc splits a function: the cold part has an extent of its own and comes back. */
FUNCTION("split_cold", LABEL("split_cold_ret") "ret\njmp split_back");
FUNCTION("split", "push %rbx\nje split_cold\n" LABEL("split_back") "pop %rbx\n"
	 LABEL("split_ret") "ret");

FUNCTION("plt_tail", "push %rbx\npop %rbx\nje 1f\n" LABEL("plt_tail_ret") "ret\n1:\njmp abort@PLT");
FUNCTION("pointer_tail", "push %rbx\npop %rbx\njmp *8(%rdi)");
FUNCTION("switch_table", "push %rbx\nlea 0f(%rip),%rdx\nmovslq (%rdx,%rdi,4),%rax\n"
	 "add %rdx,%rax\njmp *%rax\n0:\npop %rbx\n" LABEL("switch_table_ret") "ret");
FUNCTION("only_ret", "ret");
FUNCTION("never_returns", "push %rbx\ncall abort@PLT\nud2");

/* A C function that may be unwound: it calls what it was handed, or someone who may. */
FUNCTION("calls_pointer", "push %rbx\ncall *%rdi\npop %rbx\n" LABEL("calls_pointer_ret") "ret");
FUNCTION("calls_then_tail", "push %rbx\ncall abort@PLT\npop %rbx\njmp abort@PLT");

/* Ends of functions with a stack protector, as clang and gcc make them; then those past whose check there is
 * another way, whose frame has another pointer, and whose frame is too large. */
#define LOAD_CANARY "mov %fs:0x28,%rax\n"
#define COMPARE_WITH(place) LOAD_CANARY "cmp " place ",%rax\n"
#define FAIL "1:\ncall abort@PLT\nud2"
FUNCTION("guarded", "push %rbp\npush %r12\nsub $0x418,%rsp\n" LOAD_CANARY "mov %rax,0x408(%rsp)\ncall abort@PLT\n"
	 COMPARE_WITH("0x408(%rsp)") LABEL("guarded_check") "jne 1f\nmov %rbp,%rax\nadd $0x418,%rsp\n"
	 "pop %r12\npop %rbp\n" LABEL("guarded_ret") "ret\n" FAIL);
FUNCTION("guarded_by_sub", "sub $0x18,%rsp\n" LOAD_CANARY "mov %rax,8(%rsp)\ntest %rdi,%rdi\nje 2f\n2:\n"
	 "mov 8(%rsp),%rdx\nsub %fs:0x28,%rdx\n" LABEL("guarded_by_sub_check") "jne 1f\nadd $0x18,%rsp\n"
	 LABEL("guarded_by_sub_ret") "ret\n" FAIL);
FUNCTION("guard_passed_by", "push %rbx\nje 2f\n" COMPARE_WITH("-8(%rsp)") "jne 1f\n2:\npop %rbx\n"
	 LABEL("guard_passed_by_ret") "ret\n" FAIL);
FUNCTION("guard_in_frame", "push %rbp\n" COMPARE_WITH("-8(%rbp)") "jne 1f\nleave\n"
	 LABEL("guard_in_frame_ret") "ret\n" FAIL);
FUNCTION("guard_too_deep", "push %rbp\n" COMPARE_WITH("8(%rsp)") "jne 1f\nadd $0x1ff8,%rsp\npop %rbp\n"
	 LABEL("guard_too_deep_ret") "ret\n" FAIL);
/* Of another comparison, and of nothing but a load. */
FUNCTION("guards_nothing", "push %rbp\n" LOAD_CANARY "cmp %rdi,%rax\njne 1f\npop %rbp\n"
	 LABEL("guards_nothing_ret") "ret\n1:\n" LOAD_CANARY "jne 2f\npop %rbp\n"
	 LABEL("guards_nothing_either_ret") "ret\n2:\nud2");

/* Seen from within; one that would be, but for what it calls. */
FUNCTION("brief", "sub $8,%rsp\nmov %rsi,%rdi\n" LABEL("brief_call") "call abort@PLT\ntest %al,%al\n"
	 LABEL("brief_je") "je 1f\nadd $8,%rsp\nret\n1:\nadd $8,%rsp\nret");
FUNCTION("brief_calls_back", "sub $8,%rsp\n" LABEL("brief_back_call") "call PyObject_CallNoArgs@PLT\n"
	 "test %rax,%rax\n" LABEL("brief_back_after") "je 1f\n1:\nadd $8,%rsp\nret");

FUNCTION("calls_back", "push %rbx\n" LABEL("calls_back_call") "call PyObject_CallObject@PLT\n"
	 "mov %rax,%rbx\ntest %rax,%rax\n" LABEL("calls_back_after") "je 1f\n1:\npop %rbx\nret");
FUNCTION("calls_back_twice", "push %rbx\n" LABEL("twice_first") "call PyObject_CallObject@PLT\n"
	 "mov %rax,%rdi\n" LABEL("twice_second") "call PyObject_CallNoArgs@PLT\n"
	 LABEL("twice_third") "call PyObject_CallNoArgs@PLT\n"
	 LABEL("twice_after") "pop %rbx\nret");
FUNCTION("calls_through_word", "push %rbx\n"
	 LABEL("word_call") "call *PyObject_Vectorcall@GOTPCREL(%rip)\n"
	 LABEL("word_after") "pop %rbx\nret");
FUNCTION("jumps_back", "mov %rsi,%rdx\n" LABEL("jumps_back_jump") "jmp PyObject_CallObject@PLT");
FUNCTION("jumps_through_word", "xor %esi,%esi\n"
	 LABEL("word_jump") "jmp *PyObject_Vectorcall@GOTPCREL(%rip)");
FUNCTION("is_a_jump_back", "jmp PyObject_CallObject@PLT");
/* Its address is taken too, so GNU ld makes the stub in .plt.got. */
FUNCTION("calls_through_plt_got", "push %rbx\nmov PyEval_EvalCode@GOTPCREL(%rip),%rdi\n"
	 LABEL("plt_got_call") "call PyEval_EvalCode@PLT\n" LABEL("plt_got_after") "pop %rbx\nret");
FUNCTION("asks_attribute", "push %rbx\n" LABEL("attribute_call") "call PyObject_GetAttr@PLT\n"
	 "pop %rbx\nret");
/* The bytes of a call to the stub, inside another instruction: not a callback. */
FUNCTION("resembles_a_call", ".byte 0x48, 0xb8, 0xe8\n" /* movabs $imm64,%rax */
	 ".reloc ., R_X86_64_PLT32, PyObject_CallObject - 4\n.long 0\n.byte 0, 0, 0\nret");

/* Calls and jumps by an address loaded before. GOT() is such a load. */
#define GOT(function, into) "mov " #function "@GOTPCREL(%rip)," into "\n"
#define DATA(...) __asm__(".pushsection .data\n.p2align 3\n" __VA_ARGS__ "\n.popsection\n")

FUNCTION("loads_register", "push %rbx\n" GOT(PyObject_CallObject, "%rbx") "mov %rbx,%r12\ncall abort@PLT\n"
	 LABEL("register_call") "call *%r12\npop %rbx\nret");
FUNCTION("loads_branch", "push %rbx\ntest %edi,%edi\n" LABEL("branch_site") "jne 2f\n" GOT(PyObject_Vectorcall, "%rax") "1:\nmov %rsi,%rdx\n"
	 LABEL("branch_call") "call *%rax\npop %rbx\nret\nnopl (%rax)\n"
	 "2:\n" GOT(PyObject_VectorcallMethod, "%rax") "jmp 1b");
/* Not both ways from the branch lead to the call with nothing between, or with the same stack. */
FUNCTION("loads_mixed", "push %rbx\ntest %edi,%edi\nje 3f\ntest %esi,%esi\njne 2f\n" GOT(PyObject_Vectorcall, "%rax")
	 "1:\n" LABEL("mixed_call") "call *%rax\npop %rbx\nret\n2:\n" GOT(PyObject_VectorcallMethod, "%rax") "jmp 1b\n"
	 "3:\ncall abort@PLT\n" GOT(PyObject_VectorcallMethod, "%rax") "jmp 1b");
FUNCTION("loads_deeper", "test %edi,%edi\njne 2f\n" GOT(PyObject_Vectorcall, "%rax") "1:\nsub $8,%rsp\n"
	 LABEL("deeper_call") "call *%rax\nadd $8,%rsp\nret\n2:\n" GOT(PyObject_VectorcallMethod, "%rax") "jmp 1b");
FUNCTION("loads_leaving", "push %rbx\n" GOT(PyObject_Vectorcall, "%rax") "test %edi,%edi\njne 1f\n"
	 LABEL("leaving_call") "call *%rax\n1:\npop %rbx\nret");
/* A branch that both ways lead from is passed again in a loop, each time. */
FUNCTION("loads_again", "push %rbx\n0:\ntest %edi,%edi\n" LABEL("again_site") "jne 2f\n"
	 GOT(PyObject_Vectorcall, "%rax") "1:\n" LABEL("again_call") "call *%rax\ntest %rax,%rax\nje 0b\npop %rbx\nret\n"
	 "2:\n" GOT(PyObject_VectorcallMethod, "%rax") "jmp 1b");
FUNCTION("loads_cmov", GOT(PyObject_Vectorcall, "%rdx") GOT(PyObject_VectorcallMethod, "%rax") "test %edi,%edi\n"
	 "cmovne %rdx,%rax\n" LABEL("cmov_jump") "jmp *%rax");
FUNCTION("loads_cmov_word", GOT(PyObject_Vectorcall, "%rax")
	 "cmovne PyObject_VectorcallMethod@GOTPCREL(%rip),%rax\n" LABEL("cmov_word_call") "call *%rax\nret");
FUNCTION("loads_frame", "sub $0x18,%rsp\n" GOT(PyObject_CallObject, "%rax") "mov %rax,8(%rsp)\npush %rdi\n"
	 "call abort@PLT\n" LABEL("frame_call") "call *0x10(%rsp)\npop %rdi\nadd $0x18,%rsp\nret");
FUNCTION("loads_rbp", "push %rbp\nmov %rsp,%rbp\nsub $0x40,%rsp\n" GOT(PyObject_CallObject, "%rax")
	 "mov %rax,-8(%rbp)\nand $-32,%rsp\nmov -8(%rbp),%rcx\n" LABEL("rbp_call") "call *%rcx\nleave\nret");
FUNCTION("loads_pushed", GOT(PyObject_CallObject, "%rax") "push %rax\ncall abort@PLT\npop %r11\n"
	 LABEL("pushed_jump") "jmp *%r11");
FUNCTION("loads_in_loop", "push %rbx\n" GOT(PyObject_CallObject, "%rbx") "1:\n" LABEL("loop_call") "call *%rbx\n"
	 "test %rax,%rax\njne 1b\npop %rbx\nret");
/* Or nothing: a null pointer is not called. */
FUNCTION("loads_or_null", "xor %eax,%eax\ntest %rdi,%rdi\nje 1f\n" GOT(PyObject_CallObject, "%rax") "1:\n"
	 "test %rax,%rax\nje 2f\n" LABEL("or_null_call") "call *%rax\n2:\nret");
/* A case of a jump table, which only the indirect jump leads to. */
FUNCTION("loads_before_switch", "push %rbx\n" GOT(PyObject_CallObject, "%rbx") "lea 0f(%rip),%rdx\n"
	 "movslq (%rdx,%rdi,4),%rax\nadd %rdx,%rax\njmp *%rax\n0:\npop %rbx\nret\n" LABEL("switch_call")
	 "call *%rbx\npop %rbx\nret");

DATA("filled:\n.quad PyObject_CallObject\nstructure:\n.quad 1\n.quad PyObject_CallNoArgs\n"
     "table:\n.quad PyObject_CallObject\n.quad PyObject_CallNoArgs\n.quad 0\n"
     "kept:\n.quad 0\n");
FUNCTION("calls_filled", LABEL("filled_call") "call *filled(%rip)\nret");
FUNCTION("calls_structure", "lea structure(%rip),%rbx\n" LABEL("structure_call") "call *8(%rbx)\nret");
FUNCTION("calls_table", "lea table(%rip),%rdx\n" LABEL("table_call") "call *(%rdx,%rdi,8)\nret");
FUNCTION("fills_kept", GOT(PyObject_CallNoArgs, "%rax") "mov %rax,kept(%rip)\nret");
FUNCTION("calls_kept", "mov kept(%rip),%rcx\n" LABEL("kept_call") "call *%rcx\nret");
FUNCTION("empties_kept", "movq $0,kept(%rip)\nret");

/* What may be something else, in a register, a frame, a variable, a table. */
FUNCTION("perhaps_argument", "test %edi,%edi\nje 1f\n" GOT(PyObject_CallObject, "%rsi") "1:\ncall *%rsi\nret");
FUNCTION("perhaps_other", "lea two_rets(%rip),%rax\ncmove PyObject_CallObject@GOTPCREL(%rip),%rax\ncall *%rax\nret");
FUNCTION("perhaps_returned", GOT(PyObject_CallObject, "%rax") "call abort@PLT\ncall *%rax\nret");
FUNCTION("perhaps_half", GOT(PyObject_CallObject, "%rax") "mov %edi,%eax\ncall *%rax\nret");
FUNCTION("perhaps_overwritten", "sub $0x18,%rsp\n" GOT(PyObject_CallObject, "%rax") "mov %rax,8(%rsp)\n"
	 "movl $1,12(%rsp)\ncall *8(%rsp)\nadd $0x18,%rsp\nret");
FUNCTION("perhaps_another_frame", "sub $0x18,%rsp\n" GOT(PyObject_CallObject, "%rax") "mov %rax,8(%rsp)\n"
	 "and $-32,%rsp\ncall *8(%rsp)\nret");
FUNCTION("perhaps_attribute", GOT(PyObject_GetAttr, "%rax") "cmove PyObject_CallObject@GOTPCREL(%rip),%rax\n"
	 "call *%rax\nret");
DATA("changed:\n.quad PyObject_CallObject\ntaken:\n.quad 0\nbegun:\n.quad two_rets\n"
     "crowded:\n.quad PyObject_CallObject\n.quad two_rets\n");
FUNCTION("calls_changed", "mov changed(%rip),%rax\ncall *%rax\ncall *changed(%rip)\nret");
FUNCTION("changes", "mov %rdi,changed(%rip)\nret");
FUNCTION("fills_taken", GOT(PyObject_CallObject, "%rax") "mov %rax,taken(%rip)\nmov %rax,begun(%rip)\nret");
FUNCTION("takes", "movups %xmm0,taken-8(%rip)\nret");
FUNCTION("calls_taken", "mov taken(%rip),%rax\ncall *%rax\nmov begun(%rip),%rax\ncall *%rax\nret");
FUNCTION("calls_crowded", "lea crowded(%rip),%rdx\ncall *(%rdx,%rdi,8)\nret");
/* clang-format on */
