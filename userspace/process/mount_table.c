#include "userspace/process/mount_table.h"

#include <stddef.h>
#include <string.h>

void rls_mount_unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		if (from[0] == '\\' && strspn(from + 1, "01234567") >= 3) {
			*to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

bool rls_mount_parse(char *line, struct rls_mount *out)
{
	char *fields[5], *at = line, *type = strstr(line, " - "), *options;

	if (!type)
		return false;
	for (size_t i = 0; i < 5; i++)
		fields[i] = strsep(&at, " ");
	type = strtok_r(type + 3, " ", &options);
	strtok_r(NULL, " ", &options); /* the source */
	if (!fields[4] || !type || !options)
		return false;
	options[strcspn(options, "\n")] = '\0';
	rls_mount_unescape(fields[3]);
	rls_mount_unescape(fields[4]);
	*out = (struct rls_mount){fields[3], fields[4], type, options};
	return true;
}
