/* Totals: what the kernel side has summed up. Only where options.totals_mode was set. */
#ifndef RLS_KERNEL_TOTALS_H
#define RLS_KERNEL_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire/maps.h"
#include "bpf/wire/totals.h"
#include "userspace/attach/kernel/kernel.h"

/* Adds the time of every thread up to now, of those that wait as well. */
int rls_kernel_flush_totals(struct rls_kernel *kernel);
/* Every cell, once; others may be added meanwhile. Until visit returns other than 0, which is
 * returned; -errno. */
int rls_kernel_read_cells(struct rls_kernel *kernel,
			  int (*visit)(void *context, const struct rls_wire_cell_key *key,
				       const struct rls_wire_cell *cell),
			  void *context);
/* Of a process that has ended: nothing is added any more. */
int rls_kernel_drop_cell(struct rls_kernel *kernel, const struct rls_wire_cell_key *key);
/* The same of what its threads were in; those that end side by side may add for a moment yet. */
void rls_kernel_drop_scope(struct rls_kernel *kernel, pid_t pid);
/* What hits have cost so far, by RLS_BURDEN_OF their thread: RLS_BURDENS sums that go on changing. */
const volatile uint64_t *rls_kernel_burden(const struct rls_kernel *kernel);
/* Calls of each site so far: ids 0..count - 1, RLS_SITES_COUNTED at most. */
int rls_kernel_site_calls(const struct rls_kernel *kernel, struct rls_wire_calls *calls,
			  size_t count);

#endif
