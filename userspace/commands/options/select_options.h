/* Options that say which processes to record: parsed into a struct, by argp. */
#ifndef RLS_SELECT_OPTIONS_H
#define RLS_SELECT_OPTIONS_H

#include <argp.h>
#include <stddef.h>
#include <sys/types.h>

#include "userspace/record/targets/selection.h"

struct rls_select_options {
	pid_t *pids;
	size_t pid_count;
	struct rls_selection selection;
};

/* To be a child of a command's own argp; its input is a struct rls_select_options. A bad
 * argument is said on stderr and ends parsing with EINVAL. */
extern const struct argp rls_select_argp;
/* The same without --pid. */
extern const struct argp rls_selectors_argp;

void rls_select_options_clear(struct rls_select_options *options);

/* Makes the selection exact (record/targets/scan.h). Each pid must exist, and something be selected
 * now unless --all waits for it. 0 or -errno, said on stderr. */
int rls_select_options_resolve(struct rls_select_options *options);

#endif
