/* Sampled operations: a thread's time without an operation of its own, apportioned among the
 * operations that rules find on its sampled stacks (operation_rules.h).
 *
 *     traced, exact      ▇▇▇ python ▇▇▇▇▇▇▇▇▇ simulator ▇▇▇▇ python ▇▇▇▇▇▇ backend ▇▇▇
 *     samples of python   · ·                             ·   ·
 *                        step learn                     learn learn
 *                        └─ of the time in python a quarter is step's
 *
 * The category stays traced: samples decide only which operation the time belongs to. So over the
 * operations of a thread and phase, each category sums to what was traced, to the nanosecond. Time
 * inside an annotated operation belongs to that operation and is never apportioned.
 *
 *     share of o in c = (running samples of o in c) / (running samples in c), of running time;
 *                       likewise by their lengths with waits, of waiting time
 *
 * While tracing is off (untraced_time.h) a sample has an inferred category g, and counts for each
 * c with P(c | g). The time of a category without samples stays without an operation, and its
 * error is all of it. Errors are half widths of 95 % intervals. Running samples are draws
 * (binomial; with one more of each kind, so that none of few does not mean never). Waits that are
 * all reported have no error, and waiting time without a reported wait is uncertain.
 */
#ifndef RLS_SAMPLED_OPERATIONS_H
#define RLS_SAMPLED_OPERATIONS_H

struct rls_thread;
struct rls_timeline;

/* Nothing more will come, and shares were estimated: turns time of the thread's scopes without an
 * operation into time of scopes with one. 0, or -ENOMEM. */
int rls_sampled_operations_divide(struct rls_timeline *timeline, struct rls_thread *thread);

#endif
