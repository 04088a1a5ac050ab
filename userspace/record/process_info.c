#include "userspace/record/process_info.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "analysis/cleanup.h"
#include "analysis/string_pool.h"

#define PROC_TEXT_BYTES (128 * 1024)
#define CMDLINE_BYTES (RLS_STRING_BYTES_MAX / 6)

/* A whole /proc file, NUL-terminated; cut at PROC_TEXT_BYTES. */
static int read_proc(pid_t pid, const char *name, char **out, size_t *length_out)
{
	_cleanup_free_ char *text = malloc(PROC_TEXT_BYTES + 1);
	_cleanup_close_ int fd = -1;
	size_t length = 0;
	char path[64];
	ssize_t got;

	if (!text)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	while (length < PROC_TEXT_BYTES &&
	       (got = read(fd, text + length, PROC_TEXT_BYTES - length)) > 0)
		length += (size_t)got;
	text[length] = '\0';
	*out = rls_take(text);
	if (length_out)
		*length_out = length;
	return 0;
}

/* Trailing arguments that would not fit a string of the trace are left out: a cut array
 * would be no array. JSON may take six bytes for one. */
static int cmdline_to_json(const char *text, size_t length, char **out)
{
	json_t *array = json_array();
	size_t at = 0;

	while (array && at < length && at + strnlen(text + at, length - at) < CMDLINE_BYTES) {
		size_t word = strnlen(text + at, length - at);
		json_t *item = json_stringn(text + at, word);

		/* Not UTF-8: shown as a mark rather than left out. */
		json_array_append_new(array, item ? item : json_string("\xef\xbf\xbd"));
		at += word + 1;
	}
	*out = array ? json_dumps(array, JSON_COMPACT) : NULL;
	json_decref(array);
	return *out ? 0 : -ENOMEM;
}

static size_t hex_run(const char *text, size_t length)
{
	size_t run = 0;

	while (run < length && isxdigit((unsigned char)text[length - 1 - run]))
		run++;
	return run;
}

void rls_container_of_cgroup(const char *cgroup_text, char *out, size_t out_bytes)
{
	const char *at = cgroup_text;

	out[0] = '\0';
	while (*at) {
		size_t length = strcspn(at, "/\n"), run;

		if (length > 6 && !strncmp(at + length - 6, ".scope", 6))
			run = hex_run(at, length - 6), at += length - 6 - run;
		else
			run = hex_run(at, length), at += length - run;
		if (run >= 12 && run <= 64)
			snprintf(out, out_bytes, "%.*s", (int)run, at);
		at += strcspn(at, "/\n");
		at += *at != '\0';
	}
}

static pid_t number_after(const char *text, const char *key)
{
	const char *found = strstr(text, key);
	const char *last;

	if (!found)
		return 0;
	/* NSpid lists one pid per namespace, innermost last. */
	last = found + strlen(key);
	found = last;
	while (*found && *found != '\n') {
		if (isspace((unsigned char)*found) && isdigit((unsigned char)found[1]))
			last = found + 1;
		found++;
	}
	return (pid_t)strtol(last, NULL, 10);
}

int rls_process_info_read(pid_t pid, struct rls_process_info *out)
{
	_cleanup_free_ char *comm = NULL, *cmdline = NULL, *status = NULL, *cgroup = NULL;
	struct rls_process_info info = { 0 };
	char container[80] = "";
	size_t length;
	int r;

	r = read_proc(pid, "comm", &comm, NULL);
	if (!r)
		r = read_proc(pid, "cmdline", &cmdline, &length);
	if (!r)
		r = read_proc(pid, "status", &status, NULL);
	if (r)
		return r;
	comm[strcspn(comm, "\n")] = '\0';
	info.ppid = number_after(status, "PPid:");
	info.ns_pid = number_after(status, "NSpid:");
	if (!read_proc(pid, "cgroup", &cgroup, NULL))
		rls_container_of_cgroup(cgroup, container, sizeof(container));
	info.container = strdup(container);
	r = info.container ? cmdline_to_json(cmdline, length, &info.cmdline) : -ENOMEM;
	if (r) {
		rls_process_info_clear(&info);
		return r;
	}
	info.name = rls_take(comm);
	*out = info;
	return 0;
}

void rls_process_info_clear(struct rls_process_info *info)
{
	free(info->name);
	free(info->cmdline);
	free(info->container);
	*info = (struct rls_process_info){ 0 };
}

int rls_process_exists(pid_t pid)
{
	_cleanup_free_ char *status = NULL;

	if (pid <= 0 || read_proc(pid, "status", &status, NULL))
		return -ESRCH;
	return strstr(status, "\nState:\tZ") || strstr(status, "\nState:\tX") ? -ESRCH : 0;
}

/* Every (pid, ppid) on the host. */
struct pid_pair {
	pid_t pid, ppid;
};

static int list_processes(struct pid_pair **out, size_t *count_out)
{
	_cleanup_free_ struct pid_pair *pairs = NULL;
	size_t count = 0, room = 0;
	struct dirent *entry;
	DIR *proc = opendir("/proc");

	if (!proc)
		return -errno;
	while ((entry = readdir(proc))) {
		_cleanup_free_ char *status = NULL;
		pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;

		if (!pid || read_proc(pid, "status", &status, NULL))
			continue;
		if (count == room) {
			struct pid_pair *grown;

			room = room ? 2 * room : 256;
			grown = reallocarray(pairs, room, sizeof(*pairs));
			if (!grown) {
				closedir(proc);
				return -ENOMEM;
			}
			pairs = grown;
		}
		pairs[count++] = (struct pid_pair){ pid, number_after(status, "PPid:") };
	}
	closedir(proc);
	*out = rls_take(pairs);
	*count_out = count;
	return 0;
}

int rls_each_descendant(pid_t pid, int (*visit)(pid_t pid, void *context), void *context)
{
	_cleanup_free_ struct pid_pair *pairs = NULL;
	_cleanup_free_ pid_t *queue = NULL;
	size_t count = 0, head = 0, tail = 0;
	int r = list_processes(&pairs, &count);

	if (r)
		return r;
	queue = calloc(count + 1, sizeof(*queue));
	if (!queue)
		return -ENOMEM;
	queue[tail++] = pid;
	while (head < tail) {
		pid_t parent = queue[head++];

		for (size_t i = 0; i < count; i++) {
			if (pairs[i].ppid != parent || tail > count)
				continue;
			r = visit(pairs[i].pid, context);
			if (r)
				return r;
			queue[tail++] = pairs[i].pid;
			pairs[i].ppid = -1; /* a reused pid cannot make a cycle */
		}
	}
	return 0;
}
