#include "userspace/process/mapped_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "analysis/base/cleanup.h"
#include "bpf/wire/mapped_file.h"
#include "file_iterator.skel.h"
#include "userspace/base/clock.h"
#include "userspace/process/living_thread.h"

#define KEPT_NS 200000000ULL
#define READ_BYTES 65536
#define PAGE_BYTES 4096

/* What a process has mapped. */
struct reading {
	pid_t pid;
	uint64_t read_ns;
	struct rls_wire_mapped_file *files;
	size_t count;
};

static struct {
	struct file_iterator *skeleton;
	bool tried;
	struct reading last;
} kept;

static int print_nothing(enum libbpf_print_level level, const char *format, va_list arguments)
{
	return 0;
}

static void load(void)
{
	libbpf_print_fn_t print = libbpf_set_print(print_nothing);
	struct stat namespace;

	kept.tried = true;
	if (!stat("/proc/self/ns/pid", &namespace))
		kept.skeleton = file_iterator__open_and_load();
	if (kept.skeleton)
		kept.skeleton->bss->wanted_namespace = (uint32_t) namespace.st_ino;
	libbpf_set_print(print);
}

static int read_records(int fd, char **out, size_t *bytes)
{
	_cleanup_free_ char *text = NULL;
	size_t used = 0;

	for (;;) {
		char *larger = realloc(text, used + READ_BYTES);
		ssize_t got;

		if (!larger)
			return -ENOMEM;
		text = larger;
		got = read(fd, text + used, READ_BYTES);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		used += (size_t)got;
	}
	*out = rls_take(text);
	*bytes = used;
	return 0;
}

static int iterate(pid_t thread, char **text, size_t *bytes)
{
	union bpf_iter_link_info info = {.task.tid = (uint32_t)thread};
	LIBBPF_OPTS(bpf_iter_attach_opts, options, .link_info = &info,
		    .link_info_len = sizeof(info));
	_cleanup_close_ int fd = -1;
	struct bpf_link *link;
	int r;

	kept.skeleton->bss->wanted = (uint32_t)thread;
	kept.skeleton->bss->others = 0;
	link = bpf_program__attach_iter(kept.skeleton->progs.mapped_files, &options);
	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	r = fd < 0 ? -errno : read_records(fd, text, bytes);
	bpf_link__destroy(link);
	return r;
}

/* Before Linux 6.1 all mappings of the host would be read each time. */
static void unload(void)
{
	file_iterator__destroy(kept.skeleton);
	kept.skeleton = NULL;
}

/* out: replaced if it can be read. */
static int read_process(pid_t pid, struct reading *out)
{
	char *text = NULL;
	size_t bytes = 0;
	int r;

	if (!kept.tried)
		load();
	if (!kept.skeleton)
		return -ENOTSUP;
	r = iterate(rls_living_thread(pid), &text, &bytes);
	if (r)
		return r;
	free(out->files);
	*out = (struct reading){.pid = pid,
				.read_ns = rls_monotonic_ns(),
				.files = (struct rls_wire_mapped_file *)text,
				.count = bytes / sizeof(*out->files)};
	if (kept.skeleton->bss->others)
		unload();
	return kept.skeleton ? 0 : -ENOTSUP;
}

static int find(const struct reading *reading, uint64_t address, dev_t *device, ino_t *inode)
{
	for (size_t i = 0; i < reading->count; i++) {
		const struct rls_wire_mapped_file *file = &reading->files[i];

		if (address < file->start || address >= file->end)
			continue;
		*device = makedev(file->device >> 20, file->device & 0xfffff);
		*inode = file->inode;
		return 0;
	}
	return -ENOENT;
}

int rls_mapped_file_at(pid_t pid, uint64_t address, dev_t *device, ino_t *inode)
{
	int r;

	if (pid == kept.last.pid && rls_monotonic_ns() <= kept.last.read_ns + KEPT_NS &&
	    !find(&kept.last, address, device, inode))
		return 0;
	/* It may have been mapped since. */
	r = read_process(pid, &kept.last);
	return r ? r : find(&kept.last, address, device, inode);
}

int rls_mapped_file_of_path(const char *path, dev_t *device, ino_t *inode)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct reading own = {0};
	void *page;
	int r;

	if (fd < 0)
		return -errno;
	page = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	r = read_process(getpid(), &own);
	if (!r)
		r = find(&own, (uint64_t)(uintptr_t)page, device, inode);
	munmap(page, PAGE_BYTES);
	free(own.files);
	return r;
}
