#include "analysis/event/layer_pass.h"

#include <errno.h>
#include <string.h>

static const char *const passes[] = {
	[RLS_PASS_OUTSIDE] = "outside",     [RLS_PASS_FORWARD] = "forward",
	[RLS_PASS_BACKWARD] = "backward",   [RLS_PASS_RECOMPUTE] = "recompute",
	[RLS_PASS_OPTIMIZER] = "optimizer", [RLS_PASS_UNKNOWN] = "unknown",
};
_Static_assert(sizeof(passes) / sizeof(passes[0]) == RLS_PASS_MAX, "a name per pass");

const char *rls_layer_pass_name(enum rls_layer_pass pass)
{
	return (unsigned int)pass < RLS_PASS_MAX ? passes[pass] : "unknown";
}

int rls_layer_pass_parse(const char *name, enum rls_layer_pass *out)
{
	for (int i = 0; i < RLS_PASS_MAX; i++) {
		if (!strcmp(name, passes[i])) {
			*out = i;
			return 0;
		}
	}
	return -EINVAL;
}
