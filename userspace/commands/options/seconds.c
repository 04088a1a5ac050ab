#include "userspace/commands/options/seconds.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int rls_parse_seconds(const char *text, uint64_t *out_ns)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !isfinite(seconds) || seconds <= 0 || seconds > 1e9)
		return -EINVAL;
	*out_ns = (uint64_t)llround(seconds * 1e9);
	return 0;
}
