/* Options of the commands that watch every job on the host (monitor, top), by argp. */
#ifndef RLS_WATCH_OPTIONS_H
#define RLS_WATCH_OPTIONS_H

#include <argp.h>
#include <stdbool.h>

#include "userspace/commands/options/record_options.h"
#include "userspace/commands/options/select_options.h"
#include "userspace/monitor/monitor.h"

struct rls_watch_options {
	struct rls_record_options record;
	struct rls_select_options select;
	bool help; /* it was asked for, and has been printed */
};

/* To be the only child of a command's own argp; its input is a struct rls_watch_options. A bad
 * argument is said on stderr and ends parsing with EINVAL. */
extern const struct argp rls_watch_argp;

/* Defaults: rls_record_options_init's, and the budget of who watches always. 0 or -errno. */
int rls_watch_options_init(struct rls_watch_options *options);
void rls_watch_options_clear(struct rls_watch_options *options);

/* After parsing and rls_record_options_finish: a monitor of everything there is, unless less was
 * asked for. *out is the caller's and borrows from options. 0 or -errno, said on stderr. */
int rls_watch_options_open(struct rls_watch_options *options, struct rls_monitor **out);

#endif
