#include "userspace/attach/sampler.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "analysis/cleanup.h"
#include "userspace/attach/links.h"

static int attach_cpu(struct rls_links *links, const struct bpf_program *program, int cpu,
		      unsigned int hz)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attributes),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = hz,
		.freq = 1,
		.exclude_idle = 1,
	};
	_cleanup_close_ int fd = (int)syscall(SYS_perf_event_open, &attributes, -1, cpu, -1,
					      PERF_FLAG_FD_CLOEXEC);
	struct bpf_link *link;

	if (fd < 0)
		return -errno;
	link = bpf_program__attach_perf_event(program, fd);
	if (!link)
		return -errno;
	(void)rls_take_fd(fd); /* the link closes it */
	return rls_links_add(links, link);
}

int rls_sampler_attach(struct rls_links *links, const struct bpf_program *program,
		       unsigned int hz)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int r = 0;

	for (int cpu = 0; !r && cpu < cpus; cpu++) {
		r = attach_cpu(links, program, cpu, hz);
		if (r == -ENODEV)
			r = 0; /* an offline CPU */
	}
	return r;
}
