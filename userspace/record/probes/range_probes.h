/* Where nobody has ranges of their own, PyTorch's are heard only as far as need be.
 *
 *     all       │ that they begin │ now and then that they begin        somebody's │ all
 *     ──────────┼─────────────────┼──────────▁▁▁▁▁▁▁▔▁▁▁▁▁▁▁▁▁▁▔▁▁▁▁▁▁▔▔▔▔▔▔▔▔▔▔▔▔┼──────▶
 *     0         2                 10 s                                             for good
 *
 * Each step of PyTorch's optimizers is in ranges of PyTorch's making, which are no operations: two that
 * begin and two that end a step, each hit 6 to 8 us amid cold code, 2 % of the update of a small PPO
 * (scripts/bench/HISTORY.md). Their names tell whose they are, so somebody's are only heard where all are.
 * That they end need not be heard until somebody's begins: that first one is lost, as its end may not have
 * been heard. And where steps are many a second, that they begin is listened for a tenth of the
 * time, at random instants: of somebody's that begin n times a second some 10/n seconds are lost, once.
 */
#ifndef RLS_RANGE_PROBES_H
#define RLS_RANGE_PROBES_H

#include <stdbool.h>
#include <stdint.h>

struct rls_kernel;

/* All zero to begin with. */
struct rls_range_hearing {
	uint64_t since_ns;      /* the first tick's time */
	bool ends_unheard, begins_unheard;
	bool settled;           /* somebody has ranges: all is heard */
	uint64_t due_ns;        /* the next time to begin, or to end, listening for those that begin */
	uint64_t from_ns, own;  /* since when it is done, and how many of PyTorch's there were then */
	uint64_t dozed_ns;      /* when it was stopped first; 0: never */
	uint64_t random;
};

/* At any pace. budget_percent: what is to be held. */
void rls_range_hearing_tick(struct rls_range_hearing *hearing, struct rls_kernel *kernel,
			    uint64_t time_ns, double budget_percent);

/* Somebody new has come, who may have ranges: listens as at first. */
void rls_range_hearing_wake(struct rls_range_hearing *hearing, struct rls_kernel *kernel,
			    uint64_t time_ns);

#endif
