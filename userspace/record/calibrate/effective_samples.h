/* Spells: through how many ups and downs of the machine a recording went. Pure.
 *
 * What hits cost goes up and down from second to second (differences.h), so how well it is known of a
 * recording depends on how long that was, or, with a budget, over how much time its windows lie. Time is
 * divided into spells; where t_i was traced of each, they tell as much as
 *
 *     (sum of t_i)^2 / sum of t_i^2
 *
 * equal ones (Kish, Survey Sampling, 1965).
 */
#ifndef RLS_EFFECTIVE_SAMPLES_H
#define RLS_EFFECTIVE_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

/* Within so long all may be one up or down: recordings of that length are off by as much as single seconds
 * are (scripts/bench/README.md, Accuracy). */
#define RLS_SPELL_NS 4000000000ULL

/* Zeroed: before the recording. */
struct rls_spells {
	uint64_t start_ns, opened_ns;
	bool open;
	uint64_t spell;                 /* the latest that had some */
	double in_spell_ns;             /* of it, so far */
	double sum_ns, squares;         /* of those before it */
};

void rls_spells_begin(struct rls_spells *spells, uint64_t start_ns);

/* From there on all sites are probed, or no longer. Instants never go back; the same again changes nothing. */
void rls_spells_edge(struct rls_spells *spells, bool open, uint64_t time_ns);

/* At least 1. */
double rls_spells_count(const struct rls_spells *spells);

#endif
