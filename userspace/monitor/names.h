/* Names: the texts behind the kernel side's numbers for operations and phases.
 *
 * A number stands for one name in one process and is never reused. Targets can invent names, so at
 * most RLS_NAMES_MAX are kept at a time; a name beyond has no text. One thread. */
#ifndef RLS_MONITOR_NAMES_H
#define RLS_MONITOR_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/base/index_map.h"
#include "bpf/wire/record.h"
#include "bpf/wire/totals.h"

#define RLS_NAMES_MAX 100000
#define RLS_NAMES_OTHER "other"

struct rls_names {
	struct rls_index_map map; /* number → struct name of names.c */
	struct rls_name_entry *all;
};

void rls_names_clear(struct rls_names *names);

/* 0 or -ENOMEM. */
int rls_names_add(struct rls_names *names, const struct rls_wire_name *name);

/* "" for 0, "(unreadable)" for RLS_TOTALS_UNREADABLE, RLS_NAMES_OTHER for RLS_TOTALS_OTHER; NULL: not
 * known. Still in use: kept. */
const char *rls_names_text(struct rls_names *names, uint32_t number);

/* Forgets the names of processes that is_over says are, unless they have been asked for since the
 * last time: others go on in what they were forked in. */
void rls_names_age(struct rls_names *names, bool (*is_over)(void *context, uint32_t pid),
		   void *context);

#endif
