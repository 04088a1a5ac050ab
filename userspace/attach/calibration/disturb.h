/* Disturbance: work that changes the caches between two probe hits, as a program's own work does.
 *
 * A loop around a probe finds everything warm: the kernel's code and data, the translations
 * of their addresses, the branches' histories. A training job's own work evicts most of that
 * between two hits, and is slowed by what the hit evicts in turn. This imitates such work: it
 * jumps between 256 functions with unpredictable branches, and loads and stores all over a few
 * megabytes.
 */
#ifndef RLS_DISTURB_H
#define RLS_DISTURB_H

#include <stddef.h>
#include <stdint.h>

struct rls_disturb {
	uint8_t *bytes; /* where it loads and stores */
	uint64_t mask; /* of its size, a power of two */
	uint64_t seed; /* of what it does next */
};

/* size_bytes: a power of two >= 4096. 0 or -ENOMEM. */
int rls_disturb_init(struct rls_disturb *disturb, size_t size_bytes);
void rls_disturb_clear(struct rls_disturb *disturb);

/* So many steps, of some 50 ns each. */
void rls_disturb_run(struct rls_disturb *disturb, unsigned int steps);

#endif
