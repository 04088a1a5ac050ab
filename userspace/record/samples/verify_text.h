/* What verifying found, in sentences for the report. Pure. */
#ifndef RLS_VERIFY_TEXT_H
#define RLS_VERIFY_TEXT_H

#include "userspace/record/samples/hot_functions.h"
#include "userspace/record/samples/verify.h"

/* Wilson's score interval for a share of hits among trials, at 95 %. */
void rls_share_interval(uint64_t hits, uint64_t trials, double *low, double *high);

/* Each is one line for the caller to free, NULL when there is no memory. The first names up
 * to five of the functions (most samples first). */
char *rls_verify_blind_text(const struct rls_verify_counts *counts,
			    const struct rls_hot_function *functions, size_t count);
char *rls_verify_missed_callbacks_text(const struct rls_verify_counts *counts);
char *rls_verify_shares_text(const struct rls_verify_counts *counts);

#endif
