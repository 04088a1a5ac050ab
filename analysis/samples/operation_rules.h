/* Operation rules: operations of programs without annotations, by the functions on sampled
 * stacks.
 *
 *     rule   simulation=*.step           stack   <module> > Trainer.collect > Env.step > mj_step
 *                                                                             └─ simulation
 *
 * The innermost frame that a rule fits decides; of several rules that fit one frame the first.
 * A function that calls itself is in its operation all the same.
 *
 * A function's name is qualified ("Env.step") from CPython 3.11 on. Before, only its last part
 * is known, and only what follows the pattern's last dot is held against it ("Env.*" fits none).
 */
#ifndef RLS_OPERATION_RULES_H
#define RLS_OPERATION_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/base/string_pool.h"
#include "analysis/event/event.h"

/* More are left out. */
#define RLS_OPERATION_RULES_MAX 256

struct rls_sample_totals;

struct rls_operation_rule {
	rls_string_id operation;
	rls_string_id function; /* glob */
	rls_string_id file; /* glob: of the path, or without a slash of its last part; 0: any */
};

/* Zeroed is empty. */
struct rls_operation_rules {
	struct rls_operation_rule *rules;
	size_t count, capacity;
	uint64_t left_out;
};

void rls_operation_rules_free(struct rls_operation_rules *rules);

/* An OPERATION_RULE event. 0 or -ENOMEM. */
int rls_operation_rules_add(struct rls_operation_rules *rules, const struct rls_event *event);

/* Whether code objects of this version of Python ("3.10.2") know their qualified name: from 3.11 on,
 * and those of an unknown one. */
bool rls_operation_rules_qualified(const char *python);

/* The operation of a stack by its innermost frame; 0: none. What is found is kept in the totals'
 * frames, so rules must come before. */
rls_string_id rls_operation_rules_find(const struct rls_operation_rules *rules,
				       const struct rls_string_pool *strings,
				       struct rls_sample_totals *totals, uint32_t frame,
				       bool qualified);

#endif
