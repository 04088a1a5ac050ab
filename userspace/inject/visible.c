#include "userspace/inject/visible.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/clock.h"
#include "userspace/process/living_thread.h"

#define EVERYBODY_ENTERS 0001
#define EVERYBODY_READS 0004

/* Links are the process's own, and lead no further than its root. */
static int open_within(int root, const char *path, int flags)
{
	const struct open_how how = {
		.flags = (unsigned int)flags | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	long fd = syscall(SYS_openat2, root, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

static int open_root(pid_t pid)
{
	char path[RLS_PROCESS_PATH_BYTES];
	int fd;

	rls_process_path(path, pid, "root");
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int stat_within(int root, const char *path, struct stat *out)
{
	_cleanup_close_ int fd = open_within(root, path, O_PATH);

	if (fd < 0)
		return fd;
	return fstat(fd, out) ? -errno : 0;
}

/* Whether whoever it is may go down this path and read the file at its end. */
static bool is_open_to_all(int root, const char *path)
{
	char part[PATH_MAX];
	struct stat info;

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - path) + 1, path);
		if (stat_within(root, part, &info) || !(info.st_mode & EVERYBODY_ENTERS))
			return false;
	}
	return !stat_within(root, path, &info) && info.st_mode & EVERYBODY_READS;
}

static int copy_bytes(int from, int to)
{
	struct stat info;
	off_t done = 0;

	if (fstat(from, &info))
		return -errno;
	while (done < info.st_size) {
		ssize_t moved = sendfile(to, from, &done, (size_t)(info.st_size - done));

		if (moved <= 0)
			return moved ? -errno : -EIO;
	}
	return 0;
}

/* The folder just made, or -errno. Where the place is the process's own, it may have put another one there, or
 * mounted one of the host's: ours is empty of rights for others, and lies on the place's file system. */
static int open_made(int place, const char *folder)
{
	_cleanup_close_ int made =
		openat(place, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat around, inside;

	if (made < 0 || fstat(place, &around) || fstat(made, &inside))
		return -errno;
	if (inside.st_uid != geteuid() || inside.st_mode & 077 || inside.st_dev != around.st_dev)
		return -EPERM;
	return rls_take_fd(made);
}

/* The modes are set apart from our umask. */
static int copy_into(int folder, const char *name, int from)
{
	_cleanup_close_ int to = -1;

	if (fchmod(folder, 0755))
		return -errno;
	to = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (to < 0 || fchmod(to, 0644))
		return -errno;
	return copy_bytes(from, to);
}

static bool can_hold_programs(int place)
{
	struct statvfs info;

	return !fstatvfs(place, &info) && !(info.f_flag & (ST_NOEXEC | ST_RDONLY));
}

/* Removes the file in the folder that we have open, whatever has its name by now; and under that name at most an
 * empty folder. */
static void remove_copy(int place, const char *folder, int folder_fd, const char *name)
{
	if (folder_fd >= 0)
		unlinkat(folder_fd, name, 0);
	unlinkat(place, folder, AT_REMOVEDIR);
}

static int copy_to(int root, const char *where, const char *name, int from, struct rls_visible *out)
{
	_cleanup_close_ int place = open_within(root, where, O_RDONLY | O_DIRECTORY), folder = -1;
	int r;

	if (place < 0)
		return place;
	if (!can_hold_programs(place))
		return -EROFS;
	snprintf(out->folder, sizeof(out->folder), "rlscope-bpf-%d-%llx", getpid(),
		 (unsigned long long)rls_monotonic_ns());
	if (mkdirat(place, out->folder, 0700))
		return -errno;
	folder = open_made(place, out->folder);
	r = folder < 0 ? folder : copy_into(folder, name, from);
	if (r) {
		remove_copy(place, out->folder, folder, name);
		return r;
	}
	snprintf(out->path, sizeof(out->path), "%s/%s/%s", where, out->folder, name);
	out->place_fd = rls_take_fd(place);
	out->folder_fd = rls_take_fd(folder);
	return 0;
}

int rls_visible_make(pid_t pid, const char *file, struct rls_visible *out)
{
	static const char *const places[] = {"/tmp", "/var/tmp", "/dev/shm", "/run"};
	const char *name = strrchr(file, '/') + 1;
	struct rls_visible visible = {.place_fd = -1, .folder_fd = -1};
	_cleanup_close_ int root = open_root(pid), from = -1;
	struct stat ours, theirs;
	int r = -ENOENT;

	if (root < 0)
		return root;
	from = open(file, O_RDONLY | O_CLOEXEC);
	if (from < 0 || fstat(from, &ours))
		return -errno;
	if (!stat_within(root, file, &theirs) && theirs.st_ino == ours.st_ino &&
	    theirs.st_dev == ours.st_dev && is_open_to_all(root, file)) {
		snprintf(visible.path, sizeof(visible.path), "%s", file);
		r = 0;
	}
	for (size_t i = 0; r && i < sizeof(places) / sizeof(places[0]); i++)
		r = copy_to(root, places[i], name, from, &visible);
	if (!r)
		*out = visible;
	return r;
}

void rls_visible_remove(struct rls_visible *visible)
{
	if (visible->place_fd < 0)
		return;
	remove_copy(visible->place_fd, visible->folder, visible->folder_fd,
		    strrchr(visible->path, '/') + 1);
	close(visible->folder_fd);
	close(visible->place_fd);
	visible->place_fd = visible->folder_fd = -1;
}
