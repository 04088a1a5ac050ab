/* The report's cross-check in a few lines, for --verify. */
#ifndef RLS_COMMANDS_CROSS_CHECK_H
#define RLS_COMMANDS_CROSS_CHECK_H

#include <stdio.h>

#include "analysis/report/report.h"

/* One line for each category of all processes together: its share of the running time as traced and as sampled (with
 * the half width of its 95 % interval), what of that is code of another category (unseen), and what the probes cost.
 * 0 or -errno. */
int rls_cross_check_write(const struct rls_report *report, FILE *out);

#endif
