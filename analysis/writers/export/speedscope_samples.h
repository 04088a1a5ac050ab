/* Samples in speedscope's file: one "sampled" profile for each process that has any.
 *
 * Its stacks are operations, category, frames and, innermost, the kind of sample; the weights
 * are nanoseconds, so that a profile's total is its samples'. In the shared list of frames
 * the report's stand behind the `first_frame` that others have, then the other names.
 */
#ifndef RLS_SPEEDSCOPE_SAMPLES_H
#define RLS_SPEEDSCOPE_SAMPLES_H

#include <stdio.h>

#include "analysis/report/rows.h"

struct rls_speedscope_samples {
	const struct rls_report *report;
	size_t first_frame;
	struct rls_string_pool *names; /* of operations, categories and kinds; NULL: none yet */
};

void rls_speedscope_samples_free(struct rls_speedscope_samples *samples);

/* Prints the profiles; `first` says that no other stands before them. 0, or -ENOMEM. */
int rls_speedscope_samples_profiles(struct rls_speedscope_samples *samples, FILE *out, bool first);

/* Prints the frames that the profiles printed refer to; after them. */
void rls_speedscope_samples_frames(const struct rls_speedscope_samples *samples, FILE *out);

#endif
