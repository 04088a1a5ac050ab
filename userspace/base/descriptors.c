#include "userspace/base/descriptors.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define OTHER_DESCRIPTORS 200
#define ENOTSUPP 524 /* the kernel's own: no header of user space has it */

static size_t needed = OTHER_DESCRIPTORS;

void rls_descriptors_allow(size_t more)
{
	struct rlimit limit, wanted;

	needed += more;
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= needed)
		return;
	wanted = (struct rlimit){needed, limit.rlim_max > needed ? limit.rlim_max : needed};
	if (!setrlimit(RLIMIT_NOFILE, &wanted))
		return;
	limit.rlim_cur = limit.rlim_max; /* the most there is without privilege */
	(void)!setrlimit(RLIMIT_NOFILE, &limit);
}

bool rls_descriptors_suffice(size_t count)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= count;
}

static const char *too_many_open_files(void)
{
	static _Thread_local char text[160];
	struct rlimit limit = {0};
	uintmax_t count = needed;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return strerror(EMFILE);
	if (limit.rlim_cur >= count)
		count = 2 * (uintmax_t)limit.rlim_cur;
	snprintf(text, sizeof(text),
		 "too many open files: %ju needed, limit %ju; raise it with `ulimit -n %ju`", count,
		 (uintmax_t)limit.rlim_cur, count);
	return text;
}

const char *rls_reason(int error)
{
	switch (abs(error)) {
	case EMFILE:
		return too_many_open_files();
	case ENFILE:
		return "too many open files on this host (/proc/sys/fs/file-max)";
	case ENOMEM:
		return "not enough memory, on this host or for this process's control group";
	case ESTALE:
		return "it was copied up in its overlay file system since, and what is mapped is "
		       "out of reach";
	case ENOTSUPP:
		return "the kernel does not support this";
	default:
		return strerror(abs(error));
	}
}

bool rls_reason_is_ours(int error)
{
	switch (abs(error)) {
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case EPERM:
	case EACCES:
		return true;
	default:
		return false;
	}
}

bool rls_reason_is_end(int error)
{
	return abs(error) == ENOENT || abs(error) == ESRCH;
}
