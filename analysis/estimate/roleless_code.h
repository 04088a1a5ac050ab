/* Roleless code: what a thread spends in libraries without a role, called from Python.
 *
 *     traced     ▇▇▇▇▇▇▇▇ python ▇▇▇▇▇▇▇▇ backend ▇▇▇▇▇ python ▇▇▇▇▇▇
 *     samples     ·   ·   N   N   N   ·      ·         N   ·   ·
 *                 └─ of the time in python so many samples were in NumPy, OpenCV, ...: native
 *
 * No probe lies at such a library's functions, so the trace says Python. Samples say how much of that
 * is native code. Running time is divided by samples of the running thread, waiting time by those
 * of waits. Time in which no sample was in such code stays as it was traced. Errors are half widths of
 * 95 % intervals of draws (binomial; with one more of each kind, so that few samples say little).
 *
 * There is no transition between the two: how often such code is called is not known.
 */
#ifndef RLS_ROLELESS_CODE_H
#define RLS_ROLELESS_CODE_H

struct rls_thread;

/* Nothing more will come, and untraced time is not divided yet: moves time of the thread's Python
 * cells into those of native code. */
void rls_roleless_code_divide(struct rls_thread *thread);

#endif
