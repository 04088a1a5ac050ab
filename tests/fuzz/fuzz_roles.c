/* A file of roles, and then its globs at work on paths and names. */
#include "fuzz.h"

#include <stdlib.h>
#include <unistd.h>

#include "userspace/discover/roles/roles.h"

static void match_names(const struct rls_role_match *match)
{
	fuzz_require(match->count > 0 && match->role < RLS_ROLE_MAX, "a match has rules");
	rls_role_match_takes_methods(match);
	rls_role_match_takes_callbacks(match);
	rls_role_match_takes_exports(match);
	rls_role_match_wants_method(match, "torch._C._nn.linear");
	rls_role_match_wants_export(match, "mj_step");
	rls_role_match_wants_export(match, "");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const paths[] = {"/usr/lib/libmujoco.so.3", "/a/torch/_C.so", "[heap]",
					    ""};
	char path[FUZZ_PATH_BYTES];
	struct rls_role_match match;
	struct rls_roles *roles;
	int fd = fuzz_file(data, size);

	fuzz_file_path(fd, path);
	if (rls_roles_new(&roles))
		abort();
	rls_roles_parse_file(roles, path);
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		if (rls_roles_match(roles, paths[i], &match))
			match_names(&match);
	rls_roles_free(roles);
	close(fd);
	return 0;
}
