/* Token bucket: when probes are on. Pure: from the time and the costs it decides what to do.
 *
 *     credit  ▲ share × span
 *             │╲ the first stretch
 *             │ ╲▁▁▁▁▁╲▁▁▁▁▁▁▁▁▁▁▁╲▁▁▁▁▁▁▁▁▁▁▁▁▁▁╱╲▁▁▁▁▁╱╲
 *           0 ┼─────────────────────────────────────────────▶ time
 *                   a window, at a random instant   ▲ after a span credit grows
 *
 * The credit for the first span (10 s) is there from the start, so a short recording is traced
 * from end to end. After that span, credit grows with time at the budget's share. Hits are charged
 * by their cost to the thread that is burdened most. When most of the credit is used, tracing
 * continues in windows. They begin at random instants: half of a mean gap and an exponential part
 * apart, so that a loop in the target cannot keep step with them. Enabling and disabling probes is
 * charged too. A debt is never more than what a span earns. The cost of enabling all probes, and
 * of disabling them later, is a loan that is paid back within a minute.
 */
#ifndef RLS_TOKEN_BUCKET_H
#define RLS_TOKEN_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#define RLS_BUDGET_SPAN_NS 10000000000ULL
#define RLS_BUDGET_LOAN_NS 60000000000ULL

enum rls_token_bucket_step {
	RLS_BUDGET_STAY,
	RLS_BUDGET_OPEN, /* a window is due */
	RLS_BUDGET_CLOSE,
};

struct rls_token_bucket {
	double share; /* of the time, 0..1 */
	double credit_ns;
	uint64_t start_ns;
	uint64_t at_ns; /* credit has grown up to here */
	bool open;
	bool first_stretch_over; /* the first traced stretch is over */
	uint64_t edge_ns; /* the last one */
	uint64_t due_ns; /* the next one */
	double spent_ns; /* since the last edge */
	double open_rate; /* cost per time, lately */
	double closed_rate;
	double switch_ns; /* what a window's two edges cost, lately */
	double loan_ns; /* still to be paid back */
	double repaid_share; /* of the time, while there is a loan */
	uint64_t random;
};

/* Open, with full credit. seed: any number. */
void rls_token_bucket_start(struct rls_token_bucket *budget, double share, uint64_t time_ns,
			    uint64_t seed);

/* That much has been, or will be, spent besides, once: paid back evenly until RLS_BUDGET_LOAN_NS after
 * the start (or, if later, for as long), or for longer, as it takes no more than three quarters of what is earned. The first span's credit
 * stays, so that a short recording is traced from end to end all the same. */
void rls_token_bucket_lend(struct rls_token_bucket *budget, double cost_ns);

/* Time has come to time_ns, and hits have cost that much since the last call. */
enum rls_token_bucket_step rls_token_bucket_tick(struct rls_token_bucket *budget, uint64_t time_ns,
						 double cost_ns);

/* Hits before the last edge have cost that much, as is known only now. */
void rls_token_bucket_charge_late(struct rls_token_bucket *budget, double cost_ns);

/* In closed time, which goes on: expensive sites were disabled at time_ns, which delayed the
 * target for about cost_ns. Nothing is learnt of what they cost until then. */
void rls_token_bucket_calmed(struct rls_token_bucket *budget, uint64_t time_ns, double cost_ns);

/* The window was opened or closed at time_ns, which held the target up for about cost_ns; 0:
 * that was out of the ordinary. */
void rls_token_bucket_switched(struct rls_token_bucket *budget, bool open, uint64_t time_ns,
			       double cost_ns);

#endif
