#include "analysis/event/event_source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "analysis/base/cleanup.h"
#include "analysis/trace/text_form.h"
#include "analysis/trace/trace_format.h"
#include "analysis/trace/trace_reader.h"

#define BLOCK_BYTES 65536

typedef int (*open_form)(int fd, struct rls_event_source_watch *watch,
			 struct rls_event_source **out, char *message, size_t message_bytes);

/* What the file begins with: enough for the magic, or for text after blank lines. */
struct beginning {
	char bytes[4096];
	size_t count;
};

/* Read as it is given: there is nothing to watch. */
static int open_binary(int fd, struct rls_event_source_watch *unused, struct rls_event_source **out,
		       char *message, size_t message_bytes)
{
	return rls_trace_reader_open(fd, out, message, message_bytes);
}

static open_form recognise_form(const struct beginning *beginning)
{
	size_t blank = 0;

	if (beginning->count >= RLS_TRACE_MAGIC_BYTES &&
	    !memcmp(beginning->bytes, RLS_TRACE_MAGIC, RLS_TRACE_MAGIC_BYTES))
		return open_binary;
	while (blank < beginning->count && memchr(" \t\r\n", beginning->bytes[blank], 4))
		blank++;
	if (blank < beginning->count && beginning->bytes[blank] == '{')
		return rls_text_reader_open;
	return NULL;
}

/* Pipes cannot be read twice or out of order: their content is put into memory first. */
static int copy_to_memory(int from, int *out)
{
	_cleanup_close_ int fd = memfd_create("trace", MFD_CLOEXEC);
	_cleanup_free_ char *block = malloc(BLOCK_BYTES);
	ssize_t got;

	if (fd < 0 || !block)
		return fd < 0 ? -errno : -ENOMEM;
	while ((got = read(from, block, BLOCK_BYTES)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		for (ssize_t done = 0, wrote; done < got; done += wrote) {
			wrote = write(fd, block + done, got - done);
			if (wrote < 0)
				return -errno;
		}
	}
	if (lseek(fd, 0, SEEK_SET))
		return -errno;
	*out = rls_take_fd(fd);
	return 0;
}

static int open_readable(const char *path, int *out)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;

	if (fd < 0 || fstat(fd, &status))
		return -errno;
	if (S_ISDIR(status.st_mode))
		return -EISDIR;
	if (!S_ISREG(status.st_mode))
		return copy_to_memory(fd, out);
	*out = rls_take_fd(fd);
	return 0;
}

static int read_beginning(int fd, struct beginning *out)
{
	ssize_t got = pread(fd, out->bytes, sizeof(out->bytes), 0);

	if (got < 0)
		return -errno;
	out->count = got;
	return 0;
}

int rls_event_source_open(const char *path, struct rls_event_source **out, char *message,
			  size_t message_bytes)
{
	return rls_event_source_open_watched(path, NULL, out, message, message_bytes);
}

int rls_event_source_open_watched(const char *path, struct rls_event_source_watch *watch,
				  struct rls_event_source **out, char *message,
				  size_t message_bytes)
{
	struct beginning beginning;
	char reason[256];
	_cleanup_close_ int fd = -1;
	int error = open_readable(path, &fd);

	if (!error)
		error = read_beginning(fd, &beginning);
	if (error) {
		snprintf(message, message_bytes, "cannot read %s: %s", path, strerror(-error));
		return error;
	}

	open_form form = recognise_form(&beginning);

	if (!form) {
		snprintf(message, message_bytes, "cannot read %s: it is %s", path,
			 beginning.count ? "no trace" : "empty");
		return -EINVAL;
	}
	error = form(rls_take_fd(fd), watch, out, reason, sizeof(reason));
	if (error)
		snprintf(message, message_bytes, "cannot read %s: %s", path, reason);
	return error;
}
