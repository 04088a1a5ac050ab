#include "userspace/host/own_library.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void rls_own_library(const char *name, char path[RLS_OWN_LIBRARY_BYTES])
{
	/* Built, installed, and of a package. */
	static const char *const places[] = {"", ("/../" RLS_LIBDIR), "/../lib/rlscope-bpf"};
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	path[0] = '\0';
	if (length <= 0)
		return;
	self[length] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, RLS_OWN_LIBRARY_BYTES, "%s%s/%s", self, places[i], name);
		if (!access(path, R_OK))
			return;
	}
	path[0] = '\0';
}
