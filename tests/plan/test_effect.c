/* What single instructions do to 64-bit values, on their bytes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "userspace/machine_code/effect.h"

#define VADDR 0x1000

enum { RAX = 0, RCX = 1, RDX = 2, RBX = 3, RSI = 6, RDI = 7, R12 = 12, NONE = RLS_NO_REGISTER };

#define READ(...)                                                                                  \
	({                                                                                         \
		const uint8_t bytes_[] = {__VA_ARGS__};                                            \
		struct rls_effect effect_;                                                         \
		assert_int_equal(rls_decode_effect(bytes_, sizeof(bytes_), VADDR, &effect_), 0);   \
		effect_;                                                                           \
	})

static void assert_spot(struct rls_spot spot, enum rls_spot_kind kind, int base, int index,
			int64_t displacement)
{
	assert_int_equal(spot.kind, kind);
	assert_int_equal(spot.base, base);
	assert_int_equal(spot.index, index);
	assert_int_equal(spot.displacement, displacement);
}

static void assert_register(struct rls_spot spot, int base)
{
	assert_spot(spot, RLS_SPOT_REGISTER, base, NONE, 0);
}

static void reads_moves(void **state)
{
	/* mov 0x100(%rip),%rbx */
	struct rls_effect effect = READ(0x48, 0x8b, 0x1d, 0x00, 0x01, 0x00, 0x00);

	assert_spot(effect.source, RLS_SPOT_MEMORY, NONE, NONE, VADDR + 7 + 0x100);
	assert_register(effect.target, RBX);
	assert_false(effect.may_keep);
	assert_int_equal(effect.written, 1 << RBX);
	assert_true(effect.stack_known);
	assert_int_equal(effect.lowered_bytes, 0);
	effect = READ(0x49, 0x89, 0xc4); /* mov %rax,%r12 */
	assert_register(effect.source, RAX);
	assert_register(effect.target, R12);
	effect = READ(0x48, 0x0f, 0x45, 0xc2); /* cmovne %rdx,%rax */
	assert_register(effect.source, RDX);
	assert_register(effect.target, RAX);
	assert_true(effect.may_keep);
	effect = READ(0x48, 0x89, 0x44, 0x24, 0x08); /* mov %rax,8(%rsp) */
	assert_register(effect.source, RAX);
	assert_spot(effect.target, RLS_SPOT_MEMORY, RLS_RSP, NONE, 8);
	assert_spot(effect.stored, RLS_SPOT_MEMORY, RLS_RSP, NONE, 8);
	assert_int_equal(effect.stored_bytes, 8);
	assert_int_equal(effect.written, 0);
	effect = READ(0x48, 0x8b, 0x04, 0xca); /* mov (%rdx,%rcx,8),%rax */
	assert_spot(effect.source, RLS_SPOT_MEMORY, RDX, RCX, 0);
	assert_int_equal(effect.source.scale, 8);
	effect = READ(0x48, 0x8d, 0x15, 0xf0, 0xff, 0xff, 0xff); /* lea -0x10(%rip),%rdx */
	assert_spot(effect.source, RLS_SPOT_ADDRESS, NONE, NONE, VADDR + 7 - 0x10);
	assert_register(effect.target, RDX);
}

static void reads_null_pointers(void **state)
{
	assert_int_equal(READ(0x31, 0xc0).source.kind, RLS_SPOT_ZERO); /* xor %eax,%eax */
	assert_register(READ(0x31, 0xc0).target, RAX);
	assert_int_equal(READ(0xb8, 0, 0, 0, 0).source.kind, RLS_SPOT_ZERO); /* mov $0,%eax */
	assert_int_equal(READ(0xb8, 1, 0, 0, 0).source.kind, RLS_SPOT_NONE);
	assert_int_equal(READ(0x31, 0xc8).source.kind, RLS_SPOT_NONE); /* xor %ecx,%eax */
	/* movq $0,(%rip) */
	assert_int_equal(READ(0x48, 0xc7, 0x05, 0, 0, 0, 0, 0, 0, 0, 0).source.kind, RLS_SPOT_ZERO);
	assert_spot(READ(0x48, 0xc7, 0x05, 0, 0, 0, 0, 0, 0, 0, 0).target, RLS_SPOT_MEMORY, NONE,
		    NONE, VADDR + 11);
	/* xor %al,%al leaves the rest. */
	assert_int_equal(READ(0x30, 0xc0).source.kind, RLS_SPOT_NONE);
}

static void reads_the_stack(void **state)
{
	struct rls_effect effect = READ(0x53); /* push %rbx */

	assert_register(effect.source, RBX);
	assert_spot(effect.target, RLS_SPOT_MEMORY, RLS_RSP, NONE, 0);
	assert_true(effect.stack_known);
	assert_int_equal(effect.lowered_bytes, 8);
	assert_int_equal(effect.stored.kind, RLS_SPOT_NONE);
	effect = READ(0x5b); /* pop %rbx */
	assert_spot(effect.source, RLS_SPOT_MEMORY, RLS_RSP, NONE, 0);
	assert_register(effect.target, RBX);
	assert_int_equal(effect.lowered_bytes, -8);
	effect = READ(0x48, 0x83, 0xec, 0x18); /* sub $0x18,%rsp */
	assert_int_equal(effect.lowered_bytes, 0x18);
	assert_false(READ(0x48, 0x83, 0xe4, 0xe0).stack_known); /* and $-32,%rsp */
	assert_false(READ(0xc9).stack_known); /* leave */
}

static void reads_calls(void **state)
{
	assert_register(READ(0xff, 0xd0).source, RAX); /* call *%rax */
	assert_register(READ(0x41, 0xff, 0xe4).source, R12); /* jmp *%r12 */
	assert_spot(READ(0xff, 0x54, 0x24, 0x08).source, RLS_SPOT_MEMORY, RLS_RSP, NONE,
		    8); /* call *8(%rsp) */
	/* call *0x10(%rip) */
	assert_spot(READ(0xff, 0x15, 0x10, 0, 0, 0).source, RLS_SPOT_MEMORY, NONE, NONE,
		    VADDR + 6 + 0x10);
	assert_int_equal(READ(0xe8, 0x10, 0, 0, 0).source.kind, RLS_SPOT_NONE); /* call rel32 */
}

/* Nothing of these moves a pointer, but each overwrites something. */
static void knows_what_else_is_written(void **state)
{
	assert_int_equal(READ(0x89, 0xf8).target.kind, RLS_SPOT_NONE); /* mov %edi,%eax */
	assert_int_equal(READ(0x89, 0xf8).written, 1 << RAX);
	assert_int_equal(READ(0x48, 0xf7, 0xe1).written, 1 << RAX | 1 << RDX); /* mul %rcx */
	assert_int_equal(READ(0xf3, 0x48, 0xab).written & (1 << RDI | 1 << RCX),
			 1 << RDI | 1 << RCX); /* rep stos */
	/* movups %xmm0,8(%rip) */
	assert_int_equal(READ(0x0f, 0x11, 0x05, 8, 0, 0, 0).stored_bytes, 16);
	assert_spot(READ(0x0f, 0x11, 0x05, 8, 0, 0, 0).stored, RLS_SPOT_MEMORY, NONE, NONE,
		    VADDR + 15);
	/* mov %fs:0x28,%rax: its address is another's. */
	assert_int_equal(READ(0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0).source.kind,
			 RLS_SPOT_NONE);
	/* mov (%edx),%rax: so is that of 32 bits. */
	assert_int_equal(READ(0x67, 0x48, 0x8b, 0x02).source.kind, RLS_SPOT_NONE);
}

static void knows_padding(void **state)
{
	assert_true(READ(0x90).nop);
	assert_true(READ(0x66, 0x90).nop);
	assert_int_equal(READ(0x66, 0x90).written, 0);
	assert_true(READ(0x0f, 0x1f, 0x44, 0x00, 0x00).nop);
	assert_true(READ(0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0).nop);
	assert_false(READ(0x48, 0x93).nop); /* xchg %rax,%rbx */
	assert_int_equal(READ(0x48, 0x93).written, 1 << RAX | 1 << RBX);
}

static void refuses_what_is_none(void **state)
{
	static const uint8_t bytes[] = {0x48, 0x8b};
	struct rls_effect effect;

	assert_int_equal(rls_decode_effect(bytes, sizeof(bytes), VADDR, &effect), -EILSEQ);
	assert_int_equal(rls_decode_effect(bytes, 0, VADDR, &effect), -EILSEQ);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_moves),
		cmocka_unit_test(reads_null_pointers),
		cmocka_unit_test(reads_the_stack),
		cmocka_unit_test(reads_calls),
		cmocka_unit_test(knows_what_else_is_written),
		cmocka_unit_test(knows_padding),
		cmocka_unit_test(refuses_what_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
