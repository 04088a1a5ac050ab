#include "analysis/base/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "analysis/base/cleanup.h"

/* Others who keep creating the name between our unlink and our open win in the end. */
#define TRIES 8

/* Opens name, one component, below parent. A symbolic link may be followed only where
 * nobody but its directory's owner could have put it. */
static int open_component(int parent, const char *name, int *out)
{
	int fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && (errno == ENOTDIR || errno == ELOOP)) {
		struct stat directory;

		if (fstat(parent, &directory))
			return -errno;
		if (directory.st_mode & S_IWOTH)
			return -ELOOP;
		fd = openat(parent, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd < 0)
		return -errno;
	*out = fd;
	return 0;
}

/* Opens the directory that path's last component is in, and points *name at that. */
static int open_parent(char *path, int *out, const char **name)
{
	_cleanup_close_ int fd = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char *component = path + strspn(path, "/");

	if (fd < 0)
		return -errno;
	for (char *slash; (slash = strchr(component, '/'));) {
		int next = -1, error;

		*slash = '\0';
		error = open_component(fd, component, &next);
		if (error)
			return error;
		close(fd);
		fd = next;
		component = slash + 1 + strspn(slash + 1, "/");
	}
	if (!*component)
		return -EISDIR;
	*name = component;
	*out = rls_take_fd(fd);
	return 0;
}

/* Whoever writes a file that we made holds a lock on it. */
static bool is_busy(int directory, const char *name)
{
	_cleanup_close_ int fd =
		openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
}

static int create_anew(int directory, const char *name, int *out)
{
	for (int i = 0; i < TRIES; i++) {
		struct stat status;
		int fd = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
				0600);

		if (fd >= 0) {
			flock(fd, LOCK_EX | LOCK_NB); /* where file systems have no locks: none */
			*out = fd;
			return 0;
		}
		if (errno != EEXIST)
			return -errno;
		if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW))
			continue; /* gone meanwhile */
		if (S_ISLNK(status.st_mode))
			return -ELOOP;
		if (S_ISDIR(status.st_mode))
			return -EISDIR;
		if (!S_ISREG(status.st_mode))
			return -EEXIST;
		if (is_busy(directory, name))
			return -EBUSY;
		if (unlinkat(directory, name, 0) && errno != ENOENT)
			return -errno;
	}
	return -EEXIST;
}

static bool id_from_environment(const char *name, unsigned int *out)
{
	const char *text = getenv(name);
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;

	unsigned long value = strtoul(text, &end, 10);

	if (errno || *end || value >= UINT_MAX)
		return false;
	*out = value;
	return true;
}

static int give_to_sudo_user(int fd)
{
	unsigned int uid, gid;

	if (geteuid() != 0 || !id_from_environment("SUDO_UID", &uid) ||
	    !id_from_environment("SUDO_GID", &gid))
		return 0;
	return fchown(fd, uid, gid) ? -errno : 0;
}

bool rls_private_file_is_busy(const char *path)
{
	struct stat status;

	return !lstat(path, &status) && S_ISREG(status.st_mode) && is_busy(AT_FDCWD, path);
}

int rls_private_file_create(const char *path, int *out)
{
	_cleanup_free_ char *copy = strdup(path);
	_cleanup_close_ int directory = -1;
	_cleanup_close_ int fd = -1;
	const char *name = NULL;
	int error;

	if (!copy)
		return -ENOMEM;
	if (!*copy)
		return -ENOENT;
	error = open_parent(copy, &directory, &name);
	if (!error)
		error = create_anew(directory, name, &fd);
	if (!error)
		error = give_to_sudo_user(fd);
	if (error)
		return error;
	*out = rls_take_fd(fd);
	return 0;
}
