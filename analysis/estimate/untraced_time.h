/* Shares: a thread's time while its boundaries were not traced, and what becomes of it.
 *
 *     windows      ▁▁▁▁▁▁████▁▁▁▁▁▁▁▁▁▁▁▁███▁▁▁▁▁▁▁▁       traced in between closed stretches
 *     looks        · · · ····  · · · · ·  ··· · · · ·      a sampler's guesses at the category
 *                        └── here the truth is known too
 *
 * Operations and phases are known all the time, so closed time belongs to a scope, and only its
 * category is open. It is divided by the looks taken in the scope's operation and phase:
 *
 *     share of c = Σ over guesses g of (looks that guessed g / looks) × P(c | g)
 *
 * P(c | g) is how often c was true where g was guessed while tracing could tell (two-phase, or
 * double, sampling; Cochran, Sampling Techniques, ch. 12), g itself where that is unknown.
 * Running time is divided by looks at the running thread, waiting time by looks at waits. An
 * operation never looked at goes by its traced time, else by the thread's other looks; one in which
 * the thread never ran by looks at its waits in others, for those are the same waits.
 *
 * Boundaries that are cheap to trace stay on in closed time and still tell of their calls, but no
 * figure is exact for that: inside such a call a thread may go on through a boundary that is off
 * (back into Python, into another library), and outside of it be in the same category through
 * another one. It would be for a category all of whose boundaries stay on and out of which none
 * leads that does not; which those are is not in the trace. So its calls are scaled, and its time
 * is divided, like all others.
 *
 * The error of a share is 1.96 standard deviations: of drawing the looks, and of having learnt
 * P from so many (as draws, or by how P differs between moments when that is more; Cochran, ch. 11).
 * Counts of transitions are scaled by corrected running time (a ratio estimate
 * over windows, ibid. ch. 6): error likewise, from how the windows differ, and from what the cost of
 * hits, which corrected windows are free of, is uncertain by. Where no running time was traced, or
 * one window only, all that lies beyond what was counted is in doubt. CUDA calls by name are as many more
 * as transitions are, in doubt as those into `cuda_api`, and take as much of all time together as
 * `cuda_api` does.
 */
#ifndef RLS_UNTRACED_TIME_H
#define RLS_UNTRACED_TIME_H

struct rls_thread;

/* Nothing more will come: turns the closed time of all of the thread's scopes into time of their
 * cells, and scales their transitions. 0, or -ENOMEM. */
int rls_untraced_time_divide(struct rls_thread *thread);

#endif
