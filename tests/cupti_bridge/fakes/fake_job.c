/* A program that "uses the GPU" through the fake libraries, as a job would through the real
 * ones, and says what it did as one line of JSON.
 *
 *     fake_job [--threads N] [--launches N] [--kernel-ns N] [...]     see --help
 */
#include "fake_calls.h"

#include <argp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 64
#define NAMES_MAX 64

static struct job {
	unsigned int threads, names, pause_ms, linger_ms, devices;
	unsigned long launches, kernel_ns, every_ns, copy_every, graph_every, sync_every, fork_at;
	bool uses_driver, maps_cupti, exits_at_once;
} job = {.threads = 1,
	 .names = 4,
	 .devices = 1,
	 .launches = 1000,
	 .kernel_ns = 1000,
	 .sync_every = 1000};

static struct fake_calls cuda;
static struct fake_kernel kernels[NAMES_MAX];
static char kernel_names[NAMES_MAX][32];
static struct truth {
	int tid;
	unsigned long launches, copies, sets, graphs, waits;
} truths[THREADS_MAX];

static void die(const char *what)
{
	fprintf(stderr, "fake_job: %s\n", what);
	_exit(2);
}

static void launch(const struct fake_kernel *kernel, void *stream)
{
	struct fake_dim3 one = {1, 1, 1};

	if (job.uses_driver)
		cuda.driver_launch(kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
	else
		cuda.launch(kernel, one, one, NULL, 0, stream);
}

/* The child of a process with CUDA: it may not use it, and must end as if it were not there. */
static void fork_once(void)
{
	pid_t child = fork();
	int status = 0;

	if (!child)
		exit(0);
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		die("the forked child did not end well");
}

static void pace(unsigned long step, struct timespec *next)
{
	if (!job.every_ns)
		return;
	if (!step)
		clock_gettime(CLOCK_MONOTONIC, next);
	next->tv_nsec += job.every_ns;
	next->tv_sec += next->tv_nsec / 1000000000;
	next->tv_nsec %= 1000000000;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL);
}

static bool is_due(unsigned long step, unsigned long every)
{
	return every && step % every == every - 1;
}

static void *work(void *argument)
{
	struct truth *truth = argument;
	unsigned int own = truth - truths;
	struct fake_graph graph = {own + 1, job.names, kernels};
	struct timespec next = {0};
	void *stream = NULL;

	truth->tid = gettid();
	cuda.set_device(own % job.devices);
	if (cuda.make_stream(&stream))
		die("no stream");
	for (unsigned long i = 0; i < job.launches; i++) {
		launch(&kernels[(i + own) % job.names], stream);
		truth->launches++;
		if (is_due(i, job.copy_every)) {
			truth->copies += !cuda.copy(NULL, NULL, 4096, 1, stream);
			truth->sets += !cuda.set(NULL, 0, 2048, stream);
		}
		if (is_due(i, job.graph_every))
			truth->graphs += !cuda.launch_graph(&graph, stream);
		if (is_due(i, job.sync_every))
			truth->waits += !cuda.wait_stream(stream);
		if (job.fork_at && i + 1 == job.fork_at)
			fork_once();
		pace(i, &next);
	}
	truth->waits += !cuda.wait_stream(stream);
	return NULL;
}

static void print_truth(void)
{
	printf("{\"pid\": %d, \"kernel_ns\": %lu, \"names\": %u, \"threads\": [", getpid(),
	       job.kernel_ns, job.names);
	for (unsigned int i = 0; i < job.threads; i++)
		printf("%s{\"tid\": %d, \"launches\": %lu, \"copies\": %lu, \"sets\": %lu, "
		       "\"graphs\": %lu, \"waits\": %lu}",
		       i ? ", " : "", truths[i].tid, truths[i].launches, truths[i].copies,
		       truths[i].sets, truths[i].graphs, truths[i].waits);
	printf("]}\n");
	fflush(stdout);
}

static const struct argp_option options[] = {
	{"threads", 't', "N", 0, "Threads that launch, each on a stream of its own (1)", 0},
	{"launches", 'n', "N", 0, "Kernels that each launches (1000)", 0},
	{"kernel-ns", 'k', "N", 0, "How long a kernel lasts (1000)", 0},
	{"names", 'm', "N", 0, "Kernels by name: rls_fake_kernel_0 ... (4)", 0},
	{"every-ns", 'e', "N", 0, "A launch in so many nanoseconds (as fast as it goes)", 0},
	{"copy-every", 'c', "N", 0, "A copy of 4096 and a set of 2048 bytes each N launches", 0},
	{"graph-every", 'g', "N", 0, "A graph of one node a name each N launches", 0},
	{"sync-every", 's', "N", 0, "Wait for the stream each N launches (1000)", 0},
	{"devices", 'd', "N", 0, "Spread threads over N devices (FAKE_CUDA_DEVICES)", 0},
	{"fork-at", 'f', "N", 0, "Fork a child that exits, after launch N", 0},
	{"driver", 'D', NULL, 0, "Launch by cuLaunchKernel, not by cudaLaunchKernel", 0},
	{"map-cupti", 'C', NULL, 0, "Load libcupti at the start, as PyTorch does", 0},
	{"pause-ms", 'p', "N", 0, "Wait after cuInit, before the first launch", 0},
	{"linger-ms", 'l', "N", 0, "Wait after the last launch", 0},
	{"exit-at-once", 'x', NULL, 0, "exit() while the threads still launch", 0},
	{0},
};

static error_t parse(int key, char *text, struct argp_state *state)
{
	unsigned long number = text ? strtoul(text, NULL, 10) : 0;

	switch (key) {
	case 't':
		job.threads = number > THREADS_MAX ? THREADS_MAX : number;
		break;
	case 'n':
		job.launches = number;
		break;
	case 'k':
		job.kernel_ns = number;
		break;
	case 'm':
		job.names = number < 1 || number > NAMES_MAX ? NAMES_MAX : number;
		break;
	case 'e':
		job.every_ns = number;
		break;
	case 'c':
		job.copy_every = number;
		break;
	case 'g':
		job.graph_every = number;
		break;
	case 's':
		job.sync_every = number;
		break;
	case 'd':
		job.devices = number ? number : 1;
		break;
	case 'f':
		job.fork_at = number;
		break;
	case 'D':
		job.uses_driver = true;
		break;
	case 'C':
		job.maps_cupti = true;
		break;
	case 'p':
		job.pause_ms = number;
		break;
	case 'l':
		job.linger_ms = number;
		break;
	case 'x':
		job.exits_at_once = true;
		break;
	case ARGP_KEY_ARG:
		argp_usage(state);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {options, parse, NULL, "Uses the fake CUDA libraries.",
					 NULL,    NULL,  NULL};
	pthread_t threads[THREADS_MAX];
	int devices = 0;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	fake_calls_load(&cuda, job.maps_cupti);
	for (unsigned int i = 0; i < job.names; i++) {
		snprintf(kernel_names[i], sizeof(kernel_names[i]), "rls_fake_kernel_%u", i);
		kernels[i] = (struct fake_kernel){kernel_names[i], job.kernel_ns};
	}
	if (cuda.count(&devices)) {
		printf("{\"pid\": %d, \"no_device\": true}\n", getpid());
		return 0;
	}
	usleep(job.pause_ms * 1000);
	for (unsigned int i = 0; i < job.threads; i++)
		if (pthread_create(&threads[i], NULL, work, &truths[i]))
			die("no thread");
	if (job.exits_at_once) {
		usleep(job.linger_ms * 1000);
		exit(0);
	}
	for (unsigned int i = 0; i < job.threads; i++)
		pthread_join(threads[i], NULL);
	print_truth();
	usleep(job.linger_ms * 1000);
	return 0;
}
