/* The text of /proc/PID/cgroup: whoever may make control groups names them. */
#include "fuzz.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/record/targets/cgroup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), id[80], cut[8];
	const char *path;
	size_t length;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	rls_container_of_cgroup(text, id, sizeof(id));
	fuzz_require(!id[0] || (strlen(id) >= 12 && strlen(id) <= 64), "an id has 12 to 64 digits");
	for (size_t i = 0; id[i]; i++)
		fuzz_require(isxdigit((unsigned char)id[i]), "an id is made of hexadecimal digits");
	rls_container_of_cgroup(text, cut, sizeof(cut));
	fuzz_require(!strncmp(cut, id, sizeof(cut) - 1) && strlen(cut) < sizeof(cut),
		     "an id is cut to its room");
	rls_cgroup_is_within(text, "/system.slice");
	rls_cgroup_is_within(text, "");
	path = rls_cgroup_find(text, "memory", &length);
	fuzz_require(!path || (path > text && path + length <= text + strlen(text)),
		     "a path is in the text");
	free(text);
	return 0;
}
