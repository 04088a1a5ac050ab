/* Kinds of samples (event.h), by name. */
#ifndef RLS_SAMPLE_KIND_H
#define RLS_SAMPLE_KIND_H

#include <stdbool.h>

#include "analysis/event/event.h"

/* "python", "runtime", "native", "system", "lock", "io", "sleep", "child", "gpu", "cpu",
 * "other", "probe". Static storage. */
const char *rls_sample_kind_name(enum rls_sample_kind kind);

/* 0, or -EINVAL for another word. */
int rls_sample_kind_parse(const char *name, enum rls_sample_kind *out);

static inline bool rls_sample_kind_waits(enum rls_sample_kind kind)
{
	return kind >= RLS_SAMPLE_WAIT_LOCK && kind <= RLS_SAMPLE_WAIT_OTHER;
}

#endif
