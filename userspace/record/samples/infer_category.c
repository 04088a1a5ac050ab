#include "userspace/record/samples/infer_category.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum rls_hint rls_hint_of(enum rls_code_kind kind, enum rls_category *category)
{
	switch (kind) {
	case RLS_CODE_PROBE:
		return RLS_HINT_PROBE;
	case RLS_CODE_EVALUATION:
		*category = RLS_CATEGORY_PYTHON;
		return RLS_HINT_CATEGORY;
	case RLS_CODE_INTERPRETER:
		return RLS_HINT_INTERPRETER;
	default:
		return rls_code_kind_has_category(kind, category) ? RLS_HINT_CATEGORY
								  : RLS_HINT_NOTHING;
	}
}

static enum rls_hint hint_at(const struct rls_code_place *place, uint64_t address, bool in_kernel,
			     enum rls_category *category)
{
	enum rls_code_kind kind = rls_code_kind_of(place->mapping, place->role, address, in_kernel);

	if (kind == RLS_CODE_KERNEL) /* entered for the code that called it */
		kind = rls_code_kind_of(place->mapping, place->role, address, false);
	return rls_hint_of(kind, category);
}

/* A module that Python loads and calls, by the names that it gives them (PEP 3149); such as have a
 * role tell by themselves. */
static bool is_extension(const struct rls_code_place *place)
{
	const char *name = place->mapping && !place->role ? place->mapping->path : "";

	return strstr(name, ".cpython-") || strstr(name, ".abi3.so");
}

/* What is found on the way from the sampled code to the caller that it works for. */
struct trail {
	size_t word; /* the first above the frames that were passed */
	bool interpreter; /* passed through it, or one of Python's extension modules */
	bool found;
	enum rls_category category;
};

/* Of a return address: what the call before it is of, which may be its function's last instruction. r of rls_code_map_find. */
static int take_word(struct rls_code_map *map, const struct rls_wire_category_sample *sample,
		     uint64_t address, struct trail *trail, struct rls_code_place *place)
{
	enum rls_hint hint;
	int r = rls_code_map_find(map, (pid_t)sample->header.pid, sample->header.time_ns,
				  address - 1, false, place);

	if (r || !place->mapping || !place->mapping->executable)
		return r;
	hint = hint_at(place, address - 1, false, &trail->category);
	trail->found = hint == RLS_HINT_CATEGORY;
	trail->interpreter |= hint == RLS_HINT_INTERPRETER || is_extension(place);
	return 0;
}

/* From frame to frame, while their sizes are known and they lie in what is known of the stack. */
static int infer_category_follow(struct rls_code_map *map,
				 const struct rls_wire_category_sample *sample,
				 struct rls_code_place *place, struct trail *trail)
{
	uint64_t address, bytes;
	int r = 0;

	while (!r && !trail->found && place->mapping && place->mapping->executable) {
		r = rls_code_map_frame_bytes(map, (pid_t)sample->header.pid, place, &bytes);
		if (r || !bytes || bytes % sizeof(*sample->words))
			break;
		if (bytes / sizeof(*sample->words) > RLS_SAMPLE_WORDS - trail->word) {
			trail->word = RLS_SAMPLE_WORDS;
			break;
		}
		trail->word += bytes / sizeof(*sample->words);
		address = sample->words[trail->word - 1];
		if (!address)
			break;
		r = take_word(map, sample, address, trail, place);
	}
	return r == -ENOENT ? 0 : r;
}

/* The nearest word that points into code which tells; some are left over from earlier calls. */
static int search(struct rls_code_map *map, const struct rls_wire_category_sample *sample,
		  struct trail *trail)
{
	int r = 0;

	for (size_t i = trail->word; !r && !trail->found && i < RLS_SAMPLE_WORDS; i++) {
		struct rls_code_place place;

		if (sample->words[i])
			r = take_word(map, sample, sample->words[i], trail, &place);
	}
	return r;
}

int rls_infer_category(struct rls_code_map *map, const struct rls_wire_category_sample *sample,
		       enum rls_category *out)
{
	bool in_kernel = sample->header.flags & RLS_SAMPLE_KERNEL;
	struct trail trail = {0};
	struct rls_code_place place;
	enum rls_hint hint;
	int r = rls_code_map_find(map, (pid_t)sample->header.pid, sample->header.time_ns,
				  sample->ip, true, &place);

	if (r)
		return r;
	hint = hint_at(&place, sample->ip, in_kernel, out);
	if (hint == RLS_HINT_PROBE || sample->header.flags & RLS_SAMPLE_TRAPPED)
		return -EAGAIN;
	if (hint == RLS_HINT_CATEGORY)
		return 0;
	trail.interpreter = hint == RLS_HINT_INTERPRETER || is_extension(&place);
	r = infer_category_follow(map, sample, &place, &trail);
	if (!r && trail.word == RLS_SAMPLE_WORDS && !trail.interpreter)
		trail.word = 0; /* nothing is known but what lies there */
	if (!r)
		r = search(map, sample, &trail);
	if (r)
		return r;
	*out = trail.found         ? trail.category
	       : trail.interpreter ? RLS_CATEGORY_PYTHON
				   : RLS_CATEGORY_UNKNOWN;
	return 0;
}
