#include "userspace/record/process_info.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "analysis/cleanup.h"
#include "analysis/grow.h"
#include "analysis/string_pool.h"

#define PROC_TEXT_BYTES (128 * 1024)
#define WORD_BYTES_MAX 512
#define ELLIPSIS "\xe2\x80\xa6"
#define ID_DIGITS_MIN 12
#define ID_DIGITS_MAX 64

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
	       (got = read(fd, text + length, PROC_TEXT_BYTES - length)) != 0) {
		if (got < 0)
			return -errno; /* it ended meanwhile: -ESRCH */
		length += (size_t)got;
	}
	text[length] = '\0';
	*out = rls_take(text);
	if (length_out)
		*length_out = length;
	return 0;
}

/* One word of a command line, cut to what people read. */
static json_t *word_to_json(const char *text, size_t length)
{
	char word[WORD_BYTES_MAX + sizeof(ELLIPSIS)];
	json_t *item;

	if (length <= WORD_BYTES_MAX) {
		item = json_stringn(text, length);
	} else {
		length = WORD_BYTES_MAX;
		while (length && (text[length] & 0xc0) == 0x80)
			length--; /* not in the middle of a character */
		memcpy(word, text, length);
		memcpy(word + length, ELLIPSIS, sizeof(ELLIPSIS));
		item = json_string(word);
	}
	/* Not UTF-8: shown as a mark rather than left out. */
	return item ? item : json_string("\xef\xbf\xbd");
}

static size_t json_bytes(const json_t *item)
{
	_cleanup_free_ char *text = json_dumps(item, JSON_COMPACT | JSON_ENCODE_ANY);

	return text ? strlen(text) : 0;
}

/* A trace's strings are bounded, and half an array is no JSON: it ends with an ellipsis. */
static int cmdline_to_json(const char *text, size_t length, char **out)
{
	json_t *array = json_array();
	size_t at = 0, bytes = sizeof("[]");

	while (array && at < length) {
		size_t word = strnlen(text + at, length - at);
		json_t *item = word_to_json(text + at, word);

		bytes += json_bytes(item) + sizeof(",") - 1;
		if (bytes + sizeof(",\"" ELLIPSIS "\"") > RLS_STRING_BYTES_MAX) {
			json_decref(item);
			json_array_append_new(array, json_string(ELLIPSIS));
			break;
		}
		json_array_append_new(array, item);
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

/* The id in one element of a cgroup's path, *digits long; NULL when it has none. */
static const char *id_in_element(const char *element, size_t length, size_t *digits)
{
	size_t run;

	if (length > strlen(".scope") && !strncmp(element + length - 6, ".scope", 6))
		length -= strlen(".scope");
	run = hex_run(element, length);
	if (run < ID_DIGITS_MIN || run > ID_DIGITS_MAX)
		return NULL;
	/* Only a whole id can follow a prefix: UUIDs and job numbers end in digits too. */
	if (run < length && (run < ID_DIGITS_MAX || !strchr("-:", element[length - run - 1])))
		return NULL;
	*digits = run;
	return element + length - run;
}

void rls_container_of_cgroup(const char *cgroup_text, char *out, size_t out_bytes)
{
	const char *at = cgroup_text;

	out[0] = '\0';
	while (*at) {
		size_t length = strcspn(at, "/\n"), digits;
		const char *id = id_in_element(at, length, &digits);

		if (id)
			snprintf(out, out_bytes, "%.*s", (int)digits, id);
		at += length;
		at += *at != '\0';
	}
}

/* The last number of a line of /proc/PID/status. The key begins with the newline before it:
 * a process can call itself "PPid: 1", but newlines in names are escaped. */
static pid_t number_in_status(const char *status, const char *key)
{
	const char *line = strstr(status, key);
	size_t length;

	if (!line)
		return 0;
	line += strlen(key);
	length = strcspn(line, "\n");
	while (length && !isspace((unsigned char)line[length - 1]))
		length--;
	return (pid_t)strtol(line + length, NULL, 10);
}

static bool is_zombie(const char *status)
{
	return strstr(status, "\nState:\tZ") || strstr(status, "\nState:\tX");
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
	info.ppid = number_in_status(status, "\nPPid:");
	info.ns_pid = number_in_status(status, "\nNSpid:"); /* innermost last */
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
	/* /proc has threads under their own numbers too. */
	return is_zombie(status) || number_in_status(status, "\nTgid:") != pid ? -ESRCH : 0;
}

struct pid_pair {
	pid_t pid, ppid;
};

/* Every living (pid, ppid) on the host. */
static int list_processes(struct pid_pair **out, size_t *count_out)
{
	_cleanup_free_ struct pid_pair *pairs = NULL;
	size_t count = 0, room = 0;
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	int r = 0;

	if (!proc)
		return -errno;
	while (!r && (entry = readdir(proc))) {
		_cleanup_free_ char *status = NULL;
		pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;

		if (!pid || read_proc(pid, "status", &status, NULL) || is_zombie(status))
			continue;
		r = rls_grow(&pairs, &room, count);
		if (!r)
			pairs[count++] = (struct pid_pair){ pid, number_in_status(status, "\nPPid:") };
	}
	closedir(proc);
	if (r)
		return r;
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
