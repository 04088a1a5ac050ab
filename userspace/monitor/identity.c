#include "userspace/monitor/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "userspace/record/targets/cgroup.h"

#define VARIABLE "RLSCOPE_JOB="

static void copy_plain(const char *text, size_t length, char *out, size_t out_bytes)
{
	if (length >= out_bytes) {
		length = out_bytes - 1;
		while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
			length--; /* not in the middle of a character */
	}
	for (size_t i = 0; i < length; i++)
		out[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i];
	out[length] = '\0';
}

void rls_job_of_environment(const char *text, size_t length, char out[RLS_JOB_NAME_BYTES])
{
	size_t at = 0;

	out[0] = '\0';
	while (at < length) {
		size_t word = strnlen(text + at, length - at);

		if (word > strlen(VARIABLE) && !memcmp(text + at, VARIABLE, strlen(VARIABLE))) {
			copy_plain(text + at + strlen(VARIABLE), word - strlen(VARIABLE), out,
				   RLS_JOB_NAME_BYTES);
			return;
		}
		at += word + 1;
	}
}

void rls_cgroup_path(const char *text, char out[RLS_JOB_CGROUP_BYTES])
{
	size_t length;
	const char *path = rls_cgroup_find(text, "name=systemd", &length);

	if (!path || length < 2 || *path != '/')
		path = rls_cgroup_find(text, "", &length);
	out[0] = '\0';
	if (path)
		copy_plain(path, length, out, RLS_JOB_CGROUP_BYTES);
}

static int ends_with(const char *text, size_t length, const char *end)
{
	return length > strlen(end) && !memcmp(text + length - strlen(end), end, strlen(end));
}

void rls_unit_of_cgroup(const char *path, char out[RLS_JOB_NAME_BYTES])
{
	out[0] = '\0';
	while (*path) {
		size_t length = strcspn(path, "/");

		if (ends_with(path, length, ".service") || ends_with(path, length, ".scope"))
			copy_plain(path, length, out, RLS_JOB_NAME_BYTES);
		path += length;
		path += *path != '\0';
	}
}

void rls_job_name(const char *asked, struct rls_job_identity *identity)
{
	const char *name = identity->command[0] ? identity->command : "job";

	/* The root is where everything is that has no cgroup of its own. */
	if (identity->cgroup[0] && strcmp(identity->cgroup, "/"))
		name = identity->cgroup;
	if (identity->unit[0])
		name = identity->unit;
	if (asked[0])
		name = asked;
	copy_plain(name, strlen(name), identity->name, sizeof(identity->name));
	if (!asked[0] && identity->container[0])
		snprintf(identity->name, sizeof(identity->name), "%.*s", RLS_JOB_CONTAINER_DIGITS,
			 identity->container);
}

void rls_job_identity_read(pid_t pid, struct rls_job_identity *out)
{
	_cleanup_free_ char *environment = NULL, *cgroup = NULL, *command = NULL;
	char asked[RLS_JOB_NAME_BYTES] = "";
	struct rls_job_identity identity = {0};
	size_t length;

	if (!rls_process_read(pid, "environ", &environment, &length))
		rls_job_of_environment(environment, length, asked);
	if (!rls_process_read(pid, "cgroup", &cgroup, NULL)) {
		rls_cgroup_path(cgroup, identity.cgroup);
		rls_unit_of_cgroup(identity.cgroup, identity.unit);
	}
	if (rls_process_container(pid, identity.container))
		identity.container[0] = '\0';
	if (!rls_process_read(pid, "comm", &command, NULL))
		copy_plain(command, strcspn(command, "\n"), identity.command,
			   sizeof(identity.command));
	rls_job_name(asked, &identity);
	*out = identity;
}
