/* What samples: the scheduler's ticks, or one timer a CPU, for all that is to be known at an instant. */
#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "analysis/base/cleanup.h"
#include "userspace/attach/kernel/kernel_sampling.h"
#include "userspace/attach/kernel/kernel_state.h"
#include "userspace/attach/tick_phases.h"
#include "userspace/base/descriptors.h"
#include "userspace/base/log.h"

/* What a tick costs the thread that it interrupts: programs alone, which find nothing of theirs in the
 * caches (0.32 % for 199 a second), or an interrupt too, which in a virtual
 * machine has to leave it: of that a thread that fills its caches has far more trouble. */
#define SCHEDULER_TICK_NS 16000
#define TIMER_TICK_NS 20000
#define VIRTUAL_TIMER_TICK_NS 115000
/* Of the timer that samples windows, which is taken out of what these traced: between what a small loop has of
 * such a tick, 18 us, and a training job, 75 to 115. */
#define CLOSE_SAMPLE_NS 80000
#define CLOSE_SAMPLES_HZ 997

void rls_kernel_choose_samplers(struct rls_kernel *kernel, const struct rls_kernel_options *options)
{
	struct rlscope *skeleton = kernel->skeleton;
	bool stacks = options->stacks_bytes, any = kernel->windows || stacks;

	skeleton->rodata->stacks_sampled = stacks;
	bpf_program__set_autoload(skeleton->progs.on_tick, any);
	bpf_program__set_autoload(skeleton->progs.on_scheduler_tick, any);
	bpf_program__set_autoload(skeleton->progs.on_close_sample, kernel->windows);
	bpf_map__set_autocreate(skeleton->maps.pauses,
				any && !kernel->totals_mode); /* totals have waiting as such */
	bpf_map__set_autocreate(skeleton->maps.stacks, stacks);
	bpf_map__set_autocreate(skeleton->maps.samples, stacks);
	bpf_map__set_autocreate(skeleton->maps.to_announce, stacks);
}

static void want_ticks(struct rls_kernel *kernel, unsigned int hz)
{
	if (hz > kernel->sampler.hz)
		kernel->sampler.hz = hz;
}

/* Whoever runs virtual machines sets this bit for them (Intel's manual and AMD's keep it 0 in processors). */
static bool is_virtual_machine(void)
{
	unsigned int unused, features = 0;

	return __get_cpuid(1, &unused, &unused, &features, &unused) && features >> 31;
}

/* Without them less is known of what other samples mistake. */
static void attach_close_samples(struct rls_kernel *kernel)
{
	struct rls_sampler *sampler = &kernel->close_samples;
	int r;

	sampler->hz = CLOSE_SAMPLES_HZ;
	kernel->skeleton->bss->close_sample_cost_ns =
		is_virtual_machine() ? CLOSE_SAMPLE_NS : TIMER_TICK_NS;
	r = rls_sampler_attach(sampler, &kernel->links, kernel->skeleton->progs.on_close_sample);
	rls_sampler_enable(sampler, false);
	if (r)
		rls_debug("no timer samples windows closely: %s", strerror(-r));
}

void rls_kernel_sample_closely(struct rls_kernel *kernel, bool closely)
{
	rls_sampler_enable(&kernel->close_samples, closely && kernel->scheduler_ticks);
}

void rls_kernel_attach_category_samples(struct rls_kernel *kernel, unsigned int hz)
{
	attach_close_samples(kernel);
	want_ticks(kernel, hz);
	kernel->skeleton->bss->category_samples_wanted = true;
}

void rls_kernel_attach_stacks(struct rls_kernel *kernel, unsigned int hz, unsigned int waits_hz)
{
	kernel->skeleton->bss->waits_per_window = waits_hz / 10;
	want_ticks(kernel, hz);
	kernel->others_hz = hz;
	kernel->skeleton->bss->category_samples_wanted = true;
	kernel->skeleton->bss->stacks_wanted = true;
}

/* ---- the scheduler's ticks ---- */

#define TICKS_AWAITED 4
#define CHECK_PHASES_NS 500000000ULL

/* The coarse clock goes on with each tick, so that is what it can tell apart. */
static uint64_t scheduler_period_ns(void)
{
	struct timespec step;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &step) || step.tv_sec)
		return 0;
	return (uint64_t)step.tv_nsec;
}

unsigned int rls_scheduler_hz(void)
{
	uint64_t period_ns = scheduler_period_ns();

	return period_ns ? (unsigned int)(1000000000ULL / period_ns) : 0;
}

/* Where a CPU that runs one thread goes without ticks, its threads would not be seen. */
static bool cpus_go_without_ticks(void)
{
	char text[2] = "";
	_cleanup_fclose_ FILE *file = fopen("/sys/devices/system/cpu/nohz_full", "re");

	return file && fgets(text, sizeof(text), file) && text[0] >= '0' && text[0] <= '9';
}

/* This thread runs meanwhile, so its CPU ticks: `wanted` times, or in vain for too long of its own running time. On a
 * busy machine that may come late. */
static bool await_ticks(const struct rls_kernel *kernel, bool user, uint64_t period_ns)
{
	volatile uint64_t *tried = (volatile uint64_t *)kernel->skeleton->bss->ticks_tried;
	uint64_t end_ns = rls_clock_ns(CLOCK_THREAD_CPUTIME_ID) + 10 * TICKS_AWAITED * period_ns;
	_cleanup_close_ int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	static char bytes[1 << 20];

	tried[0] = tried[1] = 0;
	while (tried[user] < TICKS_AWAITED) {
		if (tried[!user] > 2 || rls_clock_ns(CLOCK_THREAD_CPUTIME_ID) > end_ns)
			return false;
		if (user)
			for (volatile int i = 0; i < 100000; i++)
				;
		else if (read(zeros, bytes, sizeof(bytes)) < 0)
			return false;
	}
	return true;
}

/* What ticks interrupt distinguishes them. */
static bool sees_ticks(struct rls_kernel *kernel, uint64_t period_ns)
{
	kernel->skeleton->bss->tick_trier = (uint32_t)gettid();
	return await_ticks(kernel, true, period_ns) && await_ticks(kernel, false, period_ns);
}

/* All of them where that is not enough. */
static void pace_scheduler_ticks(struct rls_kernel *kernel, unsigned int hz)
{
	uint64_t stands_ns = 1000000000ULL / hz, period_ns = kernel->skeleton->bss->tick_period_ns;

	if (stands_ns < period_ns)
		stands_ns = period_ns;
	kernel->skeleton->bss->tick_stands_ns = stands_ns;
	kernel->skeleton->bss->tick_share = (uint32_t)((double)period_ns / stands_ns * UINT32_MAX);
}

/* 0, or a reason to have a timer instead. */
static int take_scheduler_ticks(struct rls_kernel *kernel)
{
	uint64_t period_ns = scheduler_period_ns();
	struct bpf_link *link;

	if (!bpf_program__autoload(kernel->skeleton->progs.on_scheduler_tick))
		return -ENOENT;
	if (!period_ns || 1000000000ULL / kernel->sampler.hz < period_ns || cpus_go_without_ticks())
		return -ERANGE;
	link = bpf_program__attach(kernel->skeleton->progs.on_scheduler_tick);
	if (!link)
		return -errno;
	if (!sees_ticks(kernel, period_ns)) {
		bpf_link__destroy(link);
		return -ENODATA;
	}
	kernel->skeleton->bss->tick_period_ns = period_ns;
	pace_scheduler_ticks(kernel, kernel->sampler.hz);
	kernel->scheduler_ticks = link;
	kernel->tick_cost_ns = SCHEDULER_TICK_NS;
	return 0;
}

/* The period of the timer's ticks; that of the scheduler's is found in another way. */
static void set_pace_of_timer(struct rls_kernel *kernel)
{
	kernel->skeleton->bss->tick_stands_ns = 1000000000ULL / kernel->sampler.hz;
	kernel->skeleton->bss->tick_apart_ns = rls_sampler_apart_ns(&kernel->sampler);
}

static int start_timer(struct rls_kernel *kernel)
{
	kernel->tick_cost_ns = is_virtual_machine() ? VIRTUAL_TIMER_TICK_NS : TIMER_TICK_NS;
	kernel->sampler.random = (unsigned int)rls_monotonic_ns();
	set_pace_of_timer(kernel);
	return rls_sampler_attach(&kernel->sampler, &kernel->links,
				  kernel->skeleton->progs.on_tick);
}

int rls_kernel_start_ticks(struct rls_kernel *kernel)
{
	int r;

	if (!kernel->sampler.hz || kernel->sampler.count || kernel->scheduler_ticks)
		return 0;
	r = take_scheduler_ticks(kernel);
	if (!r)
		return 0;
	rls_debug("samples have a timer of their own, not the scheduler's ticks: %s", strerror(-r));
	r = start_timer(kernel);
	return r ? rls_error_r(r, "cannot sample: %s", rls_reason(r)) : 0;
}

void rls_kernel_leave_scheduler_ticks(struct rls_kernel *kernel)
{
	bpf_link__destroy(kernel->scheduler_ticks);
	kernel->scheduler_ticks = NULL;
	kernel->skeleton->bss->tick_period_ns = 0;
}

int rls_kernel_watch_ticks(struct rls_kernel *kernel, uint64_t time_ns)
{
	uint64_t counts[RLS_TICK_PHASES];
	int r;

	if (!kernel->scheduler_ticks || time_ns < kernel->phases_seen_ns + CHECK_PHASES_NS)
		return 0;
	kernel->phases_seen_ns = time_ns;
	if (rls_kernel_sum_sites(kernel->skeleton->maps.tick_phases, RLS_TICK_PHASES, counts, 1) ||
	    !rls_tick_phases_in_step(counts))
		return 0;
	rls_debug("threads keep step with the scheduler's ticks: samples have a timer of their own "
		  "from now on");
	rls_kernel_leave_scheduler_ticks(kernel);
	r = start_timer(kernel);
	return r ? rls_error_r(r, "cannot sample: %s", rls_reason(r)) : 0;
}

uint32_t rls_kernel_tick_cost_ns(const struct rls_kernel *kernel)
{
	return kernel->tick_cost_ns;
}

void rls_kernel_draw_ticks(struct rls_kernel *kernel, uint64_t time_ns)
{
	rls_sampler_draw(&kernel->sampler, time_ns);
}

void rls_kernel_pace_category_samples(struct rls_kernel *kernel, unsigned int hz)
{
	if (kernel->scheduler_ticks)
		pace_scheduler_ticks(kernel, hz > kernel->others_hz ? hz : kernel->others_hz);
	if (kernel->others_hz)
		return;
	rls_sampler_pace(&kernel->sampler, hz);
	if (kernel->sampler.count)
		set_pace_of_timer(kernel);
}

/* ---- threads that waited before ---- */

size_t rls_kernel_take_waiting(struct rls_kernel *kernel, struct rls_open_wait **out)
{
	size_t count = kernel->waiting_bytes / sizeof(**out);

	*out = (struct rls_open_wait *)kernel->waiting;
	kernel->waiting = NULL;
	kernel->waiting_bytes = 0;
	return count;
}

int rls_kernel_announce(struct rls_kernel *kernel, const uint32_t *tids, size_t count)
{
	struct bpf_map *map = kernel->skeleton->maps.to_announce;
	const uint8_t one = 1;
	int r = 0;

	for (size_t i = 0; !r && i < count; i++)
		r = bpf_map__update_elem(map, &tids[i], sizeof(tids[i]), &one, sizeof(one),
					 BPF_ANY);
	if (count)
		r = r ? r : rls_kernel_iterate(kernel->skeleton->progs.announce_waiting);
	for (size_t i = 0; i < count; i++)
		bpf_map__delete_elem(map, &tids[i], sizeof(tids[i]), 0);
	return r;
}
