#include "analysis/event/category.h"

#include <errno.h>
#include <string.h>

static const char *const names[] = {
	[RLS_CATEGORY_UNKNOWN] = "unknown",     [RLS_CATEGORY_PYTHON] = "python",
	[RLS_CATEGORY_SIMULATOR] = "simulator", [RLS_CATEGORY_BACKEND] = "backend",
	[RLS_CATEGORY_CUDA_API] = "cuda_api",   [RLS_CATEGORY_NATIVE] = "native",
};
_Static_assert(sizeof(names) / sizeof(names[0]) == RLS_CATEGORY_MAX, "a name per category");

const char *rls_category_name(enum rls_category category)
{
	return (unsigned int)category < RLS_CATEGORY_MAX ? names[category] : names[0];
}

int rls_category_parse(const char *name, enum rls_category *out)
{
	for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
		if (!strcmp(name, names[i])) {
			*out = i;
			return 0;
		}
	}
	return -EINVAL;
}
