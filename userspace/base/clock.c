#include "userspace/base/clock.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* As the kernel names it, of old (PROC_TIME_INIT_INO). */
#define INITIAL_TIME_NAMESPACE "time:[4026531834]"
#define LINK_BYTES 64
#define NS_A_SECOND 1000000000LL

struct rls_clocks_ahead rls_clocks_ahead;

int rls_clocks_ahead_parse(FILE *file, struct rls_clocks_ahead *out)
{
	struct rls_clocks_ahead ahead = {0};
	char name[16], line[96];
	long long seconds, ns;
	int found = 0;

	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%15s %lld %lld", name, &seconds, &ns) != 3)
			continue;
		if (seconds > INT64_MAX / NS_A_SECOND - 1 || seconds < INT64_MIN / NS_A_SECOND + 1)
			return -EINVAL;
		/* By number before 5.11. */
		if (!strcmp(name, "monotonic") || !strcmp(name, "1")) {
			ahead.monotonic_ns = seconds * NS_A_SECOND + ns;
			found |= 1;
		} else if (!strcmp(name, "boottime") || !strcmp(name, "7")) {
			ahead.boottime_ns = seconds * NS_A_SECOND + ns;
			found |= 2;
		}
	}
	if (found != 3)
		return -EINVAL;
	*out = ahead;
	return 0;
}

static bool read_link(const char *process, const char *name, char out[LINK_BYTES])
{
	char path[LINK_BYTES];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%.16s/ns/%.24s", process, name);
	length = readlink(path, out, LINK_BYTES - 1);
	out[length > 0 ? length : 0] = '\0';
	return length > 0;
}

/* Of a process whose children are in this namespace: that is what its file is about. */
static int read_offsets(const char *process, const char *namespace, struct rls_clocks_ahead *out)
{
	char children[LINK_BYTES], path[LINK_BYTES];
	FILE *file;
	int r;

	if (!read_link(process, "time_for_children", children) || strcmp(children, namespace))
		return -ENODATA;
	snprintf(path, sizeof(path), "/proc/%.16s/timens_offsets", process);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	r = rls_clocks_ahead_parse(file, out);
	fclose(file);
	return r;
}

static int find_offsets(const char *namespace, struct rls_clocks_ahead *out)
{
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	int r = -ENODATA;

	if (!proc)
		return -errno;
	while (r && (entry = readdir(proc))) {
		if (isdigit((unsigned char)entry->d_name[0]))
			r = read_offsets(entry->d_name, namespace, out);
	}
	closedir(proc);
	return r ? -ENODATA : 0;
}

int rls_clock_join_host(void)
{
	struct rls_clocks_ahead ahead = {0};
	char own[LINK_BYTES];
	int r = 0;

	/* There are none before Linux 5.6. */
	if (!read_link("self", "time", own) || !strcmp(own, INITIAL_TIME_NAMESPACE))
		return 0;
	r = read_offsets("self", own, &ahead);
	if (r)
		r = find_offsets(own, &ahead);
	if (!r)
		rls_clocks_ahead = ahead;
	return r;
}

uint64_t rls_process_cpu_ns(pid_t pid)
{
	struct timespec ran;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ran))
		return 0;
	return (uint64_t)ran.tv_sec * NS_A_SECOND + (uint64_t)ran.tv_nsec;
}
