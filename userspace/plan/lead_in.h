/* Lead-in: where an indirect call can be seen coming more cheaply than at the call, which is single-stepped.
 *
 *        test %edi,%edi
 *        jne  2f            <- probed: emulated, and both ways from here lead to the call
 *        mov  PyObject_Vectorcall@GOTPCREL(%rip),%rax
 *     1: mov  %rsi,%rdx
 *        call *%rax
 *        ...
 *     2: mov  PyObject_VectorcallMethod@GOTPCREL(%rip),%rax
 *        jmp  1b
 *
 * The instruction is one from which nothing but the call can be reached, and by which alone the call can be
 * reached; rsp does not move from there to the call, and nothing is called between. Targets of jump
 * tables are not known: none is taken to lie between.
 */
#ifndef RLS_LEAD_IN_H
#define RLS_LEAD_IN_H

#include "userspace/machine_code/pointer_trace.h"

/* Instructions between; compilers load arguments there. */
#define RLS_LEAD_IN_STEPS 24

/* 0; -ENOENT when there is none; then *out is untouched. */
int rls_lead_in_find(const struct rls_trace_code *code, uint64_t call_vaddr,
		     struct rls_instruction *out);

#endif
