/* Chrome's JSON trace events ("Trace Event Format"), for chrome://tracing and its kin.
 *
 * Times are microseconds with three decimals, since the trace's beginning, so that a reader's
 * doubles hold every nanosecond. Tracks that are no thread get thread numbers that no thread
 * can have.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/writers/table/json_string.h"
#include "analysis/writers/writer.h"

#define TRACK_TID 0x7f000000u

struct chrome {
	struct rls_track_sink sink;
	FILE *out;
	bool any;
};

static struct chrome *chrome_of(struct rls_track_sink *sink)
{
	return (struct chrome *)sink;
}

static uint32_t tid_of(const struct rls_track *track)
{
	return track->kind == RLS_TRACK_THREAD ? track->tid : TRACK_TID + track->number;
}

/* {"ph":"B","pid":1,"tid":1 */
static void print_head(struct chrome *chrome, char phase, const struct rls_track *track)
{
	fprintf(chrome->out, "%s{\"ph\":\"%c\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32,
		chrome->any ? ",\n" : "\n", phase, track->pid, tid_of(track));
	chrome->any = true;
}

static void print_time(struct chrome *chrome, uint64_t at_ns)
{
	bool before = at_ns < chrome->sink.base_ns;
	uint64_t ns = before ? chrome->sink.base_ns - at_ns : at_ns - chrome->sink.base_ns;

	fprintf(chrome->out, ",\"ts\":%s%" PRIu64 ".%03u", before ? "-" : "", ns / 1000,
		(unsigned int)(ns % 1000));
}

static void print_slice(struct chrome *chrome, const struct rls_slice *slice)
{
	fprintf(chrome->out, ",\"cat\":\"%s\",\"name\":", rls_slice_kind_name(slice->kind));
	rls_json_print_string(chrome->out, rls_string_pool_get(chrome->sink.names, slice->name));
}

static void print_flow(struct chrome *chrome, char phase, const struct rls_track *track,
		       uint64_t at_ns, uint64_t flow)
{
	print_head(chrome, phase, track);
	print_time(chrome, at_ns);
	fprintf(chrome->out, ",\"cat\":\"flow\",\"name\":\"launch\",\"id\":\"0x%" PRIx64 "\"%s}",
		flow, phase == 'f' ? ",\"bp\":\"e\"" : "");
}

static int print_track(struct rls_track_sink *sink, const struct rls_track *track)
{
	struct chrome *chrome = chrome_of(sink);
	bool is_process = track->kind == RLS_TRACK_PROCESS;

	if (track->kind == RLS_TRACK_GPU_BUSY)
		return 0;
	print_head(chrome, 'M', track);
	fprintf(chrome->out, ",\"name\":\"%s\",\"args\":{\"name\":",
		is_process ? "process_name" : "thread_name");
	rls_json_print_string(chrome->out, track->name);
	fputs("}}", chrome->out);
	return 0;
}

static int print_begin(struct rls_track_sink *sink, const struct rls_track *track, uint64_t at_ns,
		       const struct rls_slice *slice)
{
	struct chrome *chrome = chrome_of(sink);

	print_head(chrome, 'B', track);
	print_time(chrome, at_ns);
	print_slice(chrome, slice);
	putc('}', chrome->out);
	if (slice->flow)
		print_flow(chrome, 'f', track, at_ns, slice->flow);
	return 0;
}

static int print_end(struct rls_track_sink *sink, const struct rls_track *track, uint64_t at_ns)
{
	struct chrome *chrome = chrome_of(sink);

	print_head(chrome, 'E', track);
	print_time(chrome, at_ns);
	putc('}', chrome->out);
	return 0;
}

static int print_launch(struct rls_track_sink *sink, const struct rls_track *track, uint64_t at_ns,
			const struct rls_slice *slice)
{
	struct chrome *chrome = chrome_of(sink);

	print_head(chrome, 'i', track);
	print_time(chrome, at_ns);
	print_slice(chrome, slice);
	fputs(",\"s\":\"t\"}", chrome->out);
	if (slice->flow)
		print_flow(chrome, 's', track, at_ns, slice->flow);
	return 0;
}

static int print_count(struct rls_track_sink *sink, const struct rls_track *track, uint64_t at_ns,
		       uint64_t value)
{
	struct chrome *chrome = chrome_of(sink);

	print_head(chrome, 'C', track);
	print_time(chrome, at_ns);
	fputs(",\"name\":", chrome->out);
	rls_json_print_string(chrome->out, track->name);
	fprintf(chrome->out, ",\"args\":{\"busy\":%" PRIu64 "}}", value);
	return 0;
}

static int print_rest(struct rls_track_sink *sink, const struct rls_report *report)
{
	struct chrome *chrome = chrome_of(sink);

	fputs("\n],\"otherData\":{\"tool\":", chrome->out);
	rls_json_print_string(chrome->out, report->tool);
	fprintf(chrome->out, ",\"complete\":%s,\"warnings\":", report->complete ? "true" : "false");
	rls_json_print_strings(chrome->out, report->warnings, report->warning_count);
	fputs("}}\n", chrome->out);
	return 0;
}

static void free_chrome(struct rls_track_sink *sink)
{
	free(chrome_of(sink));
}

static struct rls_track_sink *open_chrome(FILE *output)
{
	struct chrome *chrome = calloc(1, sizeof(*chrome));

	if (!chrome)
		return NULL;
	chrome->sink = (struct rls_track_sink){
		.track = print_track,
		.begin = print_begin,
		.end = print_end,
		.launch = print_launch,
		.count = print_count,
		.finish = print_rest,
		.free = free_chrome,
	};
	chrome->out = output;
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", output);
	return &chrome->sink;
}

const struct rls_report_writer rls_chrome_writer = {.name = "chrome", .open = open_chrome};
