#include "userspace/commands/options/select_options.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "userspace/base/log.h"
#include "userspace/discover/discover.h"
#include "userspace/record/targets/process_info.h"
#include "userspace/record/targets/scan.h"

enum key {
	KEY_PID = 'p',
	KEY_NAME = 'n',
	KEY_CGROUP = 512,
	KEY_CONTAINER,
	KEY_ALL,
};

static const struct argp_option pid_table[] = {
	{"pid", KEY_PID, "PID", 0, "A process, with its children", 0},
	{0},
};

static const struct argp_option selector_table[] = {
	{"name", KEY_NAME, "GLOB", 0,
	 "Processes by their name, that of their program or of their script", 0},
	{"cgroup", KEY_CGROUP, "PATH", 0, "Processes in a cgroup (v2), and below it", 0},
	{"container", KEY_CONTAINER, "ID", 0,
	 "Processes in a container, by the beginning of its id", 0},
	{"all", KEY_ALL, NULL, 0, "Every Python process with a known library", 0},
	{0},
};

static int add_pid(struct rls_select_options *options, const char *text)
{
	char *end;
	long pid = strtol(text, &end, 10);
	pid_t *grown;

	if (end == text || *end || pid <= 0 || pid > INT32_MAX) {
		rls_error("--pid takes a process id, not '%s'", text);
		return EINVAL;
	}
	grown = reallocarray(options->pids, options->pid_count + 1, sizeof(*grown));
	if (!grown)
		return ENOMEM;
	options->pids = grown;
	options->pids[options->pid_count++] = (pid_t)pid;
	return 0;
}

static int select_options_add(struct rls_select_options *options, enum rls_selector_kind kind,
			      const char *text)
{
	int r = rls_selection_add(&options->selection, kind, text);

	if (r == -EINVAL && kind == RLS_SELECT_CONTAINER)
		rls_error("--container takes up to 64 hex digits, not '%s'", text);
	else if (r == -EINVAL)
		rls_error("%s takes a text", kind == RLS_SELECT_NAME ? "--name" : "--cgroup");
	return -r;
}

static error_t parse_pid(int key, char *argument, struct argp_state *state)
{
	struct rls_select_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = options;
		return 0;
	case KEY_PID:
		return add_pid(options, argument);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_selector(int key, char *argument, struct argp_state *state)
{
	struct rls_select_options *options = state->input;

	switch (key) {
	case KEY_NAME:
		return select_options_add(options, RLS_SELECT_NAME, argument);
	case KEY_CGROUP:
		return select_options_add(options, RLS_SELECT_CGROUP, argument);
	case KEY_CONTAINER:
		return select_options_add(options, RLS_SELECT_CONTAINER, argument);
	case KEY_ALL:
		return select_options_add(options, RLS_SELECT_ALL, NULL);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp rls_selectors_argp = {.options = selector_table, .parser = parse_selector};

static const struct argp_child children[] = {{&rls_selectors_argp, 0, NULL, 0}, {0}};

const struct argp rls_select_argp = {
	.options = pid_table, .parser = parse_pid, .children = children};

void rls_select_options_clear(struct rls_select_options *options)
{
	free(options->pids);
	rls_selection_clear(&options->selection);
	*options = (struct rls_select_options){0};
}

/* A selector that selects nothing yet is worth a word, unless it is all there is. */
static int judge_matches(const struct rls_select_options *options)
{
	const struct rls_selection *selection = &options->selection;
	bool any = options->pid_count || selection->kinds & RLS_SELECT_ALL;

	for (size_t i = 0; i < selection->count; i++)
		any |= selection->selectors[i].matches > 0;
	for (size_t i = 0; i < selection->count; i++) {
		const struct rls_selector *selector = &selection->selectors[i];
		void (*say)(const char *format, ...) = any ? rls_warning : rls_error;

		if (selector->matches || selector->kind == RLS_SELECT_ALL)
			continue;
		if (selector->kind == RLS_SELECT_NAME)
			say("no process is named like '%s'", selector->text);
		else
			say("no process is in cgroup %s", selector->text);
	}
	return any || !selection->count ? 0 : -ENOENT;
}

int rls_select_options_resolve(struct rls_select_options *options)
{
	int r;

	for (size_t i = 0; i < options->pid_count; i++) {
		r = rls_process_exists(options->pids[i]);
		if (r == -ESRCH)
			return rls_error_r(r, "no process with pid %d", options->pids[i]);
		if (r)
			return rls_discover_explain(options->pids[i], r);
	}
	r = rls_selection_resolve(&options->selection);
	return r ? r : judge_matches(options);
}
