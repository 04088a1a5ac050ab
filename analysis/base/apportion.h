/* Dividing a whole by shares, to the nanosecond: the parts sum to it exactly. */
#ifndef RLS_APPORTION_H
#define RLS_APPORTION_H

#include <stddef.h>
#include <stdint.h>

/* parts[i] is about total × weights[i] / (sum of weights), no more than one off; 0 where the
 * weight is 0. Weights are finite, none below 0, at least one above. */
void rls_apportion(uint64_t total, const double *weights, size_t count, uint64_t *parts);

#endif
