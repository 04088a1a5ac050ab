#include "userspace/commands/shared/inject_bridges.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/log.h"
#include "userspace/base/tasks.h"
#include "userspace/host/own_library.h"
#include "userspace/inject/inject.h"
#include "userspace/record/probes/cupti_bridges.h"
#include "userspace/record/targets/process_info.h"

#define LIMIT_NS 10000000000ULL

struct presence {
	bool cuda, bridge;
};

/* A bridge that was loaded, and whose loader was killed before it could start it, has none. */
static bool has_bridge_thread(pid_t pid)
{
	_cleanup_tasks_ DIR *tasks = rls_tasks_open(pid);
	bool has = false;
	pid_t tid;

	while (!has && (tid = rls_tasks_next(tasks))) {
		_cleanup_free_ char *name = NULL;
		char path[48];

		snprintf(path, sizeof(path), "task/%d/comm", tid);
		has = !rls_process_read(pid, path, &name, NULL) && !strcmp(name, "rlscope-cupti\n");
	}
	return has;
}

static int inject_bridges_check(pid_t pid, struct presence *out)
{
	struct rls_mappings mappings;
	int r = rls_mappings_read(pid, &mappings);

	if (r)
		return r;
	out->cuda = rls_cupti_bridges_cuda_mapped(&mappings);
	out->bridge = rls_cupti_bridges_mapped(&mappings) && has_bridge_thread(pid);
	rls_mappings_release(&mappings);
	return 0;
}

static void inject(pid_t pid, const char *library)
{
	const struct rls_injection injection = {
		.pid = pid,
		.library = library,
		.start = "InitializeInjection",
		.limit_ns = LIMIT_NS,
	};
	char why[RLS_INJECT_WHY_BYTES];

	if (rls_inject(&injection, why))
		rls_warning("process %d %s, so the CUPTI bridge is not injected", pid, why);
	else
		rls_info("rlscope-bpf: the CUPTI bridge was loaded into process %d", pid);
}

void rls_inject_bridges(const pid_t *pids, size_t count)
{
	char relative[RLS_OWN_LIBRARY_BYTES];
	char *library;

	rls_own_library(RLS_BRIDGE_LIBRARY, relative);
	library = relative[0] ? realpath(relative, NULL) : NULL;
	if (!library) {
		rls_warning("there is no %s beside this program: nothing is injected",
			    RLS_BRIDGE_LIBRARY);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		struct presence presence;
		int r = inject_bridges_check(pids[i], &presence);

		if (r)
			rls_warning("process %d cannot be read, so nothing is injected: %s",
				    pids[i], strerror(-r));
		else if (presence.bridge)
			rls_debug("process %d has the CUPTI bridge already", pids[i]);
		else if (!presence.cuda)
			rls_warning("process %d has not loaded CUDA (yet), so nothing is injected",
				    pids[i]);
		else
			inject(pids[i], library);
	}
	free(library);
}
