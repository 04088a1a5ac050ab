#include "tests/metrics/snapshot_maker.h"

#define SECOND 1000000000ULL

static struct rls_snapshot_row train_rows[] = {
	{"collect", "simulation", RLS_CATEGORY_SIMULATOR, RLS_RESOURCE_CPU, RLS_METHOD_TRACED, 0, 0,
	 0},
	{"collect", "simulation", RLS_CATEGORY_PYTHON, RLS_RESOURCE_CPU, RLS_METHOD_SAMPLED, 0, 0,
	 0},
	{"update", "backpropagation", RLS_CATEGORY_BACKEND, RLS_RESOURCE_CPU_GPU, RLS_METHOD_TRACED,
	 0, 0, 0},
	{"update", "", RLS_CATEGORY_PYTHON, RLS_RESOURCE_GPU, RLS_METHOD_TRACED, 0, 0, 0},
};
static struct rls_snapshot_transition train_transitions[] = {
	{"simulation", RLS_CATEGORY_PYTHON, RLS_CATEGORY_SIMULATOR, 0},
	{"simulation", RLS_CATEGORY_SIMULATOR, RLS_CATEGORY_PYTHON, 0},
};
static struct rls_snapshot_gpu train_gpus[] = {{0, 0, 0, 0}};
static struct rls_snapshot_row odd_rows[] = {
	{"", "say \"hi\"\\\n", RLS_CATEGORY_PYTHON, RLS_RESOURCE_CPU, RLS_METHOD_TRACED, 0, 0, 0},
	{"", "b\xff\x1b[2J", RLS_CATEGORY_UNKNOWN, RLS_RESOURCE_CPU, RLS_METHOD_TRACED, 0, 0, 0},
};

static struct rls_snapshot_job jobs[] = {
	{
		.id = 1,
		.name = "walker",
		.container = "0123456789ab",
		.unit = "train.service",
		.cgroup = "/system.slice/train.service",
		.command = "python3",
		.python = "3.11.2",
		.started_ns = 5 * SECOND,
		.processes_started = 3,
		.processes_alive = 2,
		.rows = train_rows,
		.row_count = 4,
		.transitions = train_transitions,
		.transition_count = 2,
		.gpus = train_gpus,
		.gpu_count = 1,
		.has_on_cpu = true,
	},
	{
		.id = 2,
		.name = "walker\xfe",
		.container = "",
		.unit = "",
		.cgroup = "/user.slice",
		.command = "python\n",
		.python = "",
		.started_ns = 6 * SECOND,
		.processes_started = 1,
		.processes_alive = 1,
		.rows = odd_rows,
		.row_count = 2,
	},
};
static struct rls_snapshot_loss losses[] = {{"transitions", 0}, {"control", 7}};

const struct rls_snapshot *snapshot_make(uint64_t step)
{
	static struct rls_snapshot snapshot = {
		.version = "0.1.0",
		.jobs_seen = 4,
		.jobs_ended = 2,
		.jobs = jobs,
		.job_count = 2,
		.losses = losses,
		.loss_count = 2,
		.health = {.rss_bytes = 12345678,
			   .cpu_ns = 1500000000,
			   .live_jobs = 2,
			   .open_files = 20,
			   .sites = 2451,
			   .budget_percent = 1},
	};

	snapshot.time_ns = (100 + step) * SECOND;
	for (size_t i = 0; i < 4; i++) {
		train_rows[i].wall_ns = step * (i + 1) * SECOND + 1;
		train_rows[i].on_cpu_ns = step * SECOND / 2;
		train_rows[i].corrected_ns = step * SECOND;
	}
	for (size_t i = 0; i < 2; i++) {
		odd_rows[i].wall_ns = step * 1500 * 1000 * 1000;
		train_transitions[i].count = step * 1000 + i;
	}
	train_gpus[0] = (struct rls_snapshot_gpu){0, step * SECOND / 10, step * 50, step * SECOND};
	jobs[0].hits = step * 4000;
	jobs[0].overhead_ns = step * 10 * 1000 * 1000;
	jobs[0].transitions_error = 0.125;
	losses[0].dropped = step;
	return &snapshot;
}
