#include "tests/analysis/breakdown/checked_tracks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/report/rows.h"

#define TRACKS_MAX 1024
#define DEPTH_MAX (RLS_OPERATION_DEPTH_MAX + 2)
#define SUMS_MAX 2048

struct checked_track {
	const struct rls_track *track;
	struct rls_slice open[DEPTH_MAX];
	uint64_t begin_ns[DEPTH_MAX];
	size_t depth;
	uint64_t last_ns;
	uint64_t busy_since_ns;
	bool busy;
};

/* What the slices of category on a thread came to within an operation. */
struct sum {
	uint32_t pid, tid;
	const char *operation;
	const char *category;
	uint64_t ns;
};

struct checked {
	struct rls_track_sink sink;
	struct checked_track tracks[TRACKS_MAX];
	struct sum sums[SUMS_MAX];
	size_t sum_count;
	uint64_t busy_ns;
};

static struct checked *of(struct rls_track_sink *sink)
{
	return (struct checked *)sink;
}

static int add_track(struct rls_track_sink *sink, const struct rls_track *track)
{
	assert_in_range(track->number, 1, TRACKS_MAX - 1);
	assert_null(of(sink)->tracks[track->number].track);
	assert_true(*track->name);
	assert_int_equal(track->process->kind, RLS_TRACK_PROCESS);
	of(sink)->tracks[track->number].track = track;
	/* Its process came before it. */
	assert_ptr_equal(of(sink)->tracks[track->process->number].track, track->process);
	return 0;
}

static struct checked_track *known(struct rls_track_sink *sink, const struct rls_track *track)
{
	struct checked_track *checked = &of(sink)->tracks[track->number];

	assert_ptr_equal(checked->track, track);
	return checked;
}

/* Which slice may lie in which. */
static bool may_hold(const struct rls_slice *outer, const struct rls_slice *inner)
{
	if (!outer)
		return true;
	return outer->kind == RLS_SLICE_OPERATION &&
	       (inner->kind == RLS_SLICE_OPERATION || inner->kind == RLS_SLICE_CATEGORY);
}

static int begin(struct rls_track_sink *sink, const struct rls_track *track, uint64_t at_ns,
		 const struct rls_slice *slice)
{
	struct checked_track *checked = known(sink, track);

	assert_true(at_ns >= checked->last_ns);
	assert_true(at_ns >= sink->base_ns);
	assert_true(checked->depth < DEPTH_MAX);
	assert_true(may_hold(checked->depth ? &checked->open[checked->depth - 1] : NULL, slice));
	checked->last_ns = at_ns;
	checked->begin_ns[checked->depth] = at_ns;
	checked->open[checked->depth++] = *slice;
	return 0;
}

static void add_sum(struct checked *checked, const struct rls_track *track, const char *operation,
		    const char *category, uint64_t ns)
{
	for (size_t i = 0; i < checked->sum_count; i++) {
		struct sum *sum = &checked->sums[i];

		if (sum->pid == track->pid && sum->tid == track->tid &&
		    !strcmp(sum->operation, operation) && !strcmp(sum->category, category)) {
			sum->ns += ns;
			return;
		}
	}
	assert_true(checked->sum_count < SUMS_MAX);
	checked->sums[checked->sum_count++] =
		(struct sum){track->pid, track->tid, operation, category, ns};
}

static int end(struct rls_track_sink *sink, const struct rls_track *track, uint64_t at_ns)
{
	struct checked_track *checked = known(sink, track);
	const struct rls_slice *slice;

	assert_true(checked->depth > 0);
	assert_true(at_ns >= checked->last_ns);
	slice = &checked->open[--checked->depth];
	assert_true(at_ns > checked->begin_ns[checked->depth]);
	checked->last_ns = at_ns;
	if (slice->kind == RLS_SLICE_CATEGORY)
		add_sum(of(sink), track,
			checked->depth ? rls_string_pool_get(sink->names,
							     checked->open[checked->depth - 1].name)
				       : "",
			rls_string_pool_get(sink->names, slice->name),
			at_ns - checked->begin_ns[checked->depth]);
	return 0;
}

static int launch(struct rls_track_sink *sink, const struct rls_track *track, uint64_t at_ns,
		  const struct rls_slice *slice)
{
	assert_int_equal(known(sink, track)->track->kind, RLS_TRACK_THREAD);
	assert_int_equal(slice->kind, RLS_SLICE_LAUNCH);
	return 0;
}

static int count(struct rls_track_sink *sink, const struct rls_track *track, uint64_t at_ns,
		 uint64_t value)
{
	struct checked_track *checked = known(sink, track);

	assert_int_equal(track->kind, RLS_TRACK_GPU_BUSY);
	assert_true(at_ns >= checked->last_ns);
	assert_true(checked->busy == !value);
	if (!value)
		of(sink)->busy_ns += at_ns - checked->busy_since_ns;
	checked->busy = value;
	checked->busy_since_ns = checked->last_ns = at_ns;
	return 0;
}

/* Rows of cpu and cpu+gpu, of all phases, make one sum. */
static int compare(struct rls_track_sink *sink, const struct rls_report *report)
{
	struct checked *checked = of(sink);
	uint64_t busy_ns = 0;

	for (size_t i = 1; i < TRACKS_MAX && checked->tracks[i].track; i++) {
		assert_int_equal(checked->tracks[i].depth, 0);
		assert_false(checked->tracks[i].busy);
	}
	for (size_t i = 0; i < report->breakdown_count; i++) {
		const struct rls_breakdown_row *row = &report->breakdown[i];
		const struct rls_track track = {.pid = row->pid, .tid = row->tid};

		if (row->resource != RLS_RESOURCE_GPU)
			add_sum(checked, &track, row->operation, rls_category_name(row->category),
				-row->wall_ns);
	}
	for (size_t i = 0; i < checked->sum_count; i++)
		assert_int_equal(checked->sums[i].ns, 0);
	for (size_t i = 0; i < report->gpu_count; i++)
		busy_ns += report->gpu[i].busy_ns;
	assert_int_equal(checked->busy_ns, busy_ns);
	return 0;
}

static void free_checked(struct rls_track_sink *sink)
{
	free(of(sink));
}

struct rls_tracks *checked_tracks_new(void)
{
	struct checked *checked = calloc(1, sizeof(*checked));
	struct rls_tracks *tracks;

	assert_non_null(checked);
	checked->sink = (struct rls_track_sink){
		.track = add_track,
		.begin = begin,
		.end = end,
		.launch = launch,
		.count = count,
		.finish = compare,
		.free = free_checked,
	};
	tracks = rls_tracks_new(&checked->sink);
	assert_non_null(tracks);
	return tracks;
}
