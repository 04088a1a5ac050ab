/* A library of functions whose sites are known: what test_planner and test_callbacks read.
 *
 * In assembly, so that no compiler's mood decides; with .cfi, so that .eh_frame has each
 * function's extent. A label at every instruction that matters. PyObject_* stay undefined
 * and make PLT stubs and GOT words.
 */
#define FUNCTION(name, ...)                                                                     \
	__asm__(".pushsection .text\n.p2align 4\n.globl " name "\n.type " name ", @function\n"   \
		name ":\n.cfi_startproc\n" __VA_ARGS__                                          \
		"\n.cfi_endproc\n.size " name ", . - " name "\n.popsection\n")
#define LABEL(name) ".globl " name "\n" name ":\n"

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
FUNCTION("looks_like_a_call", ".byte 0x48, 0xb8, 0xe8\n" /* movabs $imm64,%rax */
	 ".reloc ., R_X86_64_PLT32, PyObject_CallObject - 4\n.long 0\n.byte 0, 0, 0\nret");
