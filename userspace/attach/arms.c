#include "userspace/attach/arms.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "analysis/base/grow.h"
#include "userspace/attach/features.h"
#include "userspace/attach/links.h"
#include "userspace/cpu/cpu_priority.h"
#include "userspace/process/living_thread.h"

static struct bpf_link *arms_attach(const struct rls_arm_request *request)
{
	LIBBPF_OPTS(bpf_uprobe_multi_opts, multi, .offsets = &request->site_offset, .cnt = 1,
		    .ref_ctr_offsets =
			    request->semaphore_offset ? &request->semaphore_offset : NULL);
	LIBBPF_OPTS(bpf_uprobe_opts, perf, .ref_ctr_offset = request->semaphore_offset);
	pid_t living = rls_living_thread(request->pid);

	/* A uprobe_multi link is for the memory of a process's first thread, which may have left. */
	if (request->multi && living == request->pid)
		return bpf_program__attach_uprobe_multi(request->program, request->pid,
							request->path, NULL, &multi);
	return bpf_program__attach_uprobe_opts(request->single, living, request->path,
					       request->site_offset, &perf);
}

int rls_arms_add(struct rls_arms *arms, const struct rls_arm_request *request)
{
	struct bpf_link *link;

	if (rls_grow(&arms->items, &arms->room, arms->count))
		return -ENOMEM;
	link = arms_attach(request);
	if (!link)
		return -errno;
	arms->items[arms->count++] = (struct rls_arm){request->pid, link};
	return 0;
}

static void *destroy(void *link)
{
	bpf_link__destroy(link);
	return NULL;
}

/* The recorder may run at low priority (cpu/cpu_priority.h), but not while it holds the locks taken here. */
static void *destroy_ahead(void *link)
{
	rls_priority_leave_spare();
	return destroy(link);
}

static void destroy_beside(struct bpf_link *link)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, destroy_ahead, link))
		destroy(link);
	else
		pthread_detach(thread);
}

void rls_arms_remove(struct rls_arms *arms, pid_t pid)
{
	size_t kept = 0;

	for (size_t i = 0; i < arms->count; i++) {
		if (arms->items[i].pid == pid)
			destroy_beside(arms->items[i].link);
		else
			arms->items[kept++] = arms->items[i];
	}
	arms->count = kept;
}

void rls_arms_hand_over(struct rls_arms *arms, struct rls_links *links)
{
	for (size_t i = 0; i < arms->count; i++)
		rls_links_add(links, arms->items[i].link); /* destroys it where it fails */
	free(arms->items);
	*arms = (struct rls_arms){0};
}

/* ---- what this kernel does ---- */

/* An odd size, so that nothing is taken for a batch. */
__attribute__((noinline, noclone)) static void site(const void *address, unsigned int bytes)
{
	asm volatile("" ::"r"(address), "r"(bytes));
}

static void *hit_site(void *context)
{
	site(context, 0);
	return NULL;
}

bool rls_arms_multi_sees_threads(const struct bpf_program *program, const uint64_t *hits)
{
	struct rls_arm_request request = {program, NULL, true, getpid(), "/proc/self/exe", 0, 0};
	uint64_t before;
	struct bpf_link *link;
	pthread_t thread;

	if (rls_own_file_offset((const void *)(uintptr_t)site, &request.site_offset))
		return false;
	link = arms_attach(&request);
	if (!link)
		return false;
	before = __atomic_load_n(hits, __ATOMIC_RELAXED);
	if (!pthread_create(&thread, NULL, hit_site, NULL))
		pthread_join(thread, NULL);
	bpf_link__destroy(link);
	return __atomic_load_n(hits, __ATOMIC_RELAXED) != before;
}
