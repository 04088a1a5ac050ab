#include "userspace/record/targets/scan.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/log.h"
#include "userspace/base/proc_stat.h"
#include "userspace/process/living_thread.h"
#include "userspace/process/mappings.h"
#include "userspace/python/interpreter.h"

/* Of the flags in /proc/PID/stat. */
#define FLAG_EXITING 0x00000004
#define FLAG_KERNEL_THREAD 0x00200000

/* ---- reading a process ---- */

/* "PID (COMM) STATE PPID PGRP SESSION TTY TPGID FLAGS ...": COMM may hold anything. */
static int parse_stat(pid_t pid, const char *text, struct rls_candidate *out)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	const char *words = rls_stat_word(text, 3);
	unsigned int flags;
	char state;
	int ppid;

	if (!open || !words || close < open ||
	    sscanf(words, "%c %d %*d %*d %*d %*d %u", &state, &ppid, &flags) != 3)
		return -ESRCH;
	if (flags & FLAG_KERNEL_THREAD)
		return -ESRCH;
	if ((state == 'Z' || state == 'X' || flags & FLAG_EXITING) && rls_living_thread(pid) == pid)
		return -ESRCH;
	out->ppid = ppid;
	snprintf(out->comm, sizeof(out->comm), "%.*s", (int)(close - open - 1), open + 1);
	return 0;
}

static bool maps_library_with_role(const struct rls_mappings *mappings,
				   const struct rls_roles *roles)
{
	struct rls_role_match match;

	for (size_t i = 0; i < mappings->count; i++) {
		const struct rls_mapping *mapping = &mappings->entries[i];

		if (mapping->executable && rls_mapping_is_file(mapping) &&
		    rls_roles_match(roles, mapping->path, &match) && match.role != RLS_ROLE_PYTHON)
			return true;
	}
	return false;
}

static int find_job(const struct rls_roles *roles, pid_t pid, bool *is_job)
{
	struct rls_mappings mappings;
	struct rls_python python;
	int r = rls_mappings_read(pid, &mappings);

	if (r)
		return r;
	*is_job = maps_library_with_role(&mappings, roles) &&
		  !rls_python_find(pid, &mappings, &python) && python.version[0];
	rls_mappings_release(&mappings);
	return 0;
}

static int read_candidate(unsigned int kinds, const struct rls_roles *roles, pid_t pid,
			  struct rls_candidate *out)
{
	_cleanup_free_ char *stat = NULL;
	int r = pid == getpid() ? -ESRCH : rls_process_read(pid, "stat", &stat, NULL);

	out->pid = pid;
	if (!r)
		r = parse_stat(pid, stat, out);
	if (!r && kinds & RLS_SELECT_NAME)
		r = rls_process_read(pid, "cmdline", &out->cmdline, &out->cmdline_bytes);
	if (!r && kinds & RLS_SELECT_CGROUP)
		r = rls_process_read(pid, "cgroup", &out->cgroup, NULL);
	if (!r && kinds & RLS_SELECT_CONTAINER)
		r = rls_process_container(pid, out->container);
	if (!r && kinds & RLS_SELECT_ALL)
		r = find_job(roles, pid, &out->is_job);
	return r;
}

static int read_kinds(unsigned int kinds, const struct rls_roles *roles, pid_t pid,
		      struct rls_candidate *out)
{
	struct rls_candidate candidate = {0};
	int r = read_candidate(kinds, roles, pid, &candidate);

	if (r)
		rls_candidate_clear(&candidate);
	else
		*out = candidate;
	return r;
}

int rls_candidate_read(const struct rls_selection *selection, const struct rls_roles *roles,
		       pid_t pid, struct rls_candidate *out)
{
	return read_kinds(selection->kinds, roles, pid, out);
}

void rls_candidate_clear(struct rls_candidate *candidate)
{
	free(candidate->cmdline);
	free(candidate->cgroup);
	*candidate = (struct rls_candidate){0};
}

/* ---- scanning ---- */

struct scan {
	const struct rls_selection *selection;
	const struct rls_roles *roles;
	int (*visit)(const struct rls_candidate *candidate, void *context);
	void *context;
};

static int scan_one(pid_t pid, void *context)
{
	const struct scan *scan = context;
	struct rls_candidate candidate;
	int r = rls_candidate_read(scan->selection, scan->roles, pid, &candidate);

	if (r)
		return r == -ENOMEM ? r : 0; /* it has ended, or may not be read */
	if (rls_selection_matches(scan->selection, &candidate))
		r = scan->visit(&candidate, scan->context);
	rls_candidate_clear(&candidate);
	return r;
}

int rls_scan(const struct rls_selection *selection, const struct rls_roles *roles,
	     int (*visit)(const struct rls_candidate *candidate, void *context), void *context)
{
	struct scan scan = {selection, roles, visit, context};

	return rls_each_process(scan_one, &scan);
}

/* ---- resolving ---- */

/* Where the cgroup v2 hierarchy is mounted; on hybrid hosts beside the old ones. */
static const char *cgroup_mount(void)
{
	static const char *const places[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	struct statfs info;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (!statfs(places[i], &info) && info.f_type == CGROUP2_SUPER_MAGIC)
			return places[i];
	}
	return NULL;
}

static int resolve_cgroup(struct rls_selector *selector)
{
	const char *mount = cgroup_mount(), *path = selector->text;
	_cleanup_free_ char *folder = NULL;
	struct stat info;
	char *own;

	if (!mount)
		return rls_error_r(-ENOENT,
				   "no cgroup v2 hierarchy is mounted below /sys/fs/cgroup");
	if (!strncmp(path, mount, strlen(mount)))
		path += strlen(mount);
	path += strspn(path, "/");
	if (asprintf(&folder, "%s/%s", mount, path) < 0) {
		folder = NULL;
		return -ENOMEM;
	}
	if (stat(folder, &info) || !S_ISDIR(info.st_mode))
		return rls_error_r(-ENOENT, "no cgroup %s (in %s)", selector->text, mount);
	if (asprintf(&own, "/%s", path) < 0)
		return -ENOMEM;
	for (size_t length = strlen(own); length > 1 && own[length - 1] == '/'; length--)
		own[length - 1] = '\0';
	free(selector->text);
	selector->text = own;
	return 0;
}

struct resolution {
	struct rls_selector *selector;
	char container[RLS_CONTAINER_BYTES], other[RLS_CONTAINER_BYTES];
};

static int hold_against(pid_t pid, void *context)
{
	struct resolution *resolution = context;
	struct rls_candidate candidate;
	int r = read_kinds(resolution->selector->kind, NULL, pid, &candidate);

	if (r)
		return r == -ENOMEM ? r : 0;
	if (rls_selector_matches(resolution->selector, &candidate)) {
		resolution->selector->matches++;
		if (!resolution->container[0])
			strcpy(resolution->container, candidate.container);
		else if (strcmp(resolution->container, candidate.container))
			strcpy(resolution->other, candidate.container);
	}
	rls_candidate_clear(&candidate);
	return 0;
}

static int scan_resolve(struct rls_selector *selector)
{
	struct resolution resolution = {.selector = selector};
	int r = selector->kind == RLS_SELECT_CGROUP ? resolve_cgroup(selector) : 0;
	char *whole;

	if (!r)
		r = rls_each_process(hold_against, &resolution);
	if (r)
		return r;
	if (selector->kind != RLS_SELECT_CONTAINER)
		return 0;
	if (!selector->matches)
		return rls_error_r(-ENOENT, "no process is in a container with id %s",
				   selector->text);
	if (resolution.other[0])
		return rls_error_r(-EEXIST, "container id %s is ambiguous: %s and %s begin with it",
				   selector->text, resolution.container, resolution.other);
	whole = strdup(resolution.container);
	if (!whole)
		return -ENOMEM;
	free(selector->text);
	selector->text = whole;
	return 0;
}

int rls_selection_resolve(struct rls_selection *selection)
{
	int r = 0;

	for (size_t i = 0; !r && i < selection->count; i++) {
		if (selection->selectors[i].kind != RLS_SELECT_ALL)
			r = scan_resolve(&selection->selectors[i]);
	}
	return r;
}
