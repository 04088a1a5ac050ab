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

/* Of what every program is made, and how Python calls into C: it works for its caller. Wheels bring copies with
 * names of their own. Our annotation library is no code of the program's own. */
static bool serves_all(const char *path)
{
	static const char *const names[] = {
		"[",           "libc.",       "libc-",    "libm.",       "libm-",
		"libmvec",     "ld-linux",    "ld-musl",  "libpthread",  "libdl.",
		"librt.",      "libstdc++",   "libgcc_s", "libc++",      "libjemalloc",
		"libtcmalloc", "libmimalloc", "libffi",   "librlscope_",
	};
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	}
	return false;
}

/* Code of no role, by where it comes from: what Python itself brings is Python's,
 * and so are our own annotations. */
static enum rls_hint hint_of_file(const struct rls_mapping *mapping)
{
	if (!mapping || !mapping->executable || serves_all(mapping->path))
		return RLS_HINT_NOTHING;
	return strstr(mapping->path, "/lib-dynload/") || strstr(mapping->path, "/rlscope/_annotate")
		       ? RLS_HINT_INTERPRETER
		       : RLS_HINT_ROLELESS;
}

static enum rls_hint hint_at(const struct rls_code_place *place, uint64_t address, bool in_kernel,
			     enum rls_category *category)
{
	enum rls_code_kind kind = rls_code_kind_of(place->mapping, place->role, address, in_kernel);

	if (kind == RLS_CODE_KERNEL) /* entered for the code that called it */
		kind = rls_code_kind_of(place->mapping, place->role, address, false);
	return kind == RLS_CODE_OTHER ? hint_of_file(place->mapping) : rls_hint_of(kind, category);
}

/* What is found on the way from the sampled code to the caller that it works for. */
struct trail {
	size_t word; /* the first above the frames that were passed */
	bool interpreter; /* passed through it */
	bool roleless; /* passed through a library without a role */
	bool outermost; /* the last frame is of libc: with a library behind it, that began the thread */
	bool searching; /* what is found may be left over from earlier calls */
	bool found;
	enum rls_category category;
};

static void take_hint(struct trail *trail, enum rls_hint hint)
{
	trail->found = hint == RLS_HINT_CATEGORY;
	trail->outermost = hint == RLS_HINT_NOTHING;
	trail->interpreter |= hint == RLS_HINT_INTERPRETER;
	trail->roleless |= hint == RLS_HINT_ROLELESS && !(trail->searching && trail->interpreter);
}

/* Of a return address: what the call before it is of, which may be its function's last instruction. r of rls_code_map_find. */
static int take_word(struct rls_code_map *map, const struct rls_wire_category_sample *sample,
		     uint64_t address, struct trail *trail, struct rls_code_place *place)
{
	int r = rls_code_map_find(map, (pid_t)sample->header.pid, sample->header.time_ns,
				  address - 1, false, place);

	if (!r && place->mapping && place->mapping->executable)
		take_hint(trail, hint_at(place, address - 1, false, &trail->category));
	return r;
}

/* How far the return address is, of code whose frames unwinders find by the frame pointer: if that leads to code. */
static int frame_bytes_by_pointer(struct rls_code_map *map,
				  const struct rls_wire_category_sample *sample, size_t word,
				  uint64_t *bytes)
{
	size_t saved = sample->frame_pointer / sizeof(*sample->words), address = saved + 1;
	struct rls_code_place place;
	int r;

	if (!sample->frame_pointer || sample->frame_pointer % sizeof(*sample->words) ||
	    saved < word || address >= RLS_SAMPLE_WORDS)
		return -ENOENT;
	r = rls_code_map_find(map, (pid_t)sample->header.pid, sample->header.time_ns,
			      sample->words[address], false, &place);
	if (r)
		return r;
	if (!place.mapping || !place.mapping->executable)
		return -ENOENT;
	*bytes = (address + 1 - word) * sizeof(*sample->words);
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
		if (r == -ENOENT)
			r = frame_bytes_by_pointer(map, sample, trail->word, &bytes);
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

	trail->searching = true;
	for (size_t i = trail->word; !r && !trail->found && i < RLS_SAMPLE_WORDS; i++) {
		struct rls_code_place place;

		if (sample->words[i])
			r = take_word(map, sample, sample->words[i], trail, &place);
	}
	return r;
}

/* A library without a role counts as its caller's, unless that is Python. */
static struct rls_inferred conclude(const struct trail *trail, uint8_t flags)
{
	bool python = trail->found ? trail->category == RLS_CATEGORY_PYTHON : true;

	if (!python)
		return (struct rls_inferred){trail->category, false};
	if (trail->roleless)
		return (struct rls_inferred){RLS_CATEGORY_NATIVE, true};
	if (trail->found || trail->interpreter)
		return (struct rls_inferred){RLS_CATEGORY_PYTHON, false};
	if (flags & RLS_SAMPLE_NO_PYTHON)
		return (struct rls_inferred){RLS_CATEGORY_NATIVE, true};
	return (struct rls_inferred){RLS_CATEGORY_UNKNOWN, false};
}

int rls_infer_category(struct rls_code_map *map, const struct rls_wire_category_sample *sample,
		       struct rls_inferred *out)
{
	bool in_kernel = sample->header.flags & RLS_SAMPLE_KERNEL;
	struct trail trail = {0};
	struct rls_code_place place;
	enum rls_hint hint;
	int r = rls_code_map_find(map, (pid_t)sample->header.pid, sample->header.time_ns,
				  sample->ip, true, &place);

	if (r)
		return r;
	hint = hint_at(&place, sample->ip, in_kernel, &trail.category);
	if (hint == RLS_HINT_PROBE || sample->header.flags & RLS_SAMPLE_TRAPPED)
		return -EAGAIN;
	take_hint(&trail, hint);
	if (!trail.found)
		r = infer_category_follow(map, sample, &place, &trail);
	if (!r && trail.word == RLS_SAMPLE_WORDS && !trail.interpreter && !trail.roleless)
		trail.word = 0; /* nothing is known but what lies there */
	if (!r && !trail.found && !(trail.roleless && trail.outermost))
		r = search(map, sample, &trail);
	if (!r)
		*out = conclude(&trail, sample->header.flags);
	return r;
}
