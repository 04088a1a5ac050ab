#include "analysis/compare/rule.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"

static int parse_category(const char *name, size_t length, int *out)
{
	if (length == 5 && !strncmp(name, "total", 5)) {
		*out = RLS_COMPARE_TOTAL;
		return 0;
	}
	for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
		if (strlen(rls_category_name(i)) == length &&
		    !strncmp(rls_category_name(i), name, length)) {
			*out = i;
			return 0;
		}
	}
	return -EINVAL;
}

/* "+5%" and nothing after it. */
static int parse_change(const char *text, double *out)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || !isfinite(value))
		return -EINVAL;
	while (isspace((unsigned char)*end))
		end++;
	if (*end++ != '%')
		return -EINVAL;
	while (isspace((unsigned char)*end))
		end++;
	if (*end)
		return -EINVAL;
	*out = value / 100;
	return 0;
}

static size_t trimmed(const char *text, size_t length)
{
	while (length && isspace((unsigned char)text[length - 1]))
		length--;
	return length;
}

static int rule_refuse(char *message, size_t message_bytes, const char *text, const char *why)
{
	snprintf(message, message_bytes,
		 "'%s' is no condition: %s, as in 'backpropagation.total > +5%%'", text, why);
	return -EINVAL;
}

int rls_compare_rule_parse(const char *text, struct rls_compare_rule *out, char *message,
			   size_t message_bytes)
{
	struct rls_compare_rule rule = {.text = text};
	const char *start = text + strspn(text, " \t");
	const char *sign = strpbrk(start, "<>"), *dot;
	size_t length;

	/* The name may hold these signs too: the last one counts. */
	for (const char *next = sign; next; next = strpbrk(next + 1, "<>"))
		sign = next;
	if (!sign)
		return rule_refuse(message, message_bytes, text, "it needs > or <");
	length = trimmed(start, (size_t)(sign - start));
	dot = memrchr(start, '.', length);
	if (!dot || parse_category(dot + 1, length - (size_t)(dot + 1 - start), &rule.category))
		return rule_refuse(message, message_bytes, text,
				   "before the sign stands OPERATION.CATEGORY or OPERATION.total");
	rule.above = *sign == '>';
	if (parse_change(sign + 1, &rule.change))
		return rule_refuse(message, message_bytes, text,
				   "after the sign stands a percentage");
	if ((size_t)(dot - start) != 1 || *start != '*') {
		rule.operation = strndup(start, (size_t)(dot - start));
		if (!rule.operation)
			return -ENOMEM;
	}
	*out = rule;
	return 0;
}

void rls_compare_rule_free(struct rls_compare_rule *rule)
{
	free(rule->operation);
	*rule = (struct rls_compare_rule){0};
}

const struct rls_compare_row *rls_compare_rule_check(const struct rls_compare_rule *rule,
						     const struct rls_comparison *comparison,
						     bool *known)
{
	const struct rls_compare_row *broken = NULL;

	*known = false;
	for (size_t i = 0; i < comparison->count; i++) {
		const struct rls_compare_row *row = &comparison->rows[i];

		if (!row->judged || row->category != rule->category ||
		    (rule->operation && strcmp(rule->operation, row->operation)))
			continue;
		*known = true;
		if (!broken && row->significant &&
		    (rule->above ? row->relative > rule->change : row->relative < rule->change))
			broken = row;
	}
	return broken;
}
