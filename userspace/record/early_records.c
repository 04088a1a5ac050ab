#include "userspace/record/early_records.h"

#include <errno.h>
#include <stdlib.h>

void rls_early_records_clear(struct rls_early_records *early)
{
	free(early->children.items);
	*early = (struct rls_early_records){0};
}

bool rls_early_records_has(const struct rls_early_records *early, uint64_t since_ns,
			   const struct rls_wire_header *record)
{
	bool of_process = record->kind == RLS_WIRE_FORK || record->kind == RLS_WIRE_EXEC ||
			  record->kind == RLS_WIRE_THREAD_EXIT;

	return of_process && !early->over && (!since_ns || record->time_ns < since_ns);
}

bool rls_early_records_is_late_end(uint64_t since_ns, const struct rls_wire_header *record,
				   size_t size)
{
	return record->kind == RLS_WIRE_THREAD_EXIT && size >= sizeof(struct rls_wire_exit) &&
	       record->time_ns < since_ns && !((const struct rls_wire_exit *)record)->process_over;
}

static struct rls_early_child *early_records_find(struct rls_early_records *early, pid_t pid)
{
	for (size_t i = early->children.count; i > 0; i--) {
		if (early->children.items[i - 1].pid == pid)
			return &early->children.items[i - 1];
	}
	return NULL;
}

static void early_records_drop(struct rls_early_records *early, pid_t pid)
{
	struct rls_early_child *child = early_records_find(early, pid);
	struct rls_early_child *end = early->children.items + early->children.count;

	if (!child)
		return;
	for (; child + 1 < end; child++)
		child[0] = child[1];
	early->children.count--;
}

static int early_records_fork(struct rls_early_records *early, const struct rls_wire_fork *record)
{
	struct rls_early_child child = {.parent = (pid_t)record->header.pid,
					.pid = (pid_t)record->child_pid};

	early_records_drop(early, child.pid); /* the number was another's, whose end was lost */
	return rls_list_push(&early->children, child) ? -ENOMEM : 0;
}

int rls_early_records_take(struct rls_early_records *early, const struct rls_wire_header *record,
			   size_t size, pid_t *ended, pid_t *execed)
{
	struct rls_early_child *child;
	pid_t pid = (pid_t)record->pid;

	*ended = *execed = 0;
	if (record->kind == RLS_WIRE_FORK)
		return size < sizeof(struct rls_wire_fork)
			       ? 0
			       : early_records_fork(early, (const void *)record);
	if (record->kind == RLS_WIRE_EXEC) {
		child = early_records_find(early, pid);
		if (child)
			child->execed = true;
		else
			*execed = pid;
		return 0;
	}
	if (size < sizeof(struct rls_wire_exit) ||
	    !((const struct rls_wire_exit *)record)->process_over)
		return 0;
	early_records_drop(early, pid);
	*ended = pid;
	return 0;
}
