/* Delta calibration (RL-Scope, MLSys 2021, appendix C): a command is run with and without
 * probes, turn about, and what it takes longer is what its hits cost. */
#ifndef RLS_DELTA_H
#define RLS_DELTA_H

#include <stddef.h>
#include <stdint.h>

#define RLS_DELTA_ROUNDS_MAX 100

struct rls_delta {
	double plain_ns, probed_ns;     /* means over the rounds */
	double hits, estimated_ns;      /* of one run, by the machine's calibration alone */
	double factor, error;           /* cost / estimate, half width of its 95 % interval */
};

/* One round: how long it took without and with probes, and what the hits were said to cost. */
struct rls_delta_round {
	uint64_t plain_ns, probed_ns;
	double estimated_ns, hits;
};

/* Runs the command 2 * rounds times, its stdout on our stderr. It must end by itself with
 * status 0. 0 or -errno, and has said why. */
int rls_delta_measure(char **command, unsigned int rounds, struct rls_delta *out);

/* Pure: from rounds to figures. count > 1. -ERANGE when the hits were said to cost nothing. */
int rls_delta_conclude(const struct rls_delta_round *rounds, size_t count, struct rls_delta *out);

#endif
