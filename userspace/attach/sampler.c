#include "userspace/attach/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "userspace/attach/links.h"

#define DRAW_EVERY_NS 100000000ULL
#define SPREAD 0.2 /* periods are so much shorter or longer */
#define LATE 0.1 /* and ticks so much late, or they were held back */

static uint64_t draw_period_ns(struct rls_sampler *sampler)
{
	double random = rand_r(&sampler->random) / (RAND_MAX + 1.0);

	return (uint64_t)(1e9 / sampler->hz * (1 - SPREAD + 2 * SPREAD * random));
}

static int attach_cpu(struct rls_sampler *sampler, struct rls_links *links,
		      const struct bpf_program *program, int cpu)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attributes),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000000ULL / sampler->hz,
	};
	_cleanup_close_ int fd =
		(int)syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	int r = fd < 0 ? -errno : rls_grow(&sampler->fds, &sampler->capacity, sampler->count);
	struct bpf_link *link;
	int again;

	if (r)
		return r;
	again = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (again < 0)
		return -errno;
	sampler->fds[sampler->count++] = again;
	link = bpf_program__attach_perf_event(program, fd);
	if (!link)
		return -errno;
	(void)rls_take_fd(fd); /* the link closes it */
	return rls_links_add(links, link);
}

int rls_sampler_attach(struct rls_sampler *sampler, struct rls_links *links,
		       const struct bpf_program *program)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int r = 0;

	for (int cpu = 0; !r && cpu < cpus; cpu++) {
		r = attach_cpu(sampler, links, program, cpu);
		if (r == -ENODEV)
			r = 0; /* an offline CPU */
	}
	return r;
}

void rls_sampler_enable(struct rls_sampler *sampler, bool enabled)
{
	for (size_t i = 0; i < sampler->count; i++)
		ioctl(sampler->fds[i], enabled ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

/* A timer that is set again begins anew: what a tick stands for is measured, not assumed. */
void rls_sampler_draw(struct rls_sampler *sampler, uint64_t time_ns)
{
	if (!sampler->count || time_ns < sampler->drawn_ns + DRAW_EVERY_NS)
		return;
	sampler->drawn_ns = time_ns;
	for (size_t i = 0; i < sampler->count; i++) {
		uint64_t period_ns = draw_period_ns(sampler);

		ioctl(sampler->fds[i], PERF_EVENT_IOC_PERIOD, &period_ns);
	}
}

void rls_sampler_pace(struct rls_sampler *sampler, unsigned int hz)
{
	uint64_t period_ns = 1000000000ULL / hz;

	sampler->hz = hz;
	for (size_t i = 0; i < sampler->count; i++)
		ioctl(sampler->fds[i], PERF_EVENT_IOC_PERIOD, &period_ns);
}

uint64_t rls_sampler_apart_ns(const struct rls_sampler *sampler)
{
	return (uint64_t)(1e9 / sampler->hz * (1 + SPREAD + LATE));
}

void rls_sampler_clear(struct rls_sampler *sampler)
{
	for (size_t i = 0; i < sampler->count; i++)
		close(sampler->fds[i]);
	free(sampler->fds);
	*sampler = (struct rls_sampler){0};
}
