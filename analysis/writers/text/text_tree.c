#include "analysis/writers/text/text_tree.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/search.h"

/* Deeper is drawn no deeper; and parents of a broken trace may run in a circle. */
#define DEPTH_MAX 20

struct walk {
	const struct rls_report *report;
	const struct rls_process_entry **by_parent; /* sorted by ppid, then pid */
	bool *placed; /* by index into report->processes */
	struct rls_tree_node *nodes;
	size_t count;
};

static int by_parent(const void *left, const void *right)
{
	const struct rls_process_entry *a = *(const struct rls_process_entry *const *)left;
	const struct rls_process_entry *b = *(const struct rls_process_entry *const *)right;

	if (a->ppid != b->ppid)
		return a->ppid < b->ppid ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* First child of a pid in by_parent. */
static size_t first_child(const struct walk *walk, uint32_t pid)
{
	return rls_first_not(walk->report->process_count, i, walk->by_parent[i]->ppid < pid);
}

static void text_tree_place(struct walk *walk, const struct rls_process_entry *process,
			    unsigned int depth)
{
	size_t index = (size_t)(process - walk->report->processes);

	if (walk->placed[index])
		return;
	walk->placed[index] = true;
	walk->nodes[walk->count++] = (struct rls_tree_node){process, depth};
	if (depth == DEPTH_MAX)
		return;
	for (size_t i = first_child(walk, process->pid);
	     i < walk->report->process_count && walk->by_parent[i]->ppid == process->pid; i++) {
		if (walk->by_parent[i]->host == process->host)
			text_tree_place(walk, walk->by_parent[i], depth + 1);
	}
}

static bool has_parent(const struct rls_report *report, const struct rls_process_entry *process)
{
	size_t at =
		rls_first_not(report->process_count, i, report->processes[i].pid < process->ppid);

	for (; at < report->process_count && report->processes[at].pid == process->ppid; at++)
		if (report->processes[at].host == process->host)
			return true;
	return false;
}

int rls_tree_order(const struct rls_report *report, struct rls_tree_node **out)
{
	size_t count = report->process_count;
	_cleanup_free_ const struct rls_process_entry **parents =
		calloc(count + 1, sizeof(*parents));
	_cleanup_free_ bool *placed = calloc(count + 1, sizeof(*placed));
	_cleanup_free_ struct rls_tree_node *nodes = calloc(count + 1, sizeof(*nodes));
	struct walk walk = {report, parents, placed, nodes, 0};

	if (!parents || !placed || !nodes)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		parents[i] = &report->processes[i];
	qsort(parents, count, sizeof(*parents), by_parent);
	for (size_t i = 0; i < count; i++) {
		if (!has_parent(report, &report->processes[i]))
			text_tree_place(&walk, &report->processes[i], 0);
	}
	/* What is left is deeper than is drawn, or its own ancestor. */
	for (size_t i = 0; i < count; i++)
		text_tree_place(&walk, &report->processes[i], 0);
	*out = rls_take(nodes);
	return 0;
}
