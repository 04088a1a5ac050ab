#include "analysis/event/memory_words.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const char *const sources[] = {
	[RLS_MEMORY_TENSOR] = "tensor", [RLS_MEMORY_ARRAY] = "array",
	[RLS_MEMORY_MALLOC] = "malloc", [RLS_MEMORY_PYTHON] = "python",
	[RLS_MEMORY_GPU] = "gpu",
};
_Static_assert(sizeof(sources) / sizeof(sources[0]) == RLS_MEMORY_SOURCE_MAX, "a name per source");

static const char *const methods[] = {
	[RLS_MEMORY_COUNTED] = "counted",
	[RLS_MEMORY_SAMPLED] = "sampled",
	[RLS_MEMORY_SCALED] = "scaled",
};
_Static_assert(sizeof(methods) / sizeof(methods[0]) == RLS_MEMORY_METHOD_MAX, "a name per method");

static const char *const copy_kinds[] = {
	[RLS_COPY_H2H] = "h2h",
	[RLS_COPY_H2D] = "h2d",
	[RLS_COPY_D2H] = "d2h",
	[RLS_COPY_D2D] = "d2d",
};
_Static_assert(sizeof(copy_kinds) / sizeof(copy_kinds[0]) == RLS_COPY_KIND_MAX, "a name per kind");

/* -1: none of them. */
static int find_word(const char *const *words, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(name, words[i]))
			return i;
	return -1;
}

const char *rls_memory_source_name(enum rls_memory_source source)
{
	return (unsigned int)source < RLS_MEMORY_SOURCE_MAX ? sources[source] : "unknown";
}

int rls_memory_source_parse(const char *name, enum rls_memory_source *out)
{
	int found = find_word(sources, RLS_MEMORY_SOURCE_MAX, name);

	if (found < 0)
		return -EINVAL;
	*out = found;
	return 0;
}

const char *rls_memory_method_name(enum rls_memory_method method)
{
	return (unsigned int)method < RLS_MEMORY_METHOD_MAX ? methods[method] : "unknown";
}

int rls_memory_method_parse(const char *name, enum rls_memory_method *out)
{
	int found = find_word(methods, RLS_MEMORY_METHOD_MAX, name);

	if (found < 0)
		return -EINVAL;
	*out = found;
	return 0;
}

const char *rls_copy_kind_name(enum rls_copy_kind kind)
{
	return (unsigned int)kind < RLS_COPY_KIND_MAX ? copy_kinds[kind] : "unknown";
}

int rls_copy_kind_parse(const char *name, enum rls_copy_kind *out)
{
	int found = find_word(copy_kinds, RLS_COPY_KIND_MAX, name);

	if (found < 0)
		return -EINVAL;
	*out = found;
	return 0;
}
