/* Window counts: how many transitions a scope had in each window, and in how much running time.
 *
 *     span, transition ─▶ part of the window (untraced_state.h) ─▶ spread of the scope
 *
 * What a thread waited, and what its hits cost, is reported after the window. So a part is kept until
 * RLS_WINDOWS_KEPT windows later, and summed up then.
 */
#ifndef RLS_WINDOW_COUNTS_H
#define RLS_WINDOW_COUNTS_H

#include "analysis/timeline/timeline.h"

/* The part of the window that is open, or of a piece of the first stretch, of a scope that has time or a
 * transition in it. NULL in *out: there is no budget, so none is kept. 0, or -ENOMEM. */
int rls_window_counts_part(const struct rls_timeline *timeline, struct rls_scope *scope,
			   struct rls_window_part **out);

/* The piece of the time between windows that is now, of a scope. NULL: no memory. */
struct rls_closed_part *rls_window_counts_closed(const struct rls_timeline *timeline,
						 struct rls_scope *scope);

/* The window, or the first stretch, that is open ends now. 0, or -ENOMEM. */
int rls_window_counts_close(struct rls_timeline *timeline);

/* Counts a transition in the scope. 0, or -ENOMEM. */
int rls_window_counts_add(const struct rls_timeline *timeline, struct rls_scope *scope,
			  enum rls_category from, enum rls_category to);

/* The thread has come to be in the scope. 0, or -ENOMEM. */
int rls_window_counts_visit(const struct rls_timeline *timeline, struct rls_scope *scope);

/* Nothing more will come: sums up all parts. */
void rls_window_counts_finish(const struct rls_timeline *timeline, struct rls_scope *scope);

#endif
