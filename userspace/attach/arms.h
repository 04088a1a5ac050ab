/* Arms: probes on the CUPTI bridge's site, one per process. Private to attach/.
 *
 * The site's semaphore arms the bridge, so each probe is put on one process alone. It is removed
 * with the process, with the recorder (links die with their descriptors), or on request.
 */
#ifndef RLS_ARMS_H
#define RLS_ARMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bpf_link;
struct bpf_program;
struct rls_links;

struct rls_arms {
	struct rls_arm {
		pid_t pid;
		struct bpf_link *link;
	} * items;
	size_t count, room;
};

struct rls_arm_request {
	const struct bpf_program *program; /* for a uprobe_multi link */
	const struct bpf_program *single; /* for a perf event */
	bool multi; /* a uprobe_multi link, where that can be */
	pid_t pid;
	const char *path;
	unsigned long site_offset, semaphore_offset; /* in the file */
};

/* 0 or -errno. */
int rls_arms_add(struct rls_arms *arms, const struct rls_arm_request *request);
/* Takes all of the process's away, beside the caller: the kernel takes its time for it. */
void rls_arms_remove(struct rls_arms *arms, pid_t pid);
/* Hands all of them over to links, and is empty. */
void rls_arms_hand_over(struct rls_arms *arms, struct rls_links *links);

/* Whether a uprobe_multi link on one process sees its other threads: up to kernel 6.9 it
 * saw the first one alone. hits: what the program counts. */
bool rls_arms_multi_sees_threads(const struct bpf_program *program, const uint64_t *hits);

#endif
