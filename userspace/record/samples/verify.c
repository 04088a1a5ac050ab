#include "userspace/record/samples/verify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "userspace/base/log.h"
#include "userspace/record/samples/hot_functions.h"
#include "userspace/record/samples/code_kind.h"
#include "userspace/record/samples/verify_text.h"

struct rls_verify {
	struct rls_places *places;  /* borrowed */
	struct rls_verify_counts counts;
};

static int note_blind(struct rls_place_file *file, const struct rls_mapping *mapping,
		      uint64_t address)
{
	uint64_t vaddr;

	if (!file->elf || rls_elf_vaddr_of_offset(file->elf,
						  address - mapping->start + mapping->file_offset,
						  &vaddr))
		return 0;
	if (rls_grow(&file->blind, &file->blind_room, file->blind_count))
		return -ENOMEM;
	file->blind[file->blind_count++] = vaddr;
	return 0;
}

static int judge(struct rls_verify *verify, const struct rls_wire_sample *sample,
		 const struct rls_place *place)
{
	bool in_kernel = sample->header.flags & RLS_SAMPLE_KERNEL;
	enum rls_leaf leaf = rls_leaf_of(place->mapping, place->file ? &place->file->leaf : NULL,
					 sample->ip, in_kernel);
	enum rls_category should;

	verify->counts.by[sample->category][leaf]++;
	if (sample->category == RLS_CATEGORY_PYTHON && rls_leaf_has_category(leaf, &should))
		return note_blind(place->file, place->mapping, sample->ip);
	return 0;
}

int rls_verify_add(struct rls_verify *verify, const struct rls_wire_header *record, size_t size)
{
	const struct rls_wire_sample *sample = (const struct rls_wire_sample *)record;
	struct rls_place place;
	int r;

	if (size < sizeof(*sample) || sample->category >= RLS_CATEGORY_MAX)
		return 0;
	if (!(sample->header.flags & RLS_SAMPLE_TRACED)) {
		verify->counts.untraced++;
		return 0;
	}
	r = rls_places_find(verify->places, (pid_t)record->pid, record->time_ns, sample->ip, true,
			    &place);
	if (r == -ENOMEM)
		return r;
	if (r) {
		verify->counts.unplaced++;
		return 0;
	}
	return judge(verify, sample, &place);
}

/* ---- telling ---- */

/* The functions in the blind spot, most samples first. */
static int blind_functions(struct rls_verify *verify, struct rls_hot_function **out, size_t *count)
{
	_cleanup_free_ struct rls_hot_function *functions = NULL;
	size_t found = 0;

	for (size_t i = 0; i < rls_places_files(verify->places); i++) {
		struct rls_place_file *file = rls_places_file(verify->places, i);
		int r = rls_hot_functions_add(file->elf, file->name, file->blind,
					      file->blind_count, &functions, &found);

		if (r)
			return r;
	}
	rls_hot_functions_sort(functions, found);
	*out = rls_take(functions);
	*count = found;
	return 0;
}

/* Takes the text. */
static int tell(struct rls_trace_output *output, uint64_t time_ns, char *text)
{
	_cleanup_free_ char *owned = text;

	if (!text)
		return -ENOMEM;
	rls_info("%s", text);
	return rls_trace_output_warning(output, time_ns, text);
}

int rls_verify_report(struct rls_verify *verify, struct rls_trace_output *output, uint64_t time_ns)
{
	_cleanup_free_ struct rls_hot_function *functions = NULL;
	const struct rls_verify_counts *counts = &verify->counts;
	size_t count = 0;
	int r = blind_functions(verify, &functions, &count);

	for (size_t i = 0; i < count; i++)
		rls_debug("blind: %zu samples, %s+0x%lx %s", functions[i].samples,
			  functions[i].file, functions[i].vaddr,
			  functions[i].name ? functions[i].name : "");
	if (!r)
		r = tell(output, time_ns, rls_verify_blind_text(counts, functions, count));
	if (!r)
		r = tell(output, time_ns, rls_verify_missed_callbacks_text(counts));
	if (!r)
		r = tell(output, time_ns, rls_verify_shares_text(counts));
	return r;
}

/* ---- opening ---- */

int rls_verify_new(struct rls_places *places, struct rls_verify **out)
{
	struct rls_verify *verify = calloc(1, sizeof(*verify));

	if (!verify)
		return -ENOMEM;
	verify->places = places;
	*out = verify;
	return 0;
}

void rls_verify_free(struct rls_verify *verify)
{
	free(verify);
}
