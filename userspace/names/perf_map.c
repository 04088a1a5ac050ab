#include "userspace/names/perf_map.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "analysis/base/search.h"
#include "userspace/process/target_file.h"

/* A just-in-time compiler's lines hardly overlap; in a hostile map all may. */
#define OVERLAPPING_MAX 1024

struct line {
	uint64_t start, end;
	uint64_t reach; /* the greatest end of this and all before it */
	size_t number; /* in the file */
	const char *name;
};

struct rls_perf_map {
	RLS_LIST(struct line) lines; /* ascending by start, then number */
	char *text; /* owns the names */
	size_t bytes;
};

void rls_perf_map_free(struct rls_perf_map *map)
{
	if (!map)
		return;
	free(map->lines.items);
	free(map->text);
	free(map);
}

static bool take_number(char **at, uint64_t *out)
{
	char *end;

	if (!isxdigit((unsigned char)**at)) /* strtoull would take spaces and signs */
		return false;
	errno = 0;
	*out = strtoull(*at, &end, 16);
	if (errno || *end != ' ')
		return false;
	*at = end + 1;
	return true;
}

static bool parse_line(char *at, struct line *line)
{
	uint64_t size;

	if (!take_number(&at, &line->start) || !take_number(&at, &size) || !size || !*at ||
	    line->start + size < line->start)
		return false;
	line->end = line->start + size;
	line->name = at;
	return true;
}

static int compare_lines(const void *a, const void *b)
{
	const struct line *left = a, *right = b;

	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return (left->number > right->number) - (left->number < right->number);
}

static int parse(struct rls_perf_map *map)
{
	char *at = map->text, *end = map->text + map->bytes;
	uint64_t reach = 0;
	size_t number = 0;

	while (at < end) {
		char *newline = memchr(at, '\n', (size_t)(end - at));
		struct line line = {.number = number++};

		if (!newline) /* being written */
			break;
		*newline = '\0';
		if (parse_line(at, &line) && rls_list_push(&map->lines, line))
			return -ENOMEM;
		at = newline + 1;
	}
	if (map->lines.count)
		qsort(map->lines.items, map->lines.count, sizeof(struct line), compare_lines);
	for (size_t i = 0; i < map->lines.count; i++) {
		reach = map->lines.items[i].end > reach ? map->lines.items[i].end : reach;
		map->lines.items[i].reach = reach;
	}
	return 0;
}

int rls_perf_map_parse(char *text, size_t length, struct rls_perf_map **out)
{
	struct rls_perf_map *map = calloc(1, sizeof(*map));

	if (!map) {
		free(text);
		return -ENOMEM;
	}
	map->text = text;
	map->bytes = length;
	if (parse(map)) {
		rls_perf_map_free(map);
		return -ENOMEM;
	}
	*out = map;
	return 0;
}

/* Its number where it lives, and whose it is: "NSpid:" and "Uid:" of its status. The real user
 * counts, not one that it became to open files by. */
static int read_identity(pid_t pid, unsigned int *number, uid_t *user)
{
	char path[64], line[256];
	_cleanup_fclose_ FILE *status = NULL;
	int found = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status)) {
		found += sscanf(line, "Uid:\t%u", user) == 1;
		if (!strncmp(line, "NSpid:", 6))
			found += sscanf(strrchr(line, '\t') ? strrchr(line, '\t') : "", "%u",
					number) == 1;
	}
	return found == 2 ? 0 : -ESRCH;
}

static int read_text(int fd, size_t length, struct rls_perf_map **out)
{
	_cleanup_free_ char *text = malloc(length + 1);
	size_t used = 0;
	ssize_t got = 1;

	if (!text)
		return -ENOMEM;
	while (used < length && (got = pread(fd, text + used, length - used, (off_t)used)) > 0)
		used += (size_t)got;
	if (got < 0)
		return -errno;
	text[used] = '\0';
	return rls_perf_map_parse(rls_take(text), used, out);
}

int rls_perf_map_read(pid_t pid, struct rls_perf_map **out)
{
	_cleanup_close_ int fd = -1;
	struct stat status;
	unsigned int number;
	char path[64];
	uid_t user;
	int r = read_identity(pid, &number, &user);

	if (r)
		return r;
	snprintf(path, sizeof(path), "/tmp/perf-%u.map", number);
	fd = rls_target_file_open(pid, path);
	if (fd < 0)
		return fd;
	/* Anybody may write into /tmp; only the process's user and root speak for it. */
	if (fstat(fd, &status) || !S_ISREG(status.st_mode) ||
	    (status.st_uid && status.st_uid != user))
		return -ENOENT;
	return read_text(fd,
			 status.st_size < RLS_PERF_MAP_BYTES_MAX ? (size_t)status.st_size
								 : RLS_PERF_MAP_BYTES_MAX,
			 out);
}

const char *rls_perf_map_find(const struct rls_perf_map *map, uint64_t address, uint64_t *start)
{
	const struct line *lines = map->lines.items, *found = NULL;
	size_t low = rls_first_not(map->lines.count, i, lines[i].start <= address);

	for (size_t i = low; i > 0 && low - i < OVERLAPPING_MAX && lines[i - 1].reach > address;
	     i--) {
		const struct line *line = &lines[i - 1];

		if (line->end > address && (!found || line->number > found->number))
			found = line;
	}
	if (!found)
		return NULL;
	*start = found->start;
	return found->name;
}

size_t rls_perf_map_bytes(const struct rls_perf_map *map)
{
	return map->bytes;
}
