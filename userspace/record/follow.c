/* Which processes a recorder follows: those it is given, those selected, their children. */
#include <errno.h>
#include <string.h>

#include "userspace/base/descriptors.h"
#include "userspace/base/log.h"
#include "userspace/discover/discover.h"
#include "userspace/record/recorder.h"
#include "userspace/record/samples/interpreters.h"
#include "userspace/record/samples/stack_samples.h"
#include "userspace/record/session.h"
#include "userspace/record/targets/process_info.h"

static int follow_process(struct rls_recorder *recorder, pid_t pid, bool root)
{
	int r = rls_targets_add(&recorder->targets, pid, root);

	rls_affinity_expect(&recorder->affinity, pid);
	/* Tracked first: what it forks from now on is tracked by the kernel side itself. */
	if (!r)
		r = rls_describe_settings(&recorder->describer, pid);
	if (!r)
		r = rls_interpreters_check(recorder->interpreters, pid, rls_monotonic_ns());
	if (!r)
		r = rls_samples_began(recorder->samples, pid, rls_monotonic_ns());
	if (!r)
		r = rls_libraries_scan(recorder->libraries, pid, rls_monotonic_ns());
	/* Again, now that its annotations are found: the first hit is to be in its operation. */
	if (!r && rls_libraries_annotation(recorder->libraries, pid))
		r = rls_describe_settings(&recorder->describer, pid);
	if (r)
		rls_targets_unfollow(&recorder->targets, pid, rls_monotonic_ns());
	return r;
}

static int follow_descendant(pid_t pid, void *context)
{
	struct rls_recorder *recorder = context;
	int r = rls_targets_find(&recorder->targets, pid) ? 0
							  : follow_process(recorder, pid, false);

	return r == -ESRCH || r == -EACCES ? 0 : r;
}

int rls_recorder_follow_tree(struct rls_recorder *recorder, pid_t pid, bool root)
{
	int r = follow_process(recorder, pid, root);

	if (!r && recorder->options.follow_children)
		r = rls_each_descendant(pid, follow_descendant, recorder);
	return r;
}

/* Python, or at least a library that we know. */
static bool anything_to_see(const struct rls_recorder *recorder)
{
	for (size_t i = 0; i < recorder->targets.count; i++) {
		pid_t pid = recorder->targets.all[i]->pid;

		if (rls_recorder_is_python(recorder, pid) ||
		    rls_libraries_count(recorder->libraries, pid))
			return true;
	}
	return false;
}

int rls_recorder_add(struct rls_recorder *recorder, pid_t pid)
{
	int r = rls_process_exists(pid);

	if (!r)
		r = rls_recorder_follow_tree(recorder, pid, true);
	if (r && rls_reason_is_end(r))
		return rls_error_r(-ESRCH, "process %d has ended before it could be recorded", pid);
	if (r)
		return rls_discover_explain(pid, r);
	if (!anything_to_see(recorder))
		return rls_error_r(
			-ENOEXEC, "process %d is not a Python process%s", pid,
			recorder->options.follow_children ? ", nor is any of its children" : "");
	return 0;
}

static int follow_selected(const struct rls_candidate *candidate, void *context)
{
	struct rls_recorder *recorder = context;
	int r;

	if (rls_targets_find(&recorder->targets, candidate->pid))
		return 0;
	r = rls_recorder_follow_tree(recorder, candidate->pid, false);
	return r == -ENOMEM ? r : 0; /* it has ended */
}

int rls_recorder_add_selected(struct rls_recorder *recorder)
{
	const struct rls_selection *selection = recorder->options.selection;
	int r = rls_scan(selection, recorder->options.roles, follow_selected, recorder);

	if (r)
		return rls_error_r(r, "cannot look for processes: %s", rls_reason(r));
	/* Who listens waits for them. */
	if (!(selection->kinds & RLS_SELECT_ALL) && !recorder->options.listener &&
	    !anything_to_see(recorder))
		return rls_error_r(-ENOEXEC, "none of the selected processes is a Python process");
	return 0;
}

void rls_recorder_expect(struct rls_recorder *recorder, const char *path)
{
	rls_interpreters_expect(recorder->interpreters, path);
}

int rls_recorder_add_launch(struct rls_recorder *recorder, pid_t pid)
{
	int r = rls_targets_add(&recorder->targets, pid, true);

	recorder->describer.launched = pid;
	recorder->describer.words = recorder->options.command;
	return r ? r : rls_describe_settings(&recorder->describer, pid);
}
