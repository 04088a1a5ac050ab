#include "analysis/event/sample_kind.h"

#include <errno.h>
#include <string.h>

static const char *const names[] = {
	[RLS_SAMPLE_PYTHON] = "python",    [RLS_SAMPLE_RUNTIME] = "runtime",
	[RLS_SAMPLE_NATIVE] = "native",    [RLS_SAMPLE_SYSTEM] = "system",
	[RLS_SAMPLE_WAIT_LOCK] = "lock",   [RLS_SAMPLE_WAIT_IO] = "io",
	[RLS_SAMPLE_WAIT_SLEEP] = "sleep", [RLS_SAMPLE_WAIT_CHILD] = "child",
	[RLS_SAMPLE_WAIT_GPU] = "gpu",     [RLS_SAMPLE_WAIT_CPU] = "cpu",
	[RLS_SAMPLE_WAIT_OTHER] = "other", [RLS_SAMPLE_PROBE] = "probe",
};
_Static_assert(sizeof(names) / sizeof(names[0]) == RLS_SAMPLE_KIND_MAX, "a name per kind");

const char *rls_sample_kind_name(enum rls_sample_kind kind)
{
	return (unsigned int)kind < RLS_SAMPLE_KIND_MAX ? names[kind] : "unknown";
}

int rls_sample_kind_parse(const char *name, enum rls_sample_kind *out)
{
	for (int i = 0; i < RLS_SAMPLE_KIND_MAX; i++) {
		if (!strcmp(name, names[i])) {
			*out = i;
			return 0;
		}
	}
	return -EINVAL;
}
