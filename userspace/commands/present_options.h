/* Options that say where the monitor's figures are shown: parsed into a struct, by argp. */
#ifndef RLS_PRESENT_OPTIONS_H
#define RLS_PRESENT_OPTIONS_H

#include <argp.h>

#include "userspace/metrics/monitor_config.h"

/* To be a child of a command's own argp; its input is a struct rls_monitor_config, zeroed. A bad
 * argument is said on stderr and ends parsing with EINVAL. */
extern const struct argp rls_present_argp;

#endif
