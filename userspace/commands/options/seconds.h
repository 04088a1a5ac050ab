/* Seconds as users write them. */
#ifndef RLS_SECONDS_H
#define RLS_SECONDS_H

#include <stdint.h>

/* Whole and fractional seconds: 0 and *out, or -EINVAL. */
int rls_parse_seconds(const char *text, uint64_t *out_ns);

#endif
