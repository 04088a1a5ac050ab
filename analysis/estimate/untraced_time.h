/* Untraced time: a thread's time of which no probe tells what it was, and how it is apportioned.
 *
 *     windows      ▁▁▁▁▁▁████▁▁▁▁▁▁▁▁▁▁▁▁███▁▁▁▁▁▁▁▁       untraced time lies between windows
 *     samples      · · · ····  · · · · ·  ··· · · · ·      inferred categories
 *                        └── here the traced category is known too
 *
 * Operations and phases are known all the time. So untraced time belongs to a scope, and only its
 * category is unknown. It is apportioned by the samples taken in the scope's operation and phase:
 *
 *     share of c = Σ over inferred g of (samples with g / samples) × P(c | g)
 *
 * P(c | g) is how often c was the traced category where g was inferred (two-phase, or double,
 * sampling; Cochran, Sampling Techniques, ch. 12). Where that is unknown, c is g itself. Running
 * time is apportioned by samples of the running thread, waiting time by samples of waits. An
 * operation without samples uses its traced time, else the thread's other samples. An operation in
 * which the thread never ran uses the samples of its waits in other operations, for those are the
 * same waits.
 *
 * Threads that meet no probe (those of a library's pool, Python threads that enter no library with a
 * role) have nothing but samples: their category is the inferred one. So is that of a thread before
 * its first hit. Such time is unreported, not closed: counts are not scaled by it. A thread that was
 * never sampled is taken to be as the others of its process that meet no probe.
 *
 * Inexpensive boundaries stay enabled in untraced time and still report their calls, but no figure
 * is exact for that. Inside such a call a thread may pass through a disabled boundary (back into
 * Python, into another library); outside of it, it may enter the same category through another
 * boundary. The figure would be exact for a category whose boundaries all stay enabled and lead
 * only to such boundaries; the trace does not say which those are. So calls are scaled and time is
 * apportioned, like all others.
 *
 * The error of a share is 1.96 standard deviations, of two things: of drawing the samples, and of
 * having learnt P from a limited number (as draws, or by how P differs between moments when that
 * is more; Cochran, ch. 11). How counts of transitions are estimated is in count_estimate.h.
 *
 * Counts of CUDA calls by name are scaled by the same factor as transitions, with the
 * error of those into `cuda_api`. Together they take as much of all time as `cuda_api` does.
 */
#ifndef RLS_UNTRACED_TIME_H
#define RLS_UNTRACED_TIME_H

struct rls_process;
struct rls_sample_pair;
struct rls_thread;
struct rls_timeline;

/* Samples of the process's threads that meet no probe. Before any of them is divided. */
void rls_untraced_time_pool(const struct rls_process *process, struct rls_sample_pair *out);

/* Nothing more will come: turns the untraced time of all of the thread's scopes into time of their
 * cells, and scales their transitions. others: the pool of its process. 0, or -ENOMEM. */
int rls_untraced_time_divide(const struct rls_timeline *timeline, struct rls_thread *thread,
			     const struct rls_sample_pair *others);

#endif
