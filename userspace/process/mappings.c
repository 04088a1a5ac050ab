#include "userspace/process/mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/search.h"
#include "userspace/process/living_thread.h"
#include "userspace/process/overlay.h"

#define DELETED_SUFFIX " (deleted)"

/* A hexadecimal or decimal number ended by `end`; moves *at behind it. */
static bool parse_number(char **at, int base, char end, uint64_t *out)
{
	char *stop;

	errno = 0;
	*out = strtoull(*at, &stop, base);
	if (stop == *at || *stop != end || errno)
		return false;
	*at = stop + 1;
	return true;
}

/* The kernel writes newlines in names as \012; nothing else is escaped. */
static void unescape(char *path)
{
	char *to = path;

	for (char *from = path; *from; to++) {
		if (!strncmp(from, "\\012", 4)) {
			*to = '\n';
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

static void parse_path(char *path, struct rls_mapping *mapping)
{
	size_t suffix = strlen(DELETED_SUFFIX), length;

	path += strspn(path, " ");
	length = strlen(path);
	if (length > suffix && !strcmp(path + length - suffix, DELETED_SUFFIX)) {
		mapping->deleted = true;
		path[length - suffix] = '\0';
	}
	unescape(path);
	mapping->path = path;
}

/* "start-end perms offset major:minor inode   path"; man 5 proc. */
static bool parse_line(char *line, struct rls_mapping *mapping)
{
	uint64_t major, minor;
	char *at = line;

	*mapping = (struct rls_mapping){0};
	if (!parse_number(&at, 16, '-', &mapping->start) ||
	    !parse_number(&at, 16, ' ', &mapping->end) || mapping->end <= mapping->start)
		return false;
	if (strnlen(at, 5) < 5 || at[4] != ' ')
		return false;
	mapping->readable = at[0] == 'r';
	mapping->writable = at[1] == 'w';
	mapping->executable = at[2] == 'x';
	mapping->shared = at[3] == 's';
	at += 5;
	if (!parse_number(&at, 16, ' ', &mapping->file_offset) ||
	    !parse_number(&at, 16, ':', &major) || !parse_number(&at, 16, ' ', &minor))
		return false;
	mapping->device_major = major;
	mapping->device_minor = minor;
	errno = 0;
	mapping->inode = strtoull(at, &at, 10);
	if (errno || (*at && *at != ' '))
		return false;
	parse_path(at, mapping);
	return true;
}

static size_t count_lines(const char *text, size_t length)
{
	size_t lines = 1;

	for (const char *at = text; (at = memchr(at, '\n', text + length - at)); at++)
		lines++;
	return lines;
}

int rls_mappings_parse(char *text, size_t length, struct rls_mappings *out)
{
	struct rls_mappings mappings = {.text = text};
	uint64_t last_end = 0;
	char *line = text;

	mappings.entries = calloc(count_lines(text, length), sizeof(*mappings.entries));
	if (!mappings.entries) {
		free(text);
		return -ENOMEM;
	}
	while (line && line < text + length) {
		struct rls_mapping *entry = &mappings.entries[mappings.count];
		char *end = memchr(line, '\n', text + length - line);

		if (end)
			*end = '\0';
		if (parse_line(line, entry) && entry->start >= last_end) {
			last_end = entry->end;
			mappings.count++;
		}
		line = end ? end + 1 : NULL;
	}
	*out = mappings;
	return 0;
}

/* Whole pages at a time: each read() is one consistent reading of the list by the kernel. */
static int read_all(int fd, char **out, size_t *length)
{
	size_t capacity = 256 * 1024, used = 0;
	_cleanup_free_ char *text = malloc(capacity + 1);

	while (text) {
		ssize_t got = read(fd, text + used, capacity - used);
		char *larger;

		if (got < 0)
			return -errno;
		used += got;
		if (!got) {
			text[used] = '\0';
			*length = used;
			*out = rls_take(text);
			return 0;
		}
		if (used < capacity)
			continue;
		capacity *= 2;
		larger = realloc(text, capacity + 1);
		if (!larger)
			return -ENOMEM;
		text = larger;
	}
	return -ENOMEM;
}

int rls_mappings_read(pid_t pid, struct rls_mappings *out)
{
	_cleanup_close_ int fd = -1;
	char path[RLS_PROCESS_PATH_BYTES], *text = NULL;
	size_t length = 0;
	int error;

	rls_process_path(path, pid, "maps");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	error = read_all(fd, &text, &length);
	if (error)
		return error;
	return rls_mappings_parse(text, length, out);
}

void rls_mappings_release(struct rls_mappings *mappings)
{
	free(mappings->entries);
	free(mappings->text);
	*mappings = (struct rls_mappings){0};
}

const struct rls_mapping *rls_mappings_at(const struct rls_mappings *mappings, uint64_t address)
{
	size_t low = rls_first_not(mappings->count, i, mappings->entries[i].end <= address);

	if (low == mappings->count || mappings->entries[low].start > address)
		return NULL;
	return &mappings->entries[low];
}

/* Of files in memory, those that are called like a library: others are memory that code is made in. */
bool rls_mapping_is_file(const struct rls_mapping *mapping)
{
	if (!mapping->inode || mapping->path[0] != '/')
		return false;
	if (!strncmp(mapping->path, "/memfd:", strlen("/memfd:")))
		return strstr(mapping->path, ".so") != NULL;
	return strncmp(mapping->path, "/dev/", strlen("/dev/")) &&
	       strncmp(mapping->path, "/SYSV", strlen("/SYSV"));
}

uint64_t rls_mappings_fingerprint(const struct rls_mappings *mappings)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < mappings->count; i++) {
		const struct rls_mapping *mapping = &mappings->entries[i];

		if (mapping->executable && rls_mapping_is_file(mapping))
			hash = (hash ^ mapping->inode ^ mapping->start) * 0x100000001b3ULL;
	}
	return hash;
}

/* Where the kernel cannot be asked for the file below an overlay (overlay.h), whose mounts have a device each: a file
 * is known by what is its own in each mount, inode, size and time. */
static dev_t overlay_device(const struct stat *status)
{
	const uint64_t parts[] = {(uint64_t)status->st_size, (uint64_t)status->st_mtim.tv_sec,
				  (uint64_t)status->st_mtim.tv_nsec};
	uint64_t hash = 0xcbf29ce484222325ULL;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		hash = (hash ^ parts[i]) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 32;
	}
	return hash | 1ULL << 63; /* no device's */
}

/* Something else than stat() finds by the path: an overlay file system, one with devices within devices, or something
 * mounted over the path. */
static bool may_be_another(const struct rls_mapping *mapping, const struct stat *status)
{
	return status->st_ino != mapping->inode ||
	       status->st_dev != makedev(mapping->device_major, mapping->device_minor);
}

int rls_mapping_locate(pid_t pid, const struct rls_mapping *mapping, char **path, dev_t *device,
		       ino_t *inode)
{
	_cleanup_free_ char *by_path = NULL, *by_address = NULL, *found = NULL;
	struct stat path_status, address_status;
	bool path_found, address_found;
	pid_t living = rls_living_thread(pid);
	int r = -ENOTSUP;

	if (asprintf(&by_path, "/proc/%d/root%s", living, mapping->path) < 0 ||
	    asprintf(&by_address, "/proc/%d/map_files/%lx-%lx", living, mapping->start,
		     mapping->end) < 0)
		return -ENOMEM;
	path_found = !mapping->deleted && !stat(by_path, &path_status);
	/* The mapping itself knows, for who may ask it. */
	if (!path_found || may_be_another(mapping, &path_status)) {
		address_found = !stat(by_address, &address_status);
		if (!path_found && !address_found)
			return -errno;
		if (address_found && (!path_found || address_status.st_ino != path_status.st_ino ||
				      address_status.st_dev != path_status.st_dev)) {
			path_status = address_status;
			path_found = false;
		}
	}
	found = path_found ? rls_take(by_path) : rls_take(by_address);
	*device = path_status.st_dev;
	*inode = path_status.st_ino;
	if (!major(path_status.st_dev) && rls_overlay_holds(found)) {
		r = rls_overlay_locate(living, mapping->start, mapping->path, &found, device,
				       inode);
		if (r == -ENOTSUP)
			*device = overlay_device(&path_status);
		else if (r)
			return r;
	}
	*path = rls_take(found);
	return 0;
}
