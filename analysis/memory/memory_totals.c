#include "analysis/memory/memory_totals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/event/bounded.h"

/* Points of a use: so many are collected, then reduced. */
#define POINTS_MAX 4096
#define POINTS_KEPT 1024

/* Of one place; four to an octave, twice. */
#define AGES_MAX 1024

void rls_process_memory_free(struct rls_process_memory *memory)
{
	while (memory->places) {
		struct rls_memory_place *place = memory->places;

		memory->places = place->next;
		free(place->ages.items);
		free(place);
	}
	while (memory->uses) {
		struct rls_used_memory *use = memory->uses;

		memory->uses = use->next;
		free(use->points.items);
		free(use);
	}
	rls_copies_free(&memory->copies);
	*memory = (struct rls_process_memory){0};
}

void rls_memory_totals_free(struct rls_memory_totals *totals)
{
	rls_index_map_free(&totals->map);
	*totals = (struct rls_memory_totals){0};
}

/* --- uses --------------------------------------------------------------------------- */

/* Made if it is not there; NULL: no memory. */
static struct rls_used_memory *use_of(struct rls_process_memory *memory, bool gpu, uint32_t device)
{
	struct rls_used_memory *use = memory->uses;

	while (use && (use->gpu != gpu || (gpu && use->device != device)))
		use = use->next;
	if (use)
		return use;
	use = calloc(1, sizeof(*use));
	if (!use)
		return NULL;
	use->gpu = gpu;
	use->device = gpu ? device : 0;
	use->curve.start_ns = memory->start_ns;
	use->next = memory->uses;
	memory->uses = use;
	return use;
}

static int reduce_points(struct rls_used_memory *use)
{
	size_t count = use->points.count, left = 0;
	_cleanup_free_ struct rls_curve_point *points = calloc(count, sizeof(*points));
	_cleanup_free_ bool *kept = calloc(count, sizeof(*kept));
	int err;

	if (!points || !kept)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		points[i] = use->points.items[i].point;
	err = rls_reduce_curve(points, count, POINTS_KEPT, kept);
	if (err)
		return err;
	for (size_t i = 0; i < count; i++) {
		if (kept[i])
			use->points.items[left++] = use->points.items[i];
	}
	use->points.count = left;
	return 0;
}

static int add_point(struct rls_used_memory *use, uint64_t time_ns, uint64_t bytes)
{
	int err = use->points.count < POINTS_MAX ? 0 : reduce_points(use);

	if (err)
		return err;
	return rls_list_push(&use->points,
			     (struct rls_memory_point){.point = {time_ns, bytes},
						       .live_bytes = use->live_bytes});
}

static int add_use(struct rls_process_memory *memory, const struct rls_event *event)
{
	bool gpu = event->memory_use.gpu;
	uint64_t bytes = gpu ? event->memory_use.allocated_bytes : event->memory_use.rss_bytes;
	struct rls_used_memory *use;

	use = use_of(memory, gpu, event->memory_use.device);
	if (!use)
		return -ENOMEM;
	use->out_of_memory |= event->memory_use.out_of_memory;
	/* All that such an event may say is that memory ended. */
	if (event->memory_use.out_of_memory && !bytes)
		return 0;
	if (!use->known) {
		use->start_bytes = bytes;
		/* Before the first value there was none, not nothing. */
		use->curve.low_bytes = use->curve.now_bytes = bytes;
	}
	if (!use->known || bytes > use->peak_bytes) {
		use->peak_bytes = bytes;
		use->peak_ns = event->time_ns;
		use->peaks++;
	}
	use->known = true;
	use->end_bytes = bytes;
	use->used_bytes = event->memory_use.used_bytes;
	use->limit_bytes = event->memory_use.limit_bytes;
	rls_live_curve_set(&use->curve, event->time_ns, bytes);
	return add_point(use, event->time_ns, bytes);
}

/* --- places ------------------------------------------------------------------------- */

static bool is_same(const struct rls_memory_line *a, const struct rls_memory_line *b)
{
	return a->file == b->file && a->function == b->function && a->line == b->line &&
	       a->source == b->source && a->device == b->device && a->operation == b->operation &&
	       a->phase == b->phase;
}

static uint64_t hash_of(const struct rls_memory_totals *totals, const struct rls_memory_line *of)
{
	const uint32_t words[] = {of->file,   of->function,  of->line, of->source,
				  of->device, of->operation, of->phase};

	return rls_text_hash(totals->seed, (const char *)words, sizeof(words));
}

struct rls_memory_place *rls_memory_totals_find(const struct rls_memory_totals *totals,
						const struct rls_process_memory *memory,
						const struct rls_memory_line *of)
{
	struct rls_memory_place *place =
		rls_index_map_get(&totals->map, (uintptr_t)memory, hash_of(totals, of));

	while (place && !is_same(&place->of, of))
		place = place->same_hash;
	return place;
}

static int add_place(struct rls_memory_totals *totals, struct rls_process_memory *memory,
		     const struct rls_memory_line *of, struct rls_memory_place **out)
{
	struct rls_memory_place *place = calloc(1, sizeof(*place));
	uint64_t hash = hash_of(totals, of);
	int err = -ENOMEM;

	if (place)
		place->use = use_of(memory, of->source == RLS_MEMORY_GPU, of->device);
	if (place && place->use) {
		place->same_hash = rls_index_map_get(&totals->map, (uintptr_t)memory, hash);
		err = rls_index_map_put(&totals->map, (uintptr_t)memory, hash, place);
	}
	if (err) {
		free(place);
		return err;
	}
	place->of = *of;
	place->peak = place->use->peaks;
	place->curve.start_ns = memory->start_ns;
	place->next = memory->places;
	memory->places = place;
	totals->places++;
	*out = place;
	return 0;
}

/* *out NULL: there are too many places. */
static int place_of(struct rls_memory_totals *totals, struct rls_process_memory *memory,
		    const struct rls_memory_line *of, struct rls_memory_place **out)
{
	if (!totals->places)
		totals->seed = rls_text_seed_draw(totals);
	*out = rls_memory_totals_find(totals, memory, of);
	if (*out)
		return 0;
	if (totals->places >= RLS_MEMORY_PLACES_MAX) {
		totals->left_out++;
		return 0;
	}
	return add_place(totals, memory, of, out);
}

uint64_t rls_memory_place_at_peak(const struct rls_memory_place *place)
{
	return place->peak == place->use->peaks ? place->at_peak_bytes : place->live_bytes;
}

static void set_live(struct rls_memory_place *place, uint64_t time_ns, uint64_t bytes)
{
	struct rls_used_memory *use = place->use;

	if (bytes == place->live_bytes)
		return;
	place->at_peak_bytes = rls_memory_place_at_peak(place);
	place->peak = use->peaks;
	use->live_bytes -=
		use->live_bytes < place->live_bytes ? use->live_bytes : place->live_bytes;
	rls_add_bounded(&use->live_bytes, bytes);
	place->live_bytes = bytes;
	rls_live_curve_set(&place->curve, time_ns, bytes);
}

static int add_line(struct rls_memory_totals *totals, struct rls_process_memory *memory,
		    const struct rls_event *event)
{
	uint64_t born = event->memory_line.alloc_bytes, freed = event->memory_line.freed_bytes;
	uint64_t live = born > freed ? born - freed : 0;
	struct rls_memory_place *place;
	int err;

	err = place_of(totals, memory, &event->memory_line.of, &place);
	if (err || !place)
		return err;
	if (born != place->sums.alloc_bytes || freed != place->sums.freed_bytes)
		memory->active_ns = event->time_ns;
	place->sums = (struct rls_memory_sums){
		.allocs = event->memory_line.allocs,
		.alloc_bytes = born,
		.frees = event->memory_line.frees,
		.freed_bytes = freed,
		.temporary_bytes = event->memory_line.temporary_bytes,
		.error_bytes = event->memory_line.error_bytes,
	};
	if (event->memory_line.method > place->method)
		place->method = event->memory_line.method;
	if (!rls_memory_follows(place->of.source, place->method)) {
		place->use->partial |= place->of.source != RLS_MEMORY_MALLOC;
		set_live(place, event->time_ns, 0);
		return 0;
	}
	set_live(place, event->time_ns, live);
	if (live > place->peak_bytes)
		place->peak_bytes = live;
	if (event->memory_line.peak_bytes > place->peak_bytes)
		place->peak_bytes = event->memory_line.peak_bytes;
	return 0;
}

/* --- ages --------------------------------------------------------------------------- */

static int add_ages(struct rls_memory_totals *totals, struct rls_process_memory *memory,
		    const struct rls_event *event)
{
	const struct rls_memory_age age = {
		.freed = event->memory_ages.freed,
		.from_ns = event->memory_ages.from_ns,
		.to_ns = event->memory_ages.to_ns,
		.count = event->memory_ages.count,
	};
	struct rls_memory_place *place;
	int err;

	err = place_of(totals, memory, &event->memory_ages.of, &place);
	if (err || !place)
		return err;
	for (size_t i = 0; i < place->ages.count; i++) {
		struct rls_memory_age *known = &place->ages.items[i];

		if (known->freed == age.freed && known->from_ns == age.from_ns) {
			*known = age;
			return 0;
		}
	}
	return place->ages.count < AGES_MAX ? rls_list_push(&place->ages, age) : 0;
}

static int add_copies(struct rls_memory_totals *totals, struct rls_process_memory *memory,
		      const struct rls_event *event)
{
	struct rls_copy_place *place;
	int err = rls_copies_get(&memory->copies, &event->copy_line.of, event->copy_line.kind,
				 &place);

	if (err == -ENOSPC) {
		totals->left_out++;
		return 0;
	}
	if (err)
		return err;
	place->copies = event->copy_line.copies;
	place->bytes = event->copy_line.bytes;
	return 0;
}

int rls_memory_totals_add(struct rls_memory_totals *totals, struct rls_process_memory *memory,
			  const struct rls_event *event)
{
	if (event->kind == RLS_EVENT_COPY_LINE)
		return add_copies(totals, memory, event);
	if (!memory->any)
		memory->start_ns = event->time_ns;
	memory->any = true;
	switch (event->kind) {
	case RLS_EVENT_MEMORY_LINE:
		return add_line(totals, memory, event);
	case RLS_EVENT_MEMORY_AGES:
		return add_ages(totals, memory, event);
	default:
		return add_use(memory, event);
	}
}

void rls_memory_place_lifetimes(const struct rls_memory_place *place, struct rls_lifetimes *out)
{
	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < place->ages.count; i++) {
		const struct rls_memory_age *age = &place->ages.items[i];
		unsigned int class = rls_lifetime_class(age->from_ns);

		rls_add_bounded(age->freed ? &out->freed[class] : &out->live[class], age->count);
	}
}
