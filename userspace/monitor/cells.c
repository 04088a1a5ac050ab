#include "userspace/monitor/cells.h"
#include "bpf/wire/totals.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/attach/kernel/kernel_totals.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/* Sweeps that a cell may be of an unknown process, or of an unknown name. */
#define PATIENCE 3
#define IDLE_SWEEPS 6

struct rls_cells_entry {
	struct rls_cells_entry *next;
	struct rls_wire_cell_key key;
	struct rls_wire_cell last;
	struct rls_ledger_scope *scope; /* NULL: not placed yet */
	unsigned int waited, idle; /* sweeps */
};

struct sweep {
	struct rls_cells *cells;
	const struct rls_jobs *jobs;
	struct rls_names *names;
};

void rls_cells_clear(struct rls_cells *cells)
{
	while (cells->all) {
		struct rls_cells_entry *entry = cells->all;

		cells->all = entry->next;
		free(entry);
	}
	rls_index_map_free(&cells->map);
	*cells = (struct rls_cells){0};
}

static uint64_t first_key(const struct rls_wire_cell_key *key)
{
	return (uint64_t)key->pid << 32 | key->operation;
}

static uint64_t second_key(const struct rls_wire_cell_key *key)
{
	return (uint64_t)key->phase << 32 | key->category;
}

static struct rls_cells_entry *find_entry(struct rls_cells *cells,
					  const struct rls_wire_cell_key *key)
{
	struct rls_cells_entry *entry =
		rls_index_map_get(&cells->map, first_key(key), second_key(key));

	if (entry)
		return entry;
	entry = calloc(1, sizeof(*entry));
	if (!entry || rls_index_map_put(&cells->map, first_key(key), second_key(key), entry)) {
		free(entry);
		return NULL;
	}
	entry->key = *key;
	entry->next = cells->all;
	cells->all = entry;
	return entry;
}

/* Which scope the cell belongs to, if that is known by now. */
static int cells_place(const struct sweep *sweep, struct rls_cells_entry *entry,
		       const struct rls_member *member)
{
	const char *operation = rls_names_text(sweep->names, entry->key.operation);
	const char *phase = rls_names_text(sweep->names, entry->key.phase);

	if (entry->scope)
		return 0;
	if ((!operation || !phase) && entry->waited++ < PATIENCE)
		return 0;
	return rls_ledger_scope(&member->job->ledger, operation, phase, &entry->scope);
}

static struct rls_wire_cell cells_growth(const struct rls_wire_cell *before,
					 const struct rls_wire_cell *now)
{
	struct rls_wire_cell more = {
		.ns = now->ns - before->ns,
		.off_cpu_ns = now->off_cpu_ns - before->off_cpu_ns,
		.hits = now->hits - before->hits,
		.cost_ns = now->cost_ns - before->cost_ns,
	};

	for (int i = 0; i < RLS_TOTALS_CATEGORIES; i++)
		more.to[i] = now->to[i] - before->to[i];
	return more;
}

static int visit_cell(void *context, const struct rls_wire_cell_key *key,
		      const struct rls_wire_cell *cell)
{
	const struct sweep *sweep = context;
	const struct rls_member *member = rls_jobs_find(sweep->jobs, key->pid);
	struct rls_cells_entry *entry = find_entry(sweep->cells, key);
	struct rls_wire_cell more;
	int r;

	if (!entry)
		return -ENOMEM;
	if (!member) {
		entry->waited++;
		return 0;
	}
	r = cells_place(sweep, entry, member);
	if (r || !entry->scope)
		return r;
	more = cells_growth(&entry->last, cell);
	entry->last = *cell;
	entry->idle = more.ns || more.hits ? 0 : entry->idle + 1;
	rls_ledger_add(&member->job->ledger, entry->scope, key->category, &more);
	return 0;
}

int rls_cells_sweep(struct rls_cells *cells, struct rls_kernel *kernel, const struct rls_jobs *jobs,
		    struct rls_names *names)
{
	struct sweep sweep = {cells, jobs, names};

	return rls_kernel_read_cells(kernel, visit_cell, &sweep);
}

static bool is_over(const struct rls_cells *cells, struct rls_kernel *kernel,
		    const struct rls_jobs *jobs, const struct rls_cells_entry *entry,
		    uint64_t ended_ns)
{
	const struct rls_member *member = rls_jobs_find(jobs, entry->key.pid);

	if (!member) /* lost, or not reported yet */
		return entry->waited > PATIENCE &&
		       !rls_kernel_is_tracked(kernel, (pid_t)entry->key.pid);
	if (member->ended_ns && member->ended_ns < ended_ns)
		return true;
	return cells->map.count > RLS_CELLS_CROWDED && entry->idle > IDLE_SWEEPS;
}

void rls_cells_forget(struct rls_cells *cells, struct rls_kernel *kernel,
		      const struct rls_jobs *jobs, uint64_t ended_ns)
{
	struct rls_cells_entry **link = &cells->all;

	while (*link) {
		struct rls_cells_entry *entry = *link;

		if (!is_over(cells, kernel, jobs, entry, ended_ns)) {
			link = &entry->next;
			continue;
		}
		cells->unplaced += !entry->scope;
		rls_kernel_drop_cell(kernel, &entry->key);
		*link = entry->next;
		rls_index_map_remove(&cells->map, first_key(&entry->key), second_key(&entry->key));
		free(entry);
	}
}
