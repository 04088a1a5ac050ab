/* What the kernel side sums up in totals_mode (bpf/totals.bpf.h). */
#include <errno.h>
#include <stdlib.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "analysis/base/cleanup.h"
#include "userspace/attach/kernel/kernel_state.h"
#include "userspace/attach/kernel/kernel_totals.h"

#define CELLS_AT_ONCE 1024

int rls_kernel_open_scope(struct rls_kernel *kernel, uint32_t pid)
{
	const struct rls_wire_scope scope = {.since_ns = rls_monotonic_ns()};
	int r = bpf_map__update_elem(kernel->skeleton->maps.scopes, &pid, sizeof(pid), &scope,
				     sizeof(scope), BPF_NOEXIST);

	return r == -EEXIST ? 0 : r;
}

int rls_kernel_flush_totals(struct rls_kernel *kernel)
{
	return rls_kernel_iterate(kernel->blind_flush ? kernel->skeleton->progs.flush_totals_blind
						      : kernel->skeleton->progs.flush_totals);
}

int rls_kernel_read_cells(struct rls_kernel *kernel,
			  int (*visit)(void *context, const struct rls_wire_cell_key *key,
				       const struct rls_wire_cell *cell),
			  void *context)
{
	_cleanup_free_ struct rls_wire_cell_key *keys = calloc(CELLS_AT_ONCE, sizeof(*keys));
	_cleanup_free_ struct rls_wire_cell *cells = calloc(CELLS_AT_ONCE, sizeof(*cells));
	int fd = bpf_map__fd(kernel->skeleton->maps.cells), end = 0;
	uint32_t position = 0;
	bool first = true;

	if (!keys || !cells)
		return -ENOMEM;
	while (!end) {
		uint32_t count = CELLS_AT_ONCE;

		end = bpf_map_lookup_batch(fd, first ? NULL : &position, &position, keys, cells,
					   &count, NULL);
		if (end && end != -ENOENT)
			return end;
		first = false;
		for (uint32_t i = 0; i < count; i++) {
			int r = visit(context, &keys[i], &cells[i]);

			if (r)
				return r;
		}
	}
	return 0;
}

int rls_kernel_drop_cell(struct rls_kernel *kernel, const struct rls_wire_cell_key *key)
{
	return bpf_map__delete_elem(kernel->skeleton->maps.cells, key, sizeof(*key), 0);
}

void rls_kernel_drop_scope(struct rls_kernel *kernel, pid_t pid)
{
	uint32_t key = (uint32_t)pid;

	bpf_map__delete_elem(kernel->skeleton->maps.scopes, &key, sizeof(key), 0);
}

const volatile uint64_t *rls_kernel_burden(const struct rls_kernel *kernel)
{
	return (const volatile uint64_t *)kernel->skeleton->bss->burden;
}

int rls_kernel_site_calls(const struct rls_kernel *kernel, struct rls_wire_calls *calls,
			  size_t count)
{
	return rls_kernel_sum_sites(kernel->skeleton->maps.site_calls,
				    sizeof(*calls) / sizeof(uint64_t), (uint64_t *)calls, count);
}
