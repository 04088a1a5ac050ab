/* What samples: one timer a CPU, whose ticks go to every program that wants them. */
#include <string.h>

#include <bpf/libbpf.h>

#include "userspace/attach/kernel_private.h"
#include "userspace/log.h"

/* What samples need of the kernel besides the timer. */
#define STACK_TRACEPOINTS 4
static struct bpf_program *stack_tracepoint(struct rlscope *skeleton, size_t i)
{
	struct bpf_program *const programs[STACK_TRACEPOINTS] = {
		skeleton->progs.on_wait, skeleton->progs.on_interpreter_fork,
		skeleton->progs.on_interpreter_exec, skeleton->progs.on_interpreter_exit,
	};

	return programs[i];
}

void rls_kernel_choose_samplers(struct rls_kernel *kernel, const struct rls_kernel_options *options)
{
	struct rlscope *skeleton = kernel->skeleton;
	bool pauses = kernel->windows && !kernel->booking; /* waiting is booked as such */

	bpf_program__set_autoload(skeleton->progs.on_tick, options->sampler || kernel->windows ||
							   options->stacks_bytes);
	bpf_program__set_autoload(skeleton->progs.on_sample, options->sampler);
	bpf_program__set_autoload(skeleton->progs.on_look, kernel->windows);
	bpf_program__set_autoload(skeleton->progs.on_pause, pauses);
	bpf_map__set_autocreate(skeleton->maps.pauses, pauses);
	bpf_program__set_autoload(skeleton->progs.on_timer, options->stacks_bytes);
	for (size_t i = 0; i < STACK_TRACEPOINTS; i++)
		bpf_program__set_autoload(stack_tracepoint(skeleton, i), options->stacks_bytes);
	bpf_map__set_autocreate(skeleton->maps.samples, options->stacks_bytes);
}

static int want_ticks(struct rls_kernel *kernel, enum rls_tick slot,
		      const struct bpf_program *program, unsigned int hz)
{
	int fd = bpf_program__fd(program);
	uint32_t key = slot;

	kernel->others_sample |= slot != RLS_TICK_LOOK;
	if (hz > kernel->sampler.hz)
		kernel->sampler.hz = hz;
	return bpf_map__update_elem(kernel->skeleton->maps.ticks, &key, sizeof(key), &fd, sizeof(fd),
				    BPF_ANY);
}

int rls_kernel_attach_sampler(struct rls_kernel *kernel, unsigned int hz)
{
	return want_ticks(kernel, RLS_TICK_SAMPLE, kernel->skeleton->progs.on_sample, hz);
}

int rls_kernel_attach_looks(struct rls_kernel *kernel, unsigned int hz)
{
	const struct bpf_program *on_pause = kernel->skeleton->progs.on_pause;
	int r = 0;

	if (bpf_program__autoload(on_pause))
		r = rls_links_add(&kernel->links, bpf_program__attach(on_pause));
	return r ? r : want_ticks(kernel, RLS_TICK_LOOK, kernel->skeleton->progs.on_look, hz);
}

int rls_kernel_attach_stacks(struct rls_kernel *kernel, unsigned int hz)
{
	int r = 0;

	for (size_t i = 0; !r && i < STACK_TRACEPOINTS; i++)
		r = rls_links_add(&kernel->links,
				  bpf_program__attach(stack_tracepoint(kernel->skeleton, i)));
	return r ? r : want_ticks(kernel, RLS_TICK_STACK, kernel->skeleton->progs.on_timer, hz);
}

int rls_kernel_start_ticks(struct rls_kernel *kernel)
{
	int r;

	if (!kernel->sampler.hz || kernel->sampler.count)
		return 0;
	kernel->sampler.random = (unsigned int)rls_monotonic_ns();
	r = rls_sampler_attach(&kernel->sampler, &kernel->links, kernel->skeleton->progs.on_tick);
	return r ? rls_error_r(r, "cannot sample: %s", strerror(-r)) : 0;
}

void rls_kernel_draw_ticks(struct rls_kernel *kernel, uint64_t time_ns)
{
	rls_sampler_draw(&kernel->sampler, time_ns);
}

void rls_kernel_pace_looks(struct rls_kernel *kernel, unsigned int hz)
{
	if (!kernel->others_sample)
		rls_sampler_pace(&kernel->sampler, hz);
}
