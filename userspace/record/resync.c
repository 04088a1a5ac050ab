#include "userspace/record/resync.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "bpf/wire/maps.h"
#include "bpf/wire/record.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/attach/kernel/kernel_rings.h"
#include "userspace/base/clock.h"
#include "userspace/base/log.h"
#include "userspace/record/targets/process_info.h"

struct thread_id {
	uint32_t pid, tid;
};

static int find_missed(const struct rls_catch_up *catch_up, void (*found)(void *context, pid_t pid),
		       void *context)
{
	_cleanup_free_ pid_t *pids = NULL;
	size_t count;
	int r = rls_kernel_tracked(catch_up->kernel, &pids, &count);

	for (size_t i = 0; !r && i < count; i++) {
		if (!rls_targets_find(catch_up->followed, pids[i]) && !rls_process_exists(pids[i]))
			found(context, pids[i]);
	}
	return r;
}

static bool is_gone(const struct rls_catch_up *catch_up, uint32_t pid, uint32_t tid)
{
	char path[64];

	if (tid == pid)
		return !rls_kernel_is_tracked(catch_up->kernel, (pid_t)pid) &&
		       rls_process_exists((pid_t)pid) == -ESRCH;
	snprintf(path, sizeof(path), "/proc/%u/task/%u", pid, tid);
	return access(path, F_OK) && errno == ENOENT;
}

struct gone {
	const struct rls_catch_up *catch_up;
	RLS_LIST(struct thread_id) threads;
};

static int note_if_gone(void *context, uint32_t pid, uint32_t tid)
{
	struct gone *gone = context;

	if (!is_gone(gone->catch_up, pid, tid))
		return 0;
	return rls_list_push(&gone->threads, (struct thread_id){pid, tid});
}

static int resync_end(const struct rls_catch_up *catch_up, const struct thread_id *thread,
		      uint64_t time_ns)
{
	const struct rls_wire_exit record = {
		.header = {.size = sizeof(record),
			   .kind = RLS_WIRE_THREAD_EXIT,
			   .pid = thread->pid,
			   .tid = thread->tid,
			   .time_ns = time_ns},
		.process_over = thread->tid == thread->pid,
	};

	if (!rls_translator_knows(catch_up->translator, thread->pid, thread->tid))
		return 0;
	return rls_translate(catch_up->translator, &record.header, sizeof(record));
}

/* The end of a process that is gone may just have been reported: only if the process is still
 * known once the rings are read, its end was lost. It ended before now and after all its
 * records: an end before its last record would have it live on. */
static int end_the_gone(const struct rls_catch_up *catch_up)
{
	struct gone gone = {.catch_up = catch_up};
	int r = rls_translator_each_thread(catch_up->translator, note_if_gone, &gone);
	int consumed = r ? r : rls_kernel_consume(catch_up->kernel);
	uint64_t time_ns = rls_monotonic_ns();

	if (consumed < 0)
		r = consumed;
	for (size_t i = 0; !r && i < gone.threads.count; i++)
		r = resync_end(catch_up, &gone.threads.items[i], time_ns);
	free(gone.threads.items);
	return r;
}

int rls_catch_up(struct rls_catch_up *catch_up, void (*found)(void *context, pid_t pid),
		 void *context)
{
	uint64_t drops[RLS_DROP_MAX], lost;
	int r;

	rls_kernel_drops(catch_up->kernel, drops);
	lost = drops[RLS_DROP_CONTROL] - catch_up->lost;
	if (!lost && !catch_up->again)
		return 0;
	if (lost)
		rls_debug("%llu control records were lost: reading their content from /proc",
			  (unsigned long long)lost);
	catch_up->lost = drops[RLS_DROP_CONTROL];
	catch_up->again = lost;
	r = find_missed(catch_up, found, context);
	if (!r)
		r = end_the_gone(catch_up);
	if (!r)
		rls_debug("what lost control records would have said is known again");
	return r;
}
