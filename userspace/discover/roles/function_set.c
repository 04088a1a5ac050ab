#include "userspace/discover/roles/function_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/utf8.h"

int rls_function_set_add(struct rls_function_set *set, const struct rls_find *find)
{
	size_t bytes = rls_utf8_cut(find->name, RLS_FIND_NAME_BYTES);
	struct rls_find copy = *find;
	int error;

	if (set->finds.count == RLS_FINDS_MAX || set->name_bytes + bytes > RLS_FIND_NAMES_BYTES) {
		set->full = true;
		return 0;
	}
	copy.name = strndup(find->name, bytes);
	if (!copy.name)
		return -ENOMEM;
	error = rls_list_push(&set->finds, copy);
	if (error)
		free(copy.name);
	else
		set->name_bytes += bytes;
	return error;
}

void rls_function_set_release(struct rls_function_set *set)
{
	for (size_t i = 0; i < set->finds.count; i++)
		free(set->finds.items[i].name);
	free(set->finds.items);
	*set = (struct rls_function_set){0};
}

/* Short names first: of "X.nb_add" and "Xsubclass.nb_add" the base's is the better. */
static int compare_names(const char *left, const char *right)
{
	size_t left_length = strlen(left), right_length = strlen(right);

	if (left_length != right_length)
		return left_length < right_length ? -1 : 1;
	return strcmp(left, right);
}

static int compare_finds(const void *a, const void *b)
{
	const struct rls_find *left = a, *right = b;

	if (left->vaddr != right->vaddr)
		return left->vaddr < right->vaddr ? -1 : 1;
	if (left->rank != right->rank)
		return left->rank < right->rank ? -1 : 1;
	return compare_names(left->name, right->name);
}

static size_t count_names(const struct rls_find *finds, size_t count)
{
	size_t names = 1;

	for (size_t i = 1; i < count && finds[i].rank == finds[0].rank; i++)
		if (strcmp(finds[i].name, finds[i - 1].name))
			names++;
	return names;
}

/* All finds of one address, best name first. */
static int function_set_merge(const struct rls_find *finds, size_t count,
			      struct rls_boundary_function *out)
{
	size_t names = count_names(finds, count);
	struct rls_boundary_function function = {
		.vaddr = finds[0].vaddr,
		.kind = finds[0].kind,
	};

	for (size_t i = 0; i < count; i++) {
		function.sources |= finds[i].sources;
		if (finds[i].size_bytes > function.size_bytes)
			function.size_bytes = finds[i].size_bytes;
		/* What is in a method table has to catch exceptions, whoever else calls it. */
		if (finds[i].kind == RLS_BOUNDARY_PYTHON_CALLS &&
		    function.kind != RLS_BOUNDARY_DROPPED)
			function.kind = RLS_BOUNDARY_PYTHON_CALLS;
		/* The weakest claim about who calls holds. */
		if (finds[i].kind == RLS_BOUNDARY_DROPPED)
			function.kind = RLS_BOUNDARY_DROPPED;
	}
	/* Slots and getters are inherited and shared under many names by nature. */
	if (names > 1 && finds[0].rank <= RLS_NAME_METHOD) {
		if (asprintf(&function.name, "%s and %zu more", finds[0].name, names - 1) < 0)
			return -ENOMEM;
	} else {
		function.name = strdup(finds[0].name);
		if (!function.name)
			return -ENOMEM;
	}
	*out = function;
	return 0;
}

int rls_function_set_finish(struct rls_function_set *set, struct rls_boundary_function **out,
			    size_t *count)
{
	struct rls_find *finds = set->finds.items;
	size_t total = set->finds.count, merged = 0;
	struct rls_boundary_function *functions = calloc(total + 1, sizeof(*functions));

	if (!functions)
		return -ENOMEM;
	if (total)
		qsort(finds, total, sizeof(*finds), compare_finds);
	for (size_t first = 0, next; first < total; first = next) {
		for (next = first + 1; next < total && finds[next].vaddr == finds[first].vaddr;)
			next++;
		if (function_set_merge(&finds[first], next - first, &functions[merged])) {
			while (merged)
				free(functions[--merged].name);
			free(functions);
			return -ENOMEM;
		}
		merged++;
	}
	rls_function_set_release(set);
	*out = functions;
	*count = merged;
	return 0;
}
