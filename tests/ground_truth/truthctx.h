/* libtruthctx: coroutines in C. A library of its own, because one that switches stacks by itself
 * is watched in another way altogether. */
#ifndef TRUTHCTX_H
#define TRUTHCTX_H

/* Runs truthctx_on_other_stack() on a stack of its own and swaps back and forth in its midst,
 * as coroutine libraries do. Three times the sum of what it passed back. */
long truthctx_contexts(long count);
void truthctx_on_other_stack(void);
void truthctx_swap_back(long value);

#endif
