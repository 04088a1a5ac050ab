/* A USDT site of our own making: a nop5 and the ELF note that tells tools about it.
 *
 * The note is SystemTap's version 3 (owner "stapsdt"): address of the site, of
 * .stapsdt.base, of the semaphore, then provider, probe and arguments as strings; perf,
 * bpftrace and libbpf read it. Arguments are pinned to registers, so that the note's text
 * is constant.
 *
 * A kernel that turns nop5 probes into calls (6.18) pushes a return address below the
 * stack pointer. Everything with a site in it must therefore be compiled with
 * -mno-red-zone, as this library is as a whole.
 */
#ifndef RLS_ANNOTATE_USDT_H
#define RLS_ANNOTATE_USDT_H

/* The semaphore: the kernel raises it while a probe is attached. It must lie in a file-backed,
 * writable section, where its file offset means something. */
#define RLS_USDT_SEMAPHORE(symbol)                                                                 \
	unsigned short symbol __attribute__((section(".probes"), visibility("hidden"), used))

/* Whose sites they are; another library of ours says so before it includes this. */
#ifndef RLS_USDT_PROVIDER
#define RLS_USDT_PROVIDER "rlscope"
#endif

#define RLS_USDT_NOTE(probe, semaphore, arguments)                                                 \
	"990:	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"                                                \
	"	.pushsection .note.stapsdt, \"\", \"note\"\n"                                            \
	"	.balign 4\n"                                                                             \
	"	.4byte 992f - 991f, 994f - 993f, 3\n"                                                    \
	"991:	.asciz \"stapsdt\"\n"                                                                \
	"992:	.balign 4\n"                                                                         \
	"993:	.8byte 990b, _.stapsdt.base, " semaphore "\n"                                      \
	"	.asciz \"" RLS_USDT_PROVIDER "\", \"" probe "\", \"" arguments "\"\n"              \
	"994:	.balign 4\n"                                                                         \
	"	.popsection\n"                                                                           \
	"	.ifndef _.stapsdt.base\n"                                                                \
	"	.pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"               \
	"	.weak _.stapsdt.base\n"                                                                  \
	"	.hidden _.stapsdt.base\n"                                                                \
	"_.stapsdt.base: .space 1\n"                                                               \
	"	.size _.stapsdt.base, 1\n"                                                               \
	"	.popsection\n"                                                                           \
	"	.endif\n"

/* One pointer and one 32-bit number, in rdi and esi. */
#define RLS_USDT(probe, semaphore, pointer, number)                                                \
	__asm__ volatile(RLS_USDT_NOTE(probe, #semaphore, "8@%%rdi 4@%%esi")                       \
			 :                                                                         \
			 : "D"(pointer), "S"(number)                                               \
			 : "memory")

#endif
