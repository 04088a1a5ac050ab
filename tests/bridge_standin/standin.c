/* A stand-in for the CUPTI bridge: the same site, and whatever bytes the test likes.
 *
 * Built under the bridge's own name, because that is how the recorder knows it. Nothing in it
 * says anything about a GPU.
 */
#include <stdint.h>

extern unsigned short standin_semaphore;
__asm__(".section .probes, \"aw\", @progbits\n"
	".balign 2\n"
	".hidden standin_semaphore\n"
	".globl standin_semaphore\n"
	".type standin_semaphore, @object\n"
	".size standin_semaphore, 2\n"
	"standin_semaphore: .2byte 0\n"
	".previous\n");

#define EXPORT __attribute__((visibility("default"), noinline))

/* Not 0: somebody listens. */
EXPORT unsigned int standin_armed(void)
{
	return *(volatile unsigned short *)&standin_semaphore;
}

EXPORT void standin_send(const void *bytes, uint32_t size)
{
	__asm__ volatile(
		"990:	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
		"	.pushsection .note.stapsdt, \"\", \"note\"\n"
		"	.balign 4\n"
		"	.4byte 992f - 991f, 994f - 993f, 3\n"
		"991:	.asciz \"stapsdt\"\n"
		"992:	.balign 4\n"
		"993:	.8byte 990b, _.stapsdt.base, standin_semaphore\n"
		"	.asciz \"rlscope_cupti\", \"batch\", \"8@%%rdi 4@%%esi\"\n"
		"994:	.balign 4\n"
		"	.popsection\n"
		"	.ifndef _.stapsdt.base\n"
		"	.pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"
		"	.weak _.stapsdt.base\n"
		"	.hidden _.stapsdt.base\n"
		"_.stapsdt.base: .space 1\n"
		"	.size _.stapsdt.base, 1\n"
		"	.popsection\n"
		"	.endif\n"
		:
		: "D"(bytes), "S"(size)
		: "memory");
}
