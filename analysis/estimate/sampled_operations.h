/* Operation shares: a thread's time without an operation of its own, divided among operations
 * that rules find on its sampled stacks (operation_rules.h).
 *
 *     traced, exact      ▇▇▇ python ▇▇▇▇▇▇▇▇▇ simulator ▇▇▇▇ python ▇▇▇▇▇▇ backend ▇▇▇
 *     samples of python   · ·                             ·   ·
 *                        step learn                     learn learn
 *                        └─ of the time in python a quarter is step's
 *
 * The category stays traced: only which operation the time is of is known by samples. So over
 * the operations of a thread and phase each category sums to what was traced, to the
 * nanosecond. Time inside an annotated operation is that operation's and never divided.
 *
 *     share of o in c = (running samples of o in c) / (running samples in c), of running time;
 *                       likewise by their lengths with waits, of waiting time
 *
 * While tracing is off (untraced_time.h) a sample's category is a guess g, and it counts for each c
 * with P(c | g). Where no sample was taken in a category its time stays without an operation,
 * in doubt altogether. Errors are half widths of 95 % intervals: running samples are draws
 * (binomial; with one more of each kind, so that none of few is not never), waits told of for
 * certain are none, and waiting that no wait was told of is in doubt.
 */
#ifndef RLS_SAMPLED_OPERATIONS_H
#define RLS_SAMPLED_OPERATIONS_H

struct rls_thread;
struct rls_timeline;

/* Nothing more will come, and shares are settled: turns time of the thread's scopes without an
 * operation into time of scopes with one. 0, or -ENOMEM. */
int rls_sampled_operations_divide(struct rls_timeline *timeline, struct rls_thread *thread);

#endif
