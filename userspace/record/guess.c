#include "userspace/record/guess.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum rls_hint rls_hint_of(enum rls_leaf leaf, enum rls_category *category)
{
	switch (leaf) {
	case RLS_LEAF_PROBE:
		return RLS_HINT_PROBE;
	case RLS_LEAF_EVALUATION:
		*category = RLS_CATEGORY_PYTHON;
		return RLS_HINT_CATEGORY;
	case RLS_LEAF_INTERPRETER:
		return RLS_HINT_INTERPRETER;
	default:
		return rls_leaf_has_category(leaf, category) ? RLS_HINT_CATEGORY : RLS_HINT_NOTHING;
	}
}

static enum rls_hint hint_at(const struct rls_place *place, uint64_t address, bool in_kernel,
			     enum rls_category *category)
{
	const struct rls_leaf_file *file = place->file ? &place->file->leaf : NULL;
	enum rls_leaf leaf = rls_leaf_of(place->mapping, file, address, in_kernel);

	if (leaf == RLS_LEAF_KERNEL) /* entered for the code that called it */
		leaf = rls_leaf_of(place->mapping, file, address, false);
	return rls_hint_of(leaf, category);
}

/* A module that Python loads and calls, by the names that it gives them (PEP 3149); such as have a
 * role tell by themselves. */
static bool is_extension(const struct rls_place *place)
{
	const char *name = place->mapping && !place->file ? place->mapping->path : "";

	return strstr(name, ".cpython-") || strstr(name, ".abi3.so");
}

/* The nearest word that points into code which tells. */
static int search(struct rls_places *places, const struct rls_wire_look *look, bool *interpreter,
		  enum rls_category *out)
{
	for (size_t i = 0; i < RLS_LOOK_WORDS; i++) {
		struct rls_place place;
		enum rls_hint hint;
		int r;

		if (!look->words[i])
			continue;
		r = rls_places_find(places, (pid_t)look->header.pid, look->header.time_ns,
				    look->words[i], false, &place);
		if (r)
			return r;
		if (!place.mapping || !place.mapping->executable)
			continue;
		hint = hint_at(&place, look->words[i], false, out);
		if (hint == RLS_HINT_CATEGORY)
			return 0;
		*interpreter |= hint == RLS_HINT_INTERPRETER || is_extension(&place);
	}
	*out = *interpreter ? RLS_CATEGORY_PYTHON : RLS_CATEGORY_UNKNOWN;
	return 0;
}

int rls_guess(struct rls_places *places, const struct rls_wire_look *look, enum rls_category *out)
{
	bool in_kernel = look->header.flags & RLS_SAMPLE_KERNEL;
	struct rls_place place;
	bool interpreter;
	int r = rls_places_find(places, (pid_t)look->header.pid, look->header.time_ns, look->ip,
				true, &place);

	if (r)
		return r;
	switch (hint_at(&place, look->ip, in_kernel, out)) {
	case RLS_HINT_PROBE:
		return -EAGAIN;
	case RLS_HINT_CATEGORY:
		return 0;
	case RLS_HINT_INTERPRETER:
		interpreter = true;
		return search(places, look, &interpreter, out);
	default:
		interpreter = is_extension(&place);
		return search(places, look, &interpreter, out);
	}
}
