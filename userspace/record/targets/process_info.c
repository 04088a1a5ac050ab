#include "userspace/record/targets/process_info.h"

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

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "analysis/base/string_pool.h"
#include "userspace/base/clock.h"
#include "userspace/base/proc_stat.h"
#include "userspace/process/living_thread.h"
#include "userspace/record/targets/cgroup.h"

#define PROC_TEXT_BYTES (128 * 1024)
#define WORD_BYTES_MAX 512
#define ELLIPSIS "\xe2\x80\xa6"

/* The rest is also there where the first thread has left, and is about the process as such: its name, its numbers. */
static bool is_of_memory(const char *name)
{
	return !strcmp(name, "cmdline") || !strcmp(name, "environ") || !strcmp(name, "cgroup");
}

int rls_process_read(pid_t pid, const char *name, char **out, size_t *length_out)
{
	_cleanup_free_ char *text = malloc(PROC_TEXT_BYTES + 1);
	_cleanup_close_ int fd = -1;
	size_t length = 0;
	char path[64];
	ssize_t got;

	if (!text)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/%d/%s",
		 is_of_memory(name) ? rls_living_thread(pid) : pid, name);
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

int rls_process_words(char *const *words, char **out)
{
	_cleanup_free_ char *text = NULL;
	size_t length = 0, at = 0;

	for (size_t i = 0; words[i]; i++)
		length += strlen(words[i]) + 1;
	text = malloc(length + 1);
	if (!text)
		return -ENOMEM;
	for (size_t i = 0; words[i]; i++)
		at += (size_t)(stpcpy(text + at, words[i]) + 1 - (text + at));
	return cmdline_to_json(text, length, out);
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

/* Its first thread may have ended before the others. */
static bool has_ended(pid_t pid, const char *status)
{
	return (strstr(status, "\nState:\tZ") || strstr(status, "\nState:\tX")) &&
	       rls_living_thread(pid) == pid;
}

int rls_process_container(pid_t pid, char out[RLS_CONTAINER_BYTES])
{
	_cleanup_free_ char *cgroup = NULL, *init_cgroup = NULL;
	char container[RLS_CONTAINER_BYTES], init_container[RLS_CONTAINER_BYTES];
	int r = rls_process_read(pid, "cgroup", &cgroup, NULL);

	if (r)
		return r;
	rls_container_of_cgroup(cgroup, container, sizeof(container));
	/* A host can be a container itself: what holds its init holds nothing apart. */
	if (container[0] && !rls_process_read(1, "cgroup", &init_cgroup, NULL)) {
		rls_container_of_cgroup(init_cgroup, init_container, sizeof(init_container));
		if (!strcmp(container, init_container))
			container[0] = '\0';
	}
	memcpy(out, container, sizeof(container));
	return 0;
}

int rls_process_info_read(pid_t pid, struct rls_process_info *out)
{
	_cleanup_free_ char *comm = NULL, *cmdline = NULL, *status = NULL;
	struct rls_process_info info = {0};
	char container[RLS_CONTAINER_BYTES] = "";
	size_t length;
	int r;

	r = rls_process_read(pid, "comm", &comm, NULL);
	if (!r)
		r = rls_process_read(pid, "cmdline", &cmdline, &length);
	if (!r)
		r = rls_process_read(pid, "status", &status, NULL);
	if (r)
		return r;
	comm[strcspn(comm, "\n")] = '\0';
	info.ppid = number_in_status(status, "\nPPid:");
	info.ns_pid = number_in_status(status, "\nNSpid:"); /* innermost last */
	rls_process_container(pid, container); /* unknown is reported as none */
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
	*info = (struct rls_process_info){0};
}

int rls_process_exists(pid_t pid)
{
	_cleanup_free_ char *status = NULL;
	int r = pid > 0 ? rls_process_read(pid, "status", &status, NULL) : -ESRCH;

	if (r)
		return r;
	/* /proc has threads under their own numbers too. */
	return has_ended(pid, status) || number_in_status(status, "\nTgid:") != pid ? -ESRCH : 0;
}

int rls_process_tracer(pid_t pid, pid_t *tracer)
{
	_cleanup_free_ char *status = NULL;

	if (rls_process_read(pid, "status", &status, NULL))
		return -ESRCH;
	*tracer = number_in_status(status, "\nTracerPid:");
	return 0;
}

int rls_process_start(pid_t pid, uint64_t *ticks)
{
	_cleanup_free_ char *stat = NULL;
	const char *word;

	if (rls_process_read(pid, "stat", &stat, NULL))
		return -ESRCH;
	word = rls_stat_word(stat, 22);
	if (!word)
		return -ESRCH;
	*ticks = strtoull(word, NULL, 10);
	return 0;
}

int rls_process_age(pid_t pid, uint64_t *age_ns)
{
	uint64_t now_ns, start_ns, ticks;

	if (rls_process_start(pid, &ticks))
		return -ESRCH;
	now_ns = rls_since_boot_ns();
	start_ns = ticks * (1000000000ULL / (uint64_t)sysconf(_SC_CLK_TCK));
	*age_ns = now_ns > start_ns ? now_ns - start_ns : 0;
	return 0;
}

int rls_each_process(int (*visit)(pid_t pid, void *context), void *context)
{
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	int r = 0;

	if (!proc)
		return -errno;
	while (!r && (entry = readdir(proc))) {
		if (isdigit((unsigned char)entry->d_name[0]))
			r = visit(atoi(entry->d_name), context);
	}
	closedir(proc);
	return r;
}

struct pid_pair {
	pid_t pid, ppid;
};

struct pid_pairs {
	struct pid_pair *entries;
	size_t count, room;
};

static int add_pair(pid_t pid, void *context)
{
	_cleanup_free_ char *status = NULL;
	struct pid_pairs *pairs = context;

	if (rls_process_read(pid, "status", &status, NULL) || has_ended(pid, status))
		return 0;
	if (rls_grow(&pairs->entries, &pairs->room, pairs->count))
		return -ENOMEM;
	pairs->entries[pairs->count++] =
		(struct pid_pair){pid, number_in_status(status, "\nPPid:")};
	return 0;
}

static int visit_descendants(struct pid_pairs *pairs, pid_t *queue,
			     int (*visit)(pid_t pid, void *context), void *context)
{
	size_t head = 0, tail = 1;

	while (head < tail) {
		pid_t parent = queue[head++];

		for (size_t i = 0; i < pairs->count; i++) {
			struct pid_pair *pair = &pairs->entries[i];
			int r;

			if (pair->ppid != parent || tail > pairs->count)
				continue;
			r = visit(pair->pid, context);
			if (r)
				return r;
			queue[tail++] = pair->pid;
			pair->ppid = -1; /* a reused pid cannot make a cycle */
		}
	}
	return 0;
}

int rls_each_descendant(pid_t pid, int (*visit)(pid_t pid, void *context), void *context)
{
	struct pid_pairs pairs = {0};
	_cleanup_free_ pid_t *queue = NULL;
	int r = rls_each_process(add_pair, &pairs);

	queue = r ? NULL : calloc(pairs.count + 1, sizeof(*queue));
	if (!r && !queue)
		r = -ENOMEM;
	if (!r) {
		queue[0] = pid;
		r = visit_descendants(&pairs, queue, visit, context);
	}
	free(pairs.entries);
	return r;
}
