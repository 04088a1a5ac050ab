#include "analysis/samples/operation_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/glob.h"
#include "analysis/base/grow.h"
#include "analysis/samples/sample_totals.h"

void rls_operation_rules_free(struct rls_operation_rules *rules)
{
	free(rules->rules);
	*rules = (struct rls_operation_rules){0};
}

int rls_operation_rules_add(struct rls_operation_rules *rules, const struct rls_event *event)
{
	int err;

	if (rules->count == RLS_OPERATION_RULES_MAX || !event->operation_rule.operation) {
		rules->left_out++;
		return 0;
	}
	err = rls_grow(&rules->rules, &rules->capacity, rules->count);
	if (err)
		return err;
	rules->rules[rules->count++] = (struct rls_operation_rule){
		.operation = event->operation_rule.operation,
		.function = event->operation_rule.function,
		.file = event->operation_rule.file,
	};
	return 0;
}

static bool fits_file(const char *pattern, const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!*pattern)
		return true;
	return rls_glob_match(pattern, strchr(pattern, '/') || !slash ? path : slash + 1);
}

static bool fits_function(const char *pattern, const char *name, bool qualified)
{
	const char *dot = qualified ? NULL : strrchr(pattern, '.');

	if (dot && !dot[1 + strspn(dot + 1, "*")])
		return false; /* all of a class: of its functions nothing is known */
	return rls_glob_match(dot ? dot + 1 : pattern, name);
}

/* Of a frame by itself. */
static rls_string_id match(const struct rls_operation_rules *rules,
			   const struct rls_string_pool *strings, const struct rls_frame_node *node,
			   bool qualified)
{
	const char *function = rls_string_pool_get(strings, node->function);
	const char *file = rls_string_pool_get(strings, node->file);

	for (size_t i = 0; i < rules->count; i++) {
		const struct rls_operation_rule *rule = &rules->rules[i];

		if (fits_function(rls_string_pool_get(strings, rule->function), function,
				  qualified || node->native) &&
		    fits_file(rls_string_pool_get(strings, rule->file), file))
			return rule->operation;
	}
	return 0;
}

rls_string_id rls_operation_rules_find(const struct rls_operation_rules *rules,
				       const struct rls_string_pool *strings,
				       struct rls_sample_totals *totals, uint32_t frame,
				       bool qualified)
{
	rls_string_id found = 0;
	uint32_t id = frame;
	int depth = 0;

	for (; depth < RLS_FRAME_DEPTH_MAX && rls_sample_totals_node(totals, id); depth++) {
		const struct rls_frame_node *node = &totals->frames[id];

		if (node->ruled)
			found = node->operation;
		else
			found = match(rules, strings, node, qualified);
		if (found || node->ruled)
			break;
		id = node->parent;
	}
	/* All on the way are in the same operation. */
	id = frame;
	for (int i = 0; i <= depth && rls_sample_totals_node(totals, id); i++) {
		totals->frames[id].ruled = true;
		totals->frames[id].operation = found;
		id = totals->frames[id].parent;
	}
	return found;
}

bool rls_operation_rules_qualified(const char *python)
{
	unsigned int minor;

	return sscanf(python, "3.%u", &minor) != 1 || minor >= 11;
}
