#include "userspace/monitor/monitor.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analysis/base/grow.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/attach/kernel/kernel_rings.h"
#include "userspace/attach/kernel/kernel_totals.h"
#include "userspace/base/clock.h"
#include "userspace/base/hangup.h"
#include "userspace/base/log.h"
#include "userspace/cpu/cpu_priority.h"
#include "userspace/monitor/cells.h"
#include "userspace/monitor/jobs.h"
#include "userspace/record/budget/overhead_controller.h"
#include "userspace/record/events/losses.h"
#include "userspace/record/probes/libraries.h"

#define SWEEP_EVERY_NS 5000000000ULL
#define FLUSH_AGAIN_NS 50000000ULL
#define SWEEP_AGAIN_NS 200000000ULL /* for a snapshot: figures older than that are read anew */
/* A process after its end: its last time is added as its threads end, its GPU work comes later. */
#define ENDED_KEPT_NS 8000000000ULL
/* Work waits on the GPU's queue, and then for RLS_GPU_USE_HOLD_NS. */
#define LAUNCHES_KEPT_NS 30000000000ULL
/* For getting ready where others leave no CPU any time. */
#define PATIENCE_NS 5000000000ULL
#define SAMPLE_STANDS_NS (1000000000ULL / RLS_CATEGORY_SAMPLES_HZ)

struct rls_monitor {
	struct rls_recorder_listener listener;
	struct rls_monitor_hooks hooks;
	double budget_percent;
	struct rls_recorder *recorder;
	struct rls_jobs jobs;
	struct rls_names names;
	struct rls_cells cells;
	uint64_t swept_ns, flushed_ns;
	bool has_new_processes; /* since the last flush */
	bool over; /* the kernel side has stopped */
	int trouble; /* met where it could not be returned */
	int wish; /* what a tick returned to end it */
	struct rls_snapshot snapshot;
	struct rls_snapshot_job *shown;
	size_t shown_room;
	struct rls_snapshot_loss losses[RLS_DROP_MAX];
};

/* ---- what the recorder tells ---- */

static void forget_ended(struct rls_monitor *monitor, uint64_t before_ns);

static void warn_of_others(struct rls_job *job)
{
	if (!job->ledger.has_others || job->warned_of_others)
		return;
	job->warned_of_others = true;
	rls_warning("job %s has more than %d operations, %d phases or %d pairs of them: later ones "
		    "are all counted as " RLS_LEDGER_OTHER,
		    job->name, RLS_LEDGER_OPERATIONS, RLS_LEDGER_PHASES, RLS_LEDGER_SCOPES);
}

/* listen: what waits in the rings is taken first, for names come before the cells that they are
 * the names of. Not from within a record's handler. */
static int monitor_sweep(struct rls_monitor *monitor, uint64_t now_ns, bool listen)
{
	struct rls_kernel *kernel = rls_recorder_kernel(monitor->recorder);
	int r = rls_kernel_flush_totals(kernel);

	if (!r && listen)
		r = rls_recorder_consume(monitor->recorder);
	if (r >= 0)
		r = rls_cells_sweep(&monitor->cells, kernel, &monitor->jobs, &monitor->names);
	if (r)
		return rls_error_r(r, "cannot read what the kernel side has summed up: %s",
				   strerror(-r));
	for (size_t i = 0; i < monitor->jobs.count; i++) {
		struct rls_job *job = monitor->jobs.jobs[i];

		rls_ledger_apportion(&job->ledger, job->ended_ns != 0);
		warn_of_others(job);
		rls_gpu_use_advance(&job->gpu,
				    job->ended_ns && now_ns > job->ended_ns + ENDED_KEPT_NS
					    ? UINT64_MAX
					    : now_ns);
	}
	for (struct rls_member *m = monitor->jobs.all_members; m; m = m->next)
		rls_launches_forget(&m->launches, now_ns - LAUNCHES_KEPT_NS);
	monitor->swept_ns = now_ns;
	forget_ended(monitor, now_ns - ENDED_KEPT_NS);
	return monitor->trouble;
}

/* What a device of a job did: to the operation that launched it. */
static void on_gpu_fed(void *context, size_t place, const struct rls_gpu_use_interval *interval)
{
	struct rls_monitor *monitor = context;
	struct rls_member *member = rls_jobs_find(&monitor->jobs, interval->pid);
	struct rls_ledger_scope *scope;
	uint32_t operation, phase;
	int r;

	if (!member)
		return;
	rls_launches_find(&member->launches, interval->correlation, &operation, &phase);
	r = rls_ledger_scope(&member->job->ledger, rls_names_text(&monitor->names, operation),
			     rls_names_text(&monitor->names, phase), &scope);
	if (!r)
		r = rls_ledger_gpu(scope, place, interval->start_ns, interval->end_ns);
	if (r)
		monitor->trouble = r;
}

static bool is_over(void *context, uint32_t pid)
{
	struct rls_monitor *monitor = context;

	return !rls_jobs_find(&monitor->jobs, pid);
}

static void forget_ended(struct rls_monitor *monitor, uint64_t before_ns)
{
	struct rls_kernel *kernel = rls_recorder_kernel(monitor->recorder);

	for (const struct rls_member *m = monitor->jobs.all_members; m; m = m->next) {
		/* Tracked: its number is another process's by now. */
		if (m->ended_ns && m->ended_ns < before_ns &&
		    !rls_kernel_is_tracked(kernel, (pid_t)m->pid))
			rls_kernel_drop_scope(kernel, (pid_t)m->pid);
	}
	rls_cells_forget(&monitor->cells, kernel, &monitor->jobs, before_ns);
	rls_jobs_forget(&monitor->jobs, before_ns);
	rls_names_age(&monitor->names, is_over, monitor);
	rls_jobs_expire(&monitor->jobs, monitor->swept_ns);
}

static int begin_process(struct rls_monitor *monitor, const struct rls_event *event)
{
	struct rls_member *before = rls_jobs_find(&monitor->jobs, event->pid);
	const char *python;
	struct rls_job *job;
	int r = 0;

	if (before && before->ended_ns) { /* another one has its number */
		r = monitor_sweep(monitor, rls_monotonic_ns(), false);
		if (!r)
			forget_ended(monitor, before->ended_ns + 1);
	}
	if (!r)
		r = rls_jobs_begin(&monitor->jobs, event->pid, event->process.ppid, event->time_ns,
				   rls_job_identity_read, &job);
	if (r)
		return r;
	monitor->has_new_processes = true;
	job->gpu.fed = on_gpu_fed;
	job->gpu.context = monitor;
	python = rls_libraries_python(rls_recorder_libraries(monitor->recorder), (pid_t)event->pid);
	if (!job->python[0])
		snprintf(job->python, sizeof(job->python), "%s", python);
	return 0;
}

static int on_event(void *context, const struct rls_event *event)
{
	struct rls_monitor *monitor = context;
	struct rls_member *member;

	switch (event->kind) {
	case RLS_EVENT_PROCESS:
		return begin_process(monitor, event);
	case RLS_EVENT_PROCESS_END:
		rls_jobs_end(&monitor->jobs, event->pid, event->time_ns);
		return 0;
	case RLS_EVENT_GPU:
		member = rls_jobs_find(&monitor->jobs, event->pid);
		return member ? rls_gpu_use_add(&member->job->gpu, event) : 0;
	case RLS_EVENT_LAUNCH:
		member = rls_jobs_find(&monitor->jobs, event->pid);
		return member ? rls_launches_add(&member->launches, event) : 0;
	default:
		return 0;
	}
}

static int on_name(void *context, const struct rls_wire_name *name)
{
	struct rls_monitor *monitor = context;

	return rls_names_add(&monitor->names, name);
}

static int on_name_change(void *context, const struct rls_wire_name_change *change)
{
	struct rls_monitor *monitor = context;
	struct rls_member *member = rls_jobs_find(&monitor->jobs, change->header.pid);

	return member ? rls_launches_change(&member->launches, change) : 0;
}

static int on_category_sample(void *context, const struct rls_wire_category_sample *sample,
			      enum rls_category inferred)
{
	struct rls_monitor *monitor = context;
	struct rls_member *member = rls_jobs_find(&monitor->jobs, sample->header.pid);
	struct rls_ledger_scope *scope;
	int r;

	if (!member)
		return 0;
	r = rls_ledger_scope(&member->job->ledger,
			     rls_names_text(&monitor->names, sample->operation),
			     rls_names_text(&monitor->names, sample->phase), &scope);
	if (!r)
		rls_ledger_sample(&member->job->ledger, scope, sample->category, inferred,
				  SAMPLE_STANDS_NS);
	return r;
}

static int on_tick(void *context, uint64_t time_ns)
{
	struct rls_monitor *monitor = context;
	int r = 0;

	/* A flush makes their first threads known. */
	if (monitor->has_new_processes && time_ns - monitor->flushed_ns >= FLUSH_AGAIN_NS) {
		monitor->has_new_processes = false;
		monitor->flushed_ns = time_ns;
		r = rls_kernel_flush_totals(rls_recorder_kernel(monitor->recorder));
	}
	if (!r && time_ns - monitor->swept_ns >= SWEEP_EVERY_NS)
		r = monitor_sweep(monitor, time_ns, true);
	if (!r && monitor->hooks.tick)
		r = monitor->hooks.tick(monitor->hooks.context, time_ns);
	monitor->wish = r;
	return r;
}

/* ---- open, run ---- */

int rls_monitor_open(const struct rls_monitor_options *options, struct rls_monitor **out)
{
	struct rls_monitor *monitor = calloc(1, sizeof(*monitor));
	struct rls_recorder_options recorder = {
		.roles = options->roles,
		.selection = options->selection,
		.duration_ns = options->duration_ns,
		.follow_children = options->follow_children,
		.budget_percent = options->budget_percent,
		.perf_events = options->perf_events,
	};
	int r;

	if (!monitor)
		return -ENOMEM;
	monitor->budget_percent = options->budget_percent;
	monitor->listener = (struct rls_recorder_listener){
		on_event, on_name, on_name_change, on_category_sample, on_tick, monitor};
	recorder.listener = &monitor->listener;
	rls_priority_prepare(PATIENCE_NS);
	r = rls_recorder_open(&recorder, &monitor->recorder);
	if (!r)
		r = rls_recorder_add_selected(monitor->recorder);
	rls_priority_end();
	if (r) {
		rls_monitor_free(monitor);
		return r;
	}
	*out = monitor;
	return 0;
}

void rls_monitor_free(struct rls_monitor *monitor)
{
	if (!monitor)
		return;
	rls_recorder_free(monitor->recorder);
	rls_jobs_clear(&monitor->jobs);
	rls_names_clear(&monitor->names);
	rls_cells_clear(&monitor->cells);
	free(monitor->shown);
	free(monitor);
}

static void on_started(void *context)
{
	struct rls_monitor *monitor = context;

	monitor->swept_ns = rls_monotonic_ns();
	if (monitor->hooks.started)
		monitor->hooks.started(monitor->hooks.context);
}

static bool on_signal(void *context, int signal, bool from_terminal)
{
	struct rls_monitor *monitor = context;

	if (monitor->hooks.on_signal)
		return monitor->hooks.on_signal(monitor->hooks.context, signal);
	return signal == SIGHUP && rls_hangup_is_ignored();
}

int rls_monitor_run(struct rls_monitor *monitor, const struct rls_monitor_hooks *hooks)
{
	const struct rls_recorder_hooks recorder_hooks = {on_started, on_signal, monitor};
	enum rls_stop why;
	int r, finished;

	monitor->hooks = *hooks;
	r = rls_recorder_run(monitor->recorder, &recorder_hooks, &why);
	if (r)
		return r;
	if (why == RLS_STOP_FAILED && monitor->wish <= 0)
		r = monitor->wish ? monitor->wish : -EIO;
	if (!r)
		r = monitor_sweep(monitor, rls_monotonic_ns(), true);
	monitor->over = true;
	finished =
		rls_recorder_finish(monitor->recorder); /* the bridges' last batches come with it */
	for (size_t i = 0; i < monitor->jobs.count; i++)
		rls_gpu_use_advance(&monitor->jobs.jobs[i]->gpu, UINT64_MAX);
	return r ? r : finished;
}

/* ---- snapshot ---- */

static uint64_t count_open_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	uint64_t count = 0;

	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	return count > 3 ? count - 3 : 0; /* ".", ".." and the folder itself */
}

static uint64_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long pages = 0;

	if (file) {
		if (fscanf(file, "%*u %lu", &pages) != 1)
			pages = 0;
		fclose(file);
	}
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void show_health(struct rls_monitor *monitor, struct rls_snapshot *snapshot)
{
	struct timespec cpu = {0};

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	snapshot->health = (struct rls_snapshot_health){
		.rss_bytes = resident_bytes(),
		.cpu_ns = (uint64_t)cpu.tv_sec * 1000000000ULL + (uint64_t)cpu.tv_nsec,
		.live_jobs = monitor->jobs.seen - monitor->jobs.ended,
		.open_files = count_open_files(),
		.sites = rls_libraries_sites(rls_recorder_libraries(monitor->recorder)),
		.budget_percent = monitor->budget_percent,
	};
}

static void show_losses(struct rls_monitor *monitor, struct rls_snapshot *snapshot)
{
	uint64_t drops[RLS_DROP_MAX];

	rls_kernel_drops(rls_recorder_kernel(monitor->recorder), drops);
	drops[RLS_DROP_CELLS] += monitor->cells.unplaced;
	for (int i = 0; i < RLS_DROP_MAX; i++)
		monitor->losses[i] = (struct rls_snapshot_loss){
			rls_drop_name((enum rls_drop_counter)i), drops[i]};
	snapshot->losses = monitor->losses;
	snapshot->loss_count = RLS_DROP_MAX;
}

static int show_job(struct rls_job *job, struct rls_snapshot_job *out)
{
	int r = rls_ledger_show(&job->ledger);

	if (!r)
		r = rls_gpu_use_show(&job->gpu);
	*out = (struct rls_snapshot_job){
		.id = job->id,
		.name = job->name,
		.container = job->identity.container,
		.unit = job->identity.unit,
		.cgroup = job->identity.cgroup,
		.command = job->identity.command,
		.python = job->python,
		.started_ns = job->started_ns,
		.ended_ns = job->ended_ns,
		.processes_started = job->processes_started,
		.processes_alive = job->processes_alive,
		.rows = job->ledger.rows,
		.row_count = job->ledger.row_count,
		.transitions = job->ledger.transitions,
		.transition_count = job->ledger.transition_count,
		.transitions_error = job->ledger.transitions_error,
		.gpus = job->gpu.shown,
		.gpu_count = job->gpu.count,
		.has_on_cpu = true,
		.hits = job->ledger.hits,
		.overhead_ns = job->ledger.cost_ns,
	};
	return r;
}

int rls_monitor_snapshot(struct rls_monitor *monitor, const struct rls_snapshot **out)
{
	struct rls_snapshot *snapshot = &monitor->snapshot;
	uint64_t now_ns = rls_monotonic_ns();
	int r = 0;

	if (!monitor->over && now_ns - monitor->swept_ns > SWEEP_AGAIN_NS)
		r = monitor_sweep(monitor, now_ns, true);
	for (size_t i = 0; !r && i < monitor->jobs.count; i++) {
		r = rls_grow(&monitor->shown, &monitor->shown_room, i);
		if (!r)
			r = show_job(monitor->jobs.jobs[i], &monitor->shown[i]);
	}
	if (r)
		return r;
	*snapshot = (struct rls_snapshot){
		.version = RLS_VERSION,
		.time_ns = monitor->swept_ns,
		.jobs_seen = monitor->jobs.seen,
		.jobs_ended = monitor->jobs.ended,
		.jobs = monitor->shown,
		.job_count = monitor->jobs.count,
	};
	show_losses(monitor, snapshot);
	show_health(monitor, snapshot);
	*out = snapshot;
	return 0;
}
