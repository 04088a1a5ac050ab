#include "userspace/record/targets/mmap_watch.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"

#define RING_PAGES 16

struct cpu_ring {
	int fd;
	struct perf_event_mmap_page *page;
	const uint8_t *data;
};

struct rls_mmap_watch {
	struct cpu_ring *rings;
	size_t count;
	size_t page_bytes;
	int epoll_fd;
};

static int open_ring(struct rls_mmap_watch *watch, int cpu)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attributes),
		.config = PERF_COUNT_SW_DUMMY,
		.mmap = 1,
		.mmap2 = 1,
		.watermark = 0,
		.wakeup_events = 1,
		.sample_id_all = 1, /* each record ends with its time */
		.sample_type = PERF_SAMPLE_TIME,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	struct cpu_ring *ring = &watch->rings[watch->count];
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = watch->count};
	void *memory;

	ring->fd =
		(int)syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (ring->fd < 0)
		return -errno;
	watch->count++;
	memory = mmap(NULL, (RING_PAGES + 1) * watch->page_bytes, PROT_READ | PROT_WRITE,
		      MAP_SHARED, ring->fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	ring->page = memory;
	ring->data = (const uint8_t *)memory + watch->page_bytes;
	return epoll_ctl(watch->epoll_fd, EPOLL_CTL_ADD, ring->fd, &event) ? -errno : 0;
}

int rls_mmap_watch_open(struct rls_mmap_watch **out)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct rls_mmap_watch *watch = calloc(1, sizeof(*watch));
	int r = 0;

	if (!watch)
		return -ENOMEM;
	watch->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	watch->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	watch->rings = calloc((size_t)cpus, sizeof(*watch->rings));
	if (!watch->rings || watch->epoll_fd < 0)
		r = -ENOMEM;
	for (int cpu = 0; !r && cpu < cpus; cpu++) {
		r = open_ring(watch, cpu);
		if (r == -ENODEV)
			r = 0; /* an offline CPU */
	}
	if (r) {
		rls_mmap_watch_close(watch);
		return r;
	}
	*out = watch;
	return 0;
}

void rls_mmap_watch_close(struct rls_mmap_watch *watch)
{
	if (!watch)
		return;
	for (size_t i = 0; i < watch->count; i++) {
		if (watch->rings[i].page)
			munmap(watch->rings[i].page, (RING_PAGES + 1) * watch->page_bytes);
		close(watch->rings[i].fd);
	}
	if (watch->epoll_fd >= 0)
		close(watch->epoll_fd);
	free(watch->rings);
	free(watch);
}

int rls_mmap_watch_fd(const struct rls_mmap_watch *watch)
{
	return watch->epoll_fd;
}

/* Copies from the ring, which wraps. */
static void copy_out(const struct rls_mmap_watch *watch, const struct cpu_ring *ring, uint64_t at,
		     void *out, size_t bytes)
{
	size_t size = RING_PAGES * watch->page_bytes;

	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)out)[i] = ring->data[(at + i) % size];
}

/* Of an MMAP2 record: behind the pid, the mapping's numbers and its identity. */
#define PATH_OFFSET (sizeof(struct perf_event_header) + 64)
#define PATH_BYTES 256

static void copy_path(const struct rls_mmap_watch *watch, const struct cpu_ring *ring, uint64_t at,
		      const struct perf_event_header *header, char out[PATH_BYTES])
{
	size_t bytes = header->size > PATH_OFFSET ? header->size - PATH_OFFSET : 0;

	if (bytes > PATH_BYTES - 1)
		bytes = PATH_BYTES - 1;
	copy_out(watch, ring, at + PATH_OFFSET, out, bytes);
	out[bytes] = '\0';
}

/* Of an MMAP2 record, from its pid on. */
struct mapped_record {
	uint32_t pid, tid;
	uint64_t start, length, file_offset;
	uint32_t major, minor;
	uint64_t inode;
};

static struct rls_mapping mapping_of(const struct mapped_record *record, const char *path)
{
	return (struct rls_mapping){
		.start = record->start,
		.end = record->start + record->length,
		.file_offset = record->file_offset,
		.inode = record->inode,
		.device_major = record->major,
		.device_minor = record->minor,
		.readable = true,
		.executable = true,
		.path = path,
	};
}

static void drain_ring(struct rls_mmap_watch *watch, struct cpu_ring *ring,
		       rls_mapped_handler mapped, void *context)
{
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->data_tail;

	while (tail < head) {
		struct perf_event_header header;
		char path[PATH_BYTES];
		struct mapped_record record;
		struct rls_mapping mapping = {.path = ""};
		uint64_t time_ns;

		copy_out(watch, ring, tail, &header, sizeof(header));
		if (header.size < sizeof(header) + sizeof(time_ns) || header.size > head - tail)
			break;
		copy_out(watch, ring, tail + header.size - sizeof(time_ns), &time_ns,
			 sizeof(time_ns));
		if (header.type == PERF_RECORD_MMAP2) {
			copy_out(watch, ring, tail + sizeof(header), &record, sizeof(record));
			copy_path(watch, ring, tail, &header, path);
			mapping = mapping_of(&record, path);
			if (record.pid) /* of our pid namespace */
				mapped(context, (pid_t)record.pid, &mapping, time_ns);
		} else if (header.type == PERF_RECORD_LOST) {
			mapped(context, 0, &mapping, time_ns);
		}
		tail += header.size;
	}
	__atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
}

void rls_mmap_watch_drain(struct rls_mmap_watch *watch, rls_mapped_handler mapped, void *context)
{
	for (size_t i = 0; i < watch->count; i++)
		drain_ring(watch, &watch->rings[i], mapped, context);
}
