#include "userspace/record/memory/memory_limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "userspace/process/mount_table.h"
#include "userspace/record/targets/cgroup.h"
#include "userspace/record/targets/process_info.h"

#define PATH_BYTES 4096
#define ANCESTORS_MAX 64
/* Version 1 has no word for none: its largest number, in whole pages. */
#define NONE_BYTES (UINT64_MAX / 4)

/* "" when it cannot be read. */
static void read_text(const char *path, char *out, size_t room)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	size_t got = file ? fread(out, 1, room - 1, file) : 0;

	out[got] = '\0';
}

/* 0: none, "max", or no file. */
static uint64_t read_number(const char *folder, const char *name)
{
	char path[PATH_BYTES], text[64], *end;
	uint64_t number;

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return 0;
	read_text(path, text, sizeof(text));
	number = strtoull(text, &end, 10);
	return end == text || number > NONE_BYTES ? 0 : number;
}

static uint64_t limit_of(const char *folder, int version)
{
	return read_number(folder, version == 2 ? "memory.max" : "memory.limit_in_bytes");
}

/* Whether this is the mount of the hierarchy that limits memory. */
static bool limits_memory(const struct rls_mount *mount, int version)
{
	return version == 2
		       ? !strcmp(mount->type, "cgroup2")
		       : !strcmp(mount->type, "cgroup") &&
				 rls_cgroup_lists(mount->options, strlen(mount->options), "memory");
}

/* Where such a hierarchy is mounted, into out; the folder of it that is mounted into root. */
static bool find_mount(const char *text, int version, char out[PATH_BYTES], char root[PATH_BYTES])
{
	for (const char *line = text; *line;) {
		size_t whole = strcspn(line, "\n");
		_cleanup_free_ char *copy = strndup(line, whole);
		struct rls_mount mount;

		line += whole;
		line += *line != '\0';
		if (!copy || !rls_mount_parse(copy, &mount) || !limits_memory(&mount, version))
			continue;
		snprintf(root, PATH_BYTES, "%s", mount.root);
		snprintf(out, PATH_BYTES, "%s", mount.point);
		return true;
	}
	return false;
}

/* Goes up from the process's own: true when one has a limit. */
static bool find_tightest(const char *cgroup_text, const char *mountinfo_text, int version,
			  struct rls_memory_group *out)
{
	char mount[PATH_BYTES], root[PATH_BYTES], folder[2 * PATH_BYTES];
	size_t length, top;
	const char *path = rls_cgroup_find(cgroup_text, version == 2 ? "" : "memory", &length);
	uint64_t least = 0;

	if (!path || length >= PATH_BYTES || !find_mount(mountinfo_text, version, mount, root))
		return false;
	/* What is mounted may be a folder of the hierarchy, as in containers. */
	if (strcmp(root, "/") && !strncmp(path, root, strlen(root)) && length >= strlen(root)) {
		path += strlen(root);
		length -= strlen(root);
	}
	top = strlen(mount);
	snprintf(folder, sizeof(folder), "%s%.*s", mount, (int)length, path);
	for (int i = 0; i < ANCESTORS_MAX && strlen(folder) >= top; i++) {
		uint64_t limit = limit_of(folder, version);
		char *slash = strrchr(folder, '/');

		if (limit && (!least || limit < least)) {
			char *copy = strdup(folder);

			if (!copy)
				break;
			free(out->path);
			*out = (struct rls_memory_group){.path = copy, .version = version};
			least = limit;
		}
		if (!slash || slash == folder)
			break;
		*slash = '\0';
	}
	return least != 0;
}

void rls_memory_group_find_in(const char *cgroup_text, const char *mountinfo_text,
			      struct rls_memory_group *out)
{
	*out = (struct rls_memory_group){0};
	if (!find_tightest(cgroup_text, mountinfo_text, 2, out))
		find_tightest(cgroup_text, mountinfo_text, 1, out);
}

void rls_memory_group_find(pid_t pid, struct rls_memory_group *out)
{
	_cleanup_free_ char *cgroup = NULL, *mountinfo = NULL;

	*out = (struct rls_memory_group){0};
	if (!rls_process_read(pid, "cgroup", &cgroup, NULL) &&
	    !rls_process_read(getpid(), "mountinfo", &mountinfo, NULL))
		rls_memory_group_find_in(cgroup, mountinfo, out);
}

void rls_memory_group_clear(struct rls_memory_group *group)
{
	free(group->path);
	*group = (struct rls_memory_group){0};
}

/* In KiB there; 0 when it is not there. */
static uint64_t meminfo_bytes(const char *text, const char *name)
{
	const char *line = strstr(text, name);
	uint64_t kib = 0;

	if (!line || sscanf(line + strlen(name), ": %" SCNu64, &kib) != 1)
		return 0;
	return kib * 1024;
}

static void read_machine(struct rls_memory_limit *out)
{
	char text[4096];
	uint64_t free_bytes;

	read_text("/proc/meminfo", text, sizeof(text));
	out->limit_bytes = meminfo_bytes(text, "MemTotal");
	free_bytes = meminfo_bytes(text, "MemAvailable");
	out->used_bytes = out->limit_bytes > free_bytes ? out->limit_bytes - free_bytes : 0;
}

/* Of memory.stat, which has "name number" lines; 0: there is none. */
static uint64_t stat_bytes(const char *folder, const char *name)
{
	_cleanup_fclose_ FILE *file = NULL;
	char path[PATH_BYTES], known[64];
	uint64_t bytes;

	if (snprintf(path, sizeof(path), "%s/memory.stat", folder) >= (int)sizeof(path))
		return 0;
	file = fopen(path, "re");
	while (file && fscanf(file, " %63s %" SCNu64, known, &bytes) == 2)
		if (!strcmp(known, name))
			return bytes;
	return 0;
}

/* The kernel takes the cache of files that nobody used of late before it ends a process. */
static uint64_t group_used_bytes(const struct rls_memory_group *group)
{
	bool two = group->version == 2;
	uint64_t used = read_number(group->path, two ? "memory.current" : "memory.usage_in_bytes");
	uint64_t cache = stat_bytes(group->path, two ? "inactive_file" : "total_inactive_file");

	return used > cache ? used - cache : 0;
}

void rls_memory_limit_read(const struct rls_memory_group *group, struct rls_memory_limit *out)
{
	struct rls_memory_limit limit = {0};

	if (group->path) {
		limit.limit_bytes = limit_of(group->path, group->version);
		limit.used_bytes = group_used_bytes(group);
	}
	if (!limit.limit_bytes)
		read_machine(&limit);
	*out = limit;
}
