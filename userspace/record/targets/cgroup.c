#include "userspace/record/targets/cgroup.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define ID_DIGITS 64
#define SHORT_ID_DIGITS_MIN 12

static bool ends_with(const char *text, size_t length, const char *end)
{
	size_t end_length = strlen(end);

	return length >= end_length && !memcmp(text + length - end_length, end, end_length);
}

static size_t hex_run(const char *text, size_t length)
{
	size_t run = 0;

	while (run < length && isxdigit((unsigned char)text[length - 1 - run]))
		run++;
	return run;
}

/* What engines write before an id, so that even a short id differs from job numbers, UUIDs and
 * the ids that hosts give their own groups. */
static bool is_engine_prefix(const char *text, size_t length)
{
	static const char *const prefixes[] = {"docker-", "cri-containerd-", "crio-", "libpod-",
					       "nerdctl-"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		if (length == strlen(prefixes[i]) && !memcmp(text, prefixes[i], length))
			return true;
	}
	return false;
}

/* The id in one element of a path, *digits long; NULL when it has none. */
static const char *id_in_element(const char *element, size_t length, size_t *digits)
{
	size_t run, before;

	if (ends_with(element, length, ".scope"))
		length -= strlen(".scope");
	run = hex_run(element, length);
	before = length - run;
	if (run < SHORT_ID_DIGITS_MIN || run > ID_DIGITS)
		return NULL;
	if (run < ID_DIGITS && !is_engine_prefix(element, before))
		return NULL;
	if (before && !strchr("-:", element[before - 1]))
		return NULL;
	if (ends_with(element, before, "conmon-"))
		return NULL; /* Podman's watcher of a container, itself on the host */
	*digits = run;
	return element + before;
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

bool rls_cgroup_lists(const char *list, size_t length, const char *word)
{
	size_t wanted = strlen(word);

	for (size_t at = 0; at <= length; at++) {
		size_t begin = at;

		while (at < length && list[at] != ',')
			at++;
		if (at - begin == wanted && !memcmp(list + begin, word, wanted))
			return true;
	}
	return false;
}

const char *rls_cgroup_find(const char *cgroup_text, const char *controller, size_t *length)
{
	for (const char *line = cgroup_text; *line;) {
		size_t whole = strcspn(line, "\n");
		const char *first = memchr(line, ':', whole), *second = NULL;

		if (first)
			second = memchr(first + 1, ':', whole - (size_t)(first + 1 - line));
		if (second &&
		    rls_cgroup_lists(first + 1, (size_t)(second - first - 1), controller)) {
			*length = whole - (size_t)(second + 1 - line);
			return second + 1;
		}
		line += whole;
		line += *line != '\0';
	}
	return NULL;
}

bool rls_cgroup_is_within(const char *cgroup_text, const char *path)
{
	size_t length, wanted = strlen(path);
	const char *own = rls_cgroup_find(cgroup_text, "", &length);

	if (!own)
		return false;
	if (wanted == 1) /* "/": every one is below it */
		return true;
	return length >= wanted && !memcmp(own, path, wanted) &&
	       (length == wanted || own[wanted] == '/');
}
