#include "userspace/record/calibrate/effective_samples.h"

void rls_spells_begin(struct rls_spells *spells, uint64_t start_ns)
{
	*spells = (struct rls_spells){ .start_ns = start_ns };
}

static void add(struct rls_spells *spells, uint64_t spell, double ns)
{
	if (spell != spells->spell) {
		spells->sum_ns += spells->in_spell_ns;
		spells->squares += spells->in_spell_ns * spells->in_spell_ns;
		spells->in_spell_ns = 0;
		spells->spell = spell;
	}
	spells->in_spell_ns += ns;
}

static void close_at(struct rls_spells *spells, uint64_t time_ns)
{
	uint64_t from_ns = spells->opened_ns - spells->start_ns, to_ns = time_ns - spells->start_ns;

	while (from_ns < to_ns) {
		uint64_t spell = from_ns / RLS_SPELL_NS, end_ns = (spell + 1) * RLS_SPELL_NS;

		if (end_ns > to_ns)
			end_ns = to_ns;
		add(spells, spell, (double)(end_ns - from_ns));
		from_ns = end_ns;
	}
}

void rls_spells_edge(struct rls_spells *spells, bool open, uint64_t time_ns)
{
	if (spells->open && !open)
		close_at(spells, time_ns);
	if (!spells->open && open)
		spells->opened_ns = time_ns;
	spells->open = open;
}

double rls_spells_count(const struct rls_spells *spells)
{
	double sum_ns = spells->sum_ns + spells->in_spell_ns;
	double squares = spells->squares + spells->in_spell_ns * spells->in_spell_ns;

	return squares > 0 ? sum_ns * sum_ns / squares : 1;
}
