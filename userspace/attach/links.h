/* Links: the probes that are live. Private to attach/. */
#ifndef RLS_LINKS_H
#define RLS_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "userspace/attach/closing.h"
#include "userspace/attach/hit_costs.h"
#include "userspace/machine_code/site.h"

struct bpf_link;
struct bpf_program;

struct rls_links {
	struct rls_live_link *items;
	size_t count, capacity;
	bool slow; /* some are perf events */
};

struct rls_link_request {
	const struct bpf_program *on_site;
	const struct bpf_program *on_return;
	bool multi;
	const char *path;
	const struct rls_site *sites;
	size_t count;
	uint32_t first_id;
	const uint32_t *ids; /* of each site; NULL: first_id, first_id + 1, ... */
	bool windowed; /* their cookies say so */
	const struct rls_hit_costs *costs;
};

/* Takes the link; NULL means that attaching just failed: its errno is returned. */
int rls_links_add(struct rls_links *links, struct bpf_link *link);

/* Return probes first: an entry must never be live without its exit. 0 and *attached, with a warning of those that the
 * kernel refuses; -EINVAL where it refuses all; -ENOMEM. Where descriptors, the kernel's memory or permission is
 * lacking, or the file's process has ended, none is live: that -errno, -ENOBUFS for the kernel's memory. A warning
 * gives the reason, once for each file. */
int rls_links_attach(struct rls_links *links, const struct rls_link_request *request,
		     size_t *attached);

/* Reports why probes (`what`) are not live in a file. */
void rls_links_report(const char *path, const char *what, size_t wanted, size_t live, int error);

/* Moves all to the end of another list; where there is no memory for that they are detached here and now. */
void rls_links_gather(struct rls_links *from, struct rls_links *to);

/* Detaches all from index first on, in parallel, because the kernel makes each call wait. */
void rls_links_clear(struct rls_links *links, size_t first);

/* Detaches the return probes of one request; what has been entered under them returns as ever. */
int rls_links_drop_returns(struct rls_links *links, uint32_t first_id);

/* Detaches all of one request. 0 or -ENOMEM. */
int rls_links_drop(struct rls_links *links, uint32_t first_id);

/* Detaches all for good. Each perf event takes the kernel about 0.1 s, one after the other. Those
 * are left to another process, which continues when we have ended. Pause first, so that hits
 * meanwhile are rejected at once. */
void rls_links_leave(struct rls_links *links);

#endif
