#include "userspace/metrics/families.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>

#define SECOND_NS UINT64_C(1000000000)

/* Where a family's series go; its head is printed before the first. */
struct series {
	FILE *out;
	const char *name, *type, *help;
	bool begun;
};

/* Pairs of label names and values, ended by NULL. */
static void begin_sample(struct series *series, va_list labels)
{
	const char *name, *separator = "{";

	if (!series->begun)
		fprintf(series->out, "# HELP %s %s\n# TYPE %s %s\n", series->name, series->help,
			series->name, series->type);
	series->begun = true;
	fputs(series->name, series->out);
	while ((name = va_arg(labels, const char *))) {
		fputs(separator, series->out);
		rls_label_write(series->out, name, va_arg(labels, const char *));
		separator = ",";
	}
	fputs(*separator == ',' ? "} " : " ", series->out);
}

static void put_count(struct series *series, uint64_t count, ...)
{
	va_list labels;

	va_start(labels, count);
	begin_sample(series, labels);
	va_end(labels);
	fprintf(series->out, "%" PRIu64 "\n", count);
}

static void put_seconds(struct series *series, uint64_t ns, ...)
{
	unsigned int rest = (unsigned int)(ns % SECOND_NS), digits = 9;
	va_list labels;

	va_start(labels, ns);
	begin_sample(series, labels);
	va_end(labels);
	fprintf(series->out, "%" PRIu64, ns / SECOND_NS);
	for (; rest && rest % 10 == 0; digits--)
		rest /= 10;
	if (rest)
		fprintf(series->out, ".%0*u", (int)digits, rest);
	fputc('\n', series->out);
}

static const char *category_of(const struct rls_fold_cell *cell)
{
	return cell->category == RLS_CATEGORY_MAX ? "" : rls_category_name(cell->category);
}

static void put_cell(struct series *series, const struct rls_fold *fold,
		     const struct rls_fold_cell *cell, uint64_t ns)
{
	put_seconds(series, ns, "job", fold->labels->label, "phase",
		    rls_label_name(&fold->labels->phases, cell->phase), "operation",
		    rls_label_name(&fold->labels->operations, cell->operation), "category",
		    category_of(cell), "resource", rls_resource_name(cell->resource), NULL);
}

static void operations(struct series *series, const struct rls_fold *fold)
{
	for (size_t i = 0; i < fold->cell_count; i++)
		put_cell(series, fold, &fold->cells[i], fold->cells[i].wall_ns);
}

static void operations_on_cpu(struct series *series, const struct rls_fold *fold)
{
	for (size_t i = 0; fold->job->has_on_cpu && i < fold->cell_count; i++)
		if (fold->cells[i].resource != RLS_RESOURCE_GPU)
			put_cell(series, fold, &fold->cells[i], fold->cells[i].on_cpu_ns);
}

static void transitions(struct series *series, const struct rls_fold *fold)
{
	for (size_t i = 0; i < fold->transition_count; i++) {
		const struct rls_fold_transition *transition = &fold->transitions[i];

		put_count(series, transition->count, "job", fold->labels->label, "operation",
			  rls_label_name(&fold->labels->operations, transition->operation), "from",
			  rls_category_name(transition->from), "to",
			  rls_category_name(transition->to), NULL);
	}
}

static const char *gpu_label(char buffer[static 16], const struct rls_snapshot_gpu *gpu)
{
	snprintf(buffer, 16, "%" PRIu32, gpu->device);
	return buffer;
}

static void gpu_busy(struct series *series, const struct rls_fold *fold)
{
	char device[16];

	for (size_t i = 0; i < fold->job->gpu_count; i++)
		put_seconds(series, fold->job->gpus[i].busy_ns, "job", fold->labels->label, "gpu",
			    gpu_label(device, &fold->job->gpus[i]), NULL);
}

static void gpu_smi_style(struct series *series, const struct rls_fold *fold)
{
	char device[16];

	for (size_t i = 0; i < fold->job->gpu_count; i++)
		put_seconds(series, fold->job->gpus[i].smi_style_ns, "job", fold->labels->label,
			    "gpu", gpu_label(device, &fold->job->gpus[i]), NULL);
}

static void gpu_kernels(struct series *series, const struct rls_fold *fold)
{
	char device[16];

	for (size_t i = 0; i < fold->job->gpu_count; i++)
		put_count(series, fold->job->gpus[i].kernels, "job", fold->labels->label, "gpu",
			  gpu_label(device, &fold->job->gpus[i]), NULL);
}

static void process_info(struct series *series, const struct rls_fold *fold)
{
	const struct rls_snapshot_job *job = fold->job;

	put_count(series, 1, "job", fold->labels->label, "container", job->container, "unit",
		  job->unit, "cgroup", job->cgroup, "command", job->command, "python", job->python,
		  NULL);
}

static void processes(struct series *series, const struct rls_fold *fold)
{
	put_count(series, fold->job->processes_alive, "job", fold->labels->label, NULL);
}

static void processes_started(struct series *series, const struct rls_fold *fold)
{
	put_count(series, fold->job->processes_started, "job", fold->labels->label, NULL);
}

static void overhead(struct series *series, const struct rls_fold *fold)
{
	put_seconds(series, fold->job->overhead_ns, "job", fold->labels->label, NULL);
}

static void hits(struct series *series, const struct rls_fold *fold)
{
	put_count(series, fold->job->hits, "job", fold->labels->label, NULL);
}

static void estimated(struct series *series, const struct rls_fold *fold)
{
	put_seconds(series, fold->estimated_ns, "job", fold->labels->label, NULL);
}

/* A ratio, with the digits of a nanosecond. */
static void put_ratio(struct series *series, const struct rls_fold *fold, double ratio)
{
	put_seconds(series, ratio > 0 ? (uint64_t)(ratio * 1e9 + 0.5) : 0, "job",
		    fold->labels->label, NULL);
}

static void transitions_error(struct series *series, const struct rls_fold *fold)
{
	put_ratio(series, fold, fold->job->transitions_error);
}

static void lost_events(struct series *series, const struct rls_families_input *input)
{
	for (size_t i = 0; i < input->snapshot->loss_count; i++)
		put_count(series, input->snapshot->losses[i].dropped, "buffer",
			  input->snapshot->losses[i].buffer, NULL);
}

static void build_info(struct series *series, const struct rls_families_input *input)
{
	put_count(series, 1, "version", input->snapshot->version, NULL);
}

static void jobs(struct series *series, const struct rls_families_input *input)
{
	put_count(series, input->snapshot->health.live_jobs, NULL);
}

static void jobs_seen(struct series *series, const struct rls_families_input *input)
{
	put_count(series, input->snapshot->jobs_seen, NULL);
}

static void jobs_ended(struct series *series, const struct rls_families_input *input)
{
	put_count(series, input->snapshot->jobs_ended, NULL);
}

static void jobs_omitted(struct series *series, const struct rls_families_input *input)
{
	put_count(series, input->snapshot->job_count - input->fold_count, NULL);
}

static void snapshot_time(struct series *series, const struct rls_families_input *input)
{
	put_seconds(series, input->outlets->realtime_ns, NULL);
}

static void budget(struct series *series, const struct rls_families_input *input)
{
	double percent = input->snapshot->health.budget_percent;

	if (percent >= 0) /* a ratio, with the digits of a nanosecond */
		put_seconds(series, (uint64_t)(percent * 1e7 + 0.5), NULL);
}

static void monitor_memory(struct series *series, const struct rls_families_input *input)
{
	put_count(series, input->snapshot->health.rss_bytes, NULL);
}

static void monitor_cpu(struct series *series, const struct rls_families_input *input)
{
	put_seconds(series, input->snapshot->health.cpu_ns, NULL);
}

static void monitor_files(struct series *series, const struct rls_families_input *input)
{
	put_count(series, input->snapshot->health.open_files, NULL);
}

static void monitor_sites(struct series *series, const struct rls_families_input *input)
{
	put_count(series, input->snapshot->health.sites, NULL);
}

static void pages_served(struct series *series, const struct rls_families_input *input)
{
	put_count(series, input->outlets->pages_served, NULL);
}

static void requests_refused(struct series *series, const struct rls_families_input *input)
{
	put_count(series, input->outlets->requests_refused, NULL);
}

static void textfile_failures(struct series *series, const struct rls_families_input *input)
{
	put_count(series, input->outlets->textfile_failures, NULL);
}

/* Of each job, or of the host. Names and labels of the first are a contract (doc/architecture.md, "Metrics"). */
static const struct {
	const char *name, *type, *help;
	void (*of_job)(struct series *series, const struct rls_fold *fold);
	void (*of_host)(struct series *series, const struct rls_families_input *input);
} families[] = {
	{"rlscope_operation_seconds_total", "counter",
	 "Time of the job's threads by innermost operation and category, waiting included; "
	 "with resource gpu: time of GPUs, by launching operation.",
	 operations, NULL},
	{"rlscope_operation_on_cpu_seconds_total", "counter",
	 "The part of rlscope_operation_seconds_total spent running on a CPU.", operations_on_cpu,
	 NULL},
	{"rlscope_transitions_total", "counter",
	 "Changes of a thread's category; a call and its return are two.", transitions, NULL},
	{"rlscope_gpu_busy_seconds_total", "counter", "Time in which the GPU worked for the job.",
	 gpu_busy, NULL},
	{"rlscope_gpu_smi_style_seconds_total", "counter",
	 "Time in which nvidia-smi would report the GPU busy for the job: periods of 1/6 s with "
	 "any kernel.",
	 gpu_smi_style, NULL},
	{"rlscope_gpu_kernels_total", "counter", "Kernels that ran on the GPU for the job.",
	 gpu_kernels, NULL},
	{"rlscope_process_info", "gauge", "What the job is; always 1.", process_info, NULL},
	{"rlscope_processes", "gauge", "Processes of the job that are alive; 0 when it has ended.",
	 processes, NULL},
	{"rlscope_processes_started_total", "counter", "Processes that the job has had.",
	 processes_started, NULL},
	{"rlscope_overhead_seconds_total", "counter", "Estimated overhead of probes in the job.",
	 overhead, NULL},
	{"rlscope_hits_total", "counter", "Probe hits in the job.", hits, NULL},
	{"rlscope_estimated_seconds", "gauge",
	 "The part of rlscope_operation_seconds_total that rests on samples, at least partly.",
	 estimated, NULL},
	{"rlscope_transitions_error_ratio", "gauge",
	 "Error of rlscope_transitions_total at 95 %, as a ratio: 0.1 is a tenth.",
	 transitions_error, NULL},
	{"rlscope_lost_events_total", "counter", "Events that the profiler lost, by buffer.", NULL,
	 lost_events},
	{"rlscope_build_info", "gauge", "The profiler's version; always 1.", NULL, build_info},
	{"rlscope_jobs", "gauge", "Jobs that are alive.", NULL, jobs},
	{"rlscope_jobs_seen_total", "counter", "Jobs seen since the monitor started.", NULL,
	 jobs_seen},
	{"rlscope_jobs_ended_total", "counter", "Jobs seen to end.", NULL, jobs_ended},
	{"rlscope_jobs_omitted", "gauge", "Jobs left out of this page to bound its size.", NULL,
	 jobs_omitted},
	{"rlscope_snapshot_timestamp_seconds", "gauge",
	 "When the figures of this page were taken, in Unix time.", NULL, snapshot_time},
	{"rlscope_overhead_budget_ratio", "gauge",
	 "What probes may cost a job, as a share of its time; absent when unbounded.", NULL,
	 budget},
	{"rlscope_monitor_resident_memory_bytes", "gauge", "Resident memory of the monitor.", NULL,
	 monitor_memory},
	{"rlscope_monitor_cpu_seconds_total", "counter", "CPU time of the monitor.", NULL,
	 monitor_cpu},
	{"rlscope_monitor_open_fds", "gauge", "File descriptors that the monitor has open.", NULL,
	 monitor_files},
	{"rlscope_monitor_sites", "gauge", "Addresses that are probed now.", NULL, monitor_sites},
	{"rlscope_monitor_pages_served_total", "counter", "Pages of metrics served over HTTP.",
	 NULL, pages_served},
	{"rlscope_monitor_requests_refused_total", "counter",
	 "HTTP requests answered otherwise, and connections closed early.", NULL, requests_refused},
	{"rlscope_monitor_textfile_failures_total", "counter",
	 "Times that the text file could not be written.", NULL, textfile_failures},
};

void rls_families_write(const struct rls_families_input *input, FILE *out)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		struct series series = {
			.out = out,
			.name = families[i].name,
			.type = families[i].type,
			.help = families[i].help,
		};

		for (size_t k = 0; families[i].of_job && k < input->fold_count; k++)
			families[i].of_job(&series, &input->folds[k]);
		if (families[i].of_host)
			families[i].of_host(&series, input);
	}
}
