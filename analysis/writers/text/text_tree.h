/* The processes of a report as a tree, children behind their parent. */
#ifndef RLS_TEXT_TREE_H
#define RLS_TEXT_TREE_H

#include "analysis/report/rows.h"

struct rls_tree_node {
	const struct rls_process_entry *process;
	unsigned int depth; /* 0: a root, its parent is not in the report */
};

/* One node per process; the caller frees *out. 0, or -ENOMEM. */
int rls_tree_order(const struct rls_report *report, struct rls_tree_node **out);

#endif
