/* Closing links: each removes its probes and then waits about 50 ms for readers on all CPUs. A link that
 * waits for the others would still be hit, so all are closed at once by a pool of threads. The pool is made
 * once, because making it takes longer than its work. Private to attach/; one caller at a time.
 *
 *     links ─▶ the pool, on the caller's CPUs and with its priority ─▶ all are closed
 */
#ifndef RLS_CLOSING_H
#define RLS_CLOSING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_link;

struct rls_live_link {
	struct bpf_link *link;
	uint32_t first_id; /* of the request it belongs to */
	bool returns; /* return probes: all of such a link are */
};

/* Makes the threads for this many links; missing ones are made when needed. */
void rls_closing_prepare(size_t links);

/* Closes them all; a forked process uses a pool of its own. */
void rls_closing_run(const struct rls_live_link *items, size_t count);

#endif
