#include <inttypes.h>

#include "analysis/writers/table/json_string.h"
#include "userspace/metrics/label.h"
#include "userspace/top/view.h"

/* Names from targets are cleaned as for metrics: valid UTF-8, and the same names as there. */
static void put_text(FILE *out, const char *key, const char *text)
{
	char clean[RLS_LABEL_BYTES];

	rls_label_clean(text, clean);
	fprintf(out, "\"%s\":", key);
	rls_json_print_string(out, clean);
}

static void put_sums(FILE *out, const struct rls_rates_sums *sums)
{
	fprintf(out, ",\"total_ns\":%" PRIu64 ",\"categories\":{", sums->total_ns);
	for (enum rls_category i = 0; i < RLS_CATEGORY_MAX; i++)
		fprintf(out, "%s\"%s\":%" PRIu64, i ? "," : "", rls_category_name(i),
			sums->category_ns[i]);
	fprintf(out, "},\"on_gpu_ns\":%" PRIu64 ",\"transitions\":%" PRIu64, sums->on_gpu_ns,
		sums->transitions);
}

static void put_job(FILE *out, const struct rls_rates_job *job)
{
	putc('{', out);
	put_text(out, "job", job->job->name);
	putc(',', out);
	put_text(out, "container", job->job->container);
	fprintf(out, ",\"processes\":%" PRIu64, job->job->processes_alive);
	put_sums(out, &job->sums);
	fprintf(out,
		",\"gpu_busy_ns\":%" PRIu64 ",\"gpu_smi_style_ns\":%" PRIu64
		",\"overhead_ns\":%" PRIu64 ",\"operations\":[",
		job->gpu_busy_ns, job->smi_style_ns, job->overhead_ns);
	for (size_t i = 0; i < job->operation_count; i++) {
		fputs(i ? ",{" : "{", out);
		put_text(out, "operation", job->operations[i].name);
		put_sums(out, &job->operations[i].sums);
		fprintf(out, ",\"estimated\":%s}", job->operations[i].estimated ? "true" : "false");
	}
	fputs("]}", out);
}

void rls_top_write_json(FILE *out, const struct rls_rates *rates)
{
	fprintf(out, "{\"elapsed_ns\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"jobs\":[",
		rates->elapsed_ns, rates->lost);
	for (size_t i = 0; i < rates->job_count; i++) {
		if (i)
			putc(',', out);
		put_job(out, &rates->jobs[i]);
	}
	fputs("]}\n", out);
}
