/* speedscope's own file format: one "evented" profile for each thread and GPU stream.
 *
 * A profile's events stand together in the file, so they wait in a spool until the trace's
 * end. A frame is a name; its index is the name's id. Times are nanoseconds since the
 * trace's beginning, so that a reader's doubles hold them. Profiles of samples follow
 * (speedscope_samples.h), with frames of their own behind the names.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "analysis/writers/export/speedscope_samples.h"
#include "analysis/writers/export/spool.h"
#include "analysis/writers/table/json_string.h"
#include "analysis/writers/writer.h"

struct profile {
	const struct rls_track *track;
	bool any;
	int64_t start_ns;
	int64_t end_ns;
	rls_string_id *open; /* the names of its open slices: an end has to repeat them */
	size_t open_count, open_capacity;
};

struct speedscope {
	struct rls_track_sink sink;
	FILE *out;
	struct rls_spool *spool;
	struct profile *profiles; /* in the order of the tracks; not every track is one */
	size_t count, capacity;
	size_t *by_track; /* track number -> 1 + index */
	size_t track_count, track_capacity;
};

static struct speedscope *speedscope_of(struct rls_track_sink *sink)
{
	return (struct speedscope *)sink;
}

static bool is_profile(const struct rls_track *track)
{
	return track->kind == RLS_TRACK_THREAD || track->kind == RLS_TRACK_GPU_STREAM;
}

static int add_track(struct rls_track_sink *sink, const struct rls_track *track)
{
	struct speedscope *scope = speedscope_of(sink);
	int err;

	while (scope->track_count <= track->number) {
		err = rls_grow(&scope->by_track, &scope->track_capacity, scope->track_count);
		if (err)
			return err;
		scope->by_track[scope->track_count++] = 0;
	}
	if (!is_profile(track))
		return 0;
	err = rls_grow(&scope->profiles, &scope->capacity, scope->count);
	if (err)
		return err;
	scope->profiles[scope->count++] = (struct profile){.track = track};
	scope->by_track[track->number] = scope->count;
	return 0;
}

static int add_event(struct speedscope *scope, const struct rls_track *track, char type,
		     rls_string_id frame, uint64_t at_ns)
{
	int64_t at = (int64_t)(at_ns - scope->sink.base_ns);
	struct profile *profile = &scope->profiles[scope->by_track[track->number] - 1];
	char text[96];
	int length = snprintf(text, sizeof(text),
			      "%s{\"type\":\"%c\",\"frame\":%" PRIu32 ",\"at\":%" PRId64 "}",
			      profile->any ? ",\n" : "\n", type, frame, at);

	if (!profile->any)
		profile->start_ns = at;
	profile->any = true;
	profile->end_ns = at;
	return rls_spool_put(scope->spool, track->number, text, (size_t)length);
}

static int speedscope_begin(struct rls_track_sink *sink, const struct rls_track *track,
			    uint64_t at_ns, const struct rls_slice *slice)
{
	struct speedscope *scope = speedscope_of(sink);
	struct profile *profile;
	int err;

	if (!is_profile(track))
		return 0;
	profile = &scope->profiles[scope->by_track[track->number] - 1];
	err = rls_grow(&profile->open, &profile->open_capacity, profile->open_count);
	if (err)
		return err;
	profile->open[profile->open_count++] = slice->name;
	return add_event(scope, track, 'O', slice->name, at_ns);
}

static int speedscope_end(struct rls_track_sink *sink, const struct rls_track *track,
			  uint64_t at_ns)
{
	struct speedscope *scope = speedscope_of(sink);
	struct profile *profile;

	if (!is_profile(track))
		return 0;
	profile = &scope->profiles[scope->by_track[track->number] - 1];
	return add_event(scope, track, 'C', profile->open[--profile->open_count], at_ns);
}

static int ignore_launch(struct rls_track_sink *sink, const struct rls_track *track, uint64_t at_ns,
			 const struct rls_slice *slice)
{
	return 0;
}

static int ignore_count(struct rls_track_sink *sink, const struct rls_track *track, uint64_t at_ns,
			uint64_t value)
{
	return 0;
}

/* --- the file ----------------------------------------------------------------------- */

/* "python (7), thread worker (9)" */
static int print_name(FILE *out, const struct rls_track *track)
{
	_cleanup_free_ char *name = NULL;
	int length;

	if (track->kind == RLS_TRACK_THREAD)
		length = asprintf(&name, "%s (%" PRIu32 "), thread %s (%" PRIu32 ")",
				  track->process->name, track->pid, track->name, track->tid);
	else
		length = asprintf(&name, "%s (%" PRIu32 "), %s", track->process->name, track->pid,
				  track->name);
	if (length < 0) {
		name = NULL;
		return -ENOMEM;
	}
	rls_json_print_string(out, name);
	return 0;
}

static int print_profile(struct speedscope *scope, const struct profile *profile)
{
	FILE *out = scope->out;
	int err;

	fputs("{\"type\":\"evented\",\"name\":", out);
	err = print_name(out, profile->track);
	if (err)
		return err;
	fprintf(out,
		",\"unit\":\"nanoseconds\",\"startValue\":%" PRId64 ",\"endValue\":%" PRId64
		",\"events\":[",
		profile->start_ns, profile->end_ns);
	err = rls_spool_copy(scope->spool, profile->track->number, out);
	fputs("]}", out);
	return err;
}

static void print_head(FILE *out, const struct rls_report *report)
{
	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n\"exporter\":",
	      out);
	rls_json_print_string(out, report->tool);
	/* The only free text that speedscope shows. */
	fprintf(out, ",\n\"name\":\"rlscope-bpf%s\",\n\"warnings\":",
		report->warning_count ? ", with warnings: see them in the file" : "");
	rls_json_print_strings(out, report->warnings, report->warning_count);
}

static int finish(struct rls_track_sink *sink, const struct rls_report *report)
{
	struct speedscope *scope = speedscope_of(sink);
	__attribute__((
		cleanup(rls_speedscope_samples_free))) struct rls_speedscope_samples samples = {
		.report = report,
		.first_frame = rls_string_pool_count(sink->names),
	};
	bool first = true;
	int err = 0;

	print_head(scope->out, report);
	fputs(",\n\"profiles\":[", scope->out);
	for (size_t i = 0; !err && i < scope->count; i++) {
		if (!scope->profiles[i].any)
			continue;
		fputs(first ? "\n" : ",\n", scope->out);
		first = false;
		err = print_profile(scope, &scope->profiles[i]);
	}
	if (!err)
		err = rls_speedscope_samples_profiles(&samples, scope->out, first);
	fputs("],\n\"shared\":{\"frames\":[", scope->out);
	for (uint32_t id = 0; id < rls_string_pool_count(sink->names); id++) {
		fputs(id ? ",\n{\"name\":" : "\n{\"name\":", scope->out);
		rls_json_print_string(scope->out, rls_string_pool_get(sink->names, id));
		putc('}', scope->out);
	}
	rls_speedscope_samples_frames(&samples, scope->out);
	fputs("]}}\n", scope->out);
	return err;
}

static void free_speedscope(struct rls_track_sink *sink)
{
	struct speedscope *scope = speedscope_of(sink);

	for (size_t i = 0; i < scope->count; i++)
		free(scope->profiles[i].open);
	rls_spool_free(scope->spool);
	free(scope->profiles);
	free(scope->by_track);
	free(scope);
}

static struct rls_track_sink *open_speedscope(FILE *output)
{
	struct speedscope *scope = calloc(1, sizeof(*scope));

	if (!scope)
		return NULL;
	scope->sink = (struct rls_track_sink){
		.track = add_track,
		.begin = speedscope_begin,
		.end = speedscope_end,
		.launch = ignore_launch,
		.count = ignore_count,
		.finish = finish,
		.free = free_speedscope,
	};
	scope->out = output;
	scope->spool = rls_spool_new();
	if (!scope->spool) {
		free(scope);
		return NULL;
	}
	return &scope->sink;
}

const struct rls_report_writer rls_speedscope_writer = {.name = "speedscope",
							.open = open_speedscope};
