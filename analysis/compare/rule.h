/* Rules on comparisons, for use in CI. */
#ifndef RLS_COMPARE_RULE_H
#define RLS_COMPARE_RULE_H

#include "analysis/compare/comparison.h"

/* backpropagation.total > +5%      the operation, dot, category or total; the name may hold
 * *.simulator < -10%               dots and spaces; * is every operation */
struct rls_compare_rule {
	const char *text; /* borrowed */
	char *operation; /* NULL: all */
	int category;
	bool above; /* > */
	double change; /* 0.05 */
};

/* 0 and *out, which the caller frees; -EINVAL with a sentence in message; -ENOMEM. */
int rls_compare_rule_parse(const char *text, struct rls_compare_rule *out, char *message,
			   size_t message_bytes);
void rls_compare_rule_free(struct rls_compare_rule *rule);

/* The row that the rule is broken by: beyond its limit, and significant;
 * what is measured is the change that is judged. NULL: none. *known says
 * whether any judged row is what the rule speaks of. */
const struct rls_compare_row *rls_compare_rule_check(const struct rls_compare_rule *rule,
						     const struct rls_comparison *comparison,
						     bool *known);

#endif
