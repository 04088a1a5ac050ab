#include "truthctx.h"

#include <stddef.h>
#include <ucontext.h>

static ucontext_t main_context, other_context;
static long passed_back;

void truthctx_swap_back(long value)
{
	passed_back = value;
	swapcontext(&other_context, &main_context);
	__asm__ volatile("" ::: "memory");
}

void truthctx_on_other_stack(void)
{
	for (long i = 1;; i++)
		truthctx_swap_back(i);
}

long truthctx_contexts(long count)
{
	static char stack[256 * 1024] __attribute__((aligned(16)));
	long sum = 0;

	getcontext(&other_context);
	other_context.uc_stack.ss_sp = stack;
	other_context.uc_stack.ss_size = sizeof(stack);
	other_context.uc_link = NULL;
	makecontext(&other_context, truthctx_on_other_stack, 0);
	for (long i = 0; i < count; i++) {
		swapcontext(&main_context, &other_context);
		sum += passed_back * 3;
	}
	return sum;
}
