/* Closing links: each takes its probes off and then waits for readers all over the machine, some 50 ms.
 * For none to be hit while it waits for its turn, all are closed at once, by a crew of threads that is
 * made once: to make them takes longer than what they do. Private to attach/; one caller at a time.
 *
 *     links ─▶ the crew, on the caller's CPUs and with its priority ─▶ all are closed
 */
#ifndef RLS_CLOSING_H
#define RLS_CLOSING_H

#include <stddef.h>

struct rls_live_link;

/* Makes the threads for so many links; what is lacking is made when it is needed. */
void rls_closing_prepare(size_t links);

/* Closes them all; in a forked process by a crew of its own. */
void rls_closing_run(const struct rls_live_link *items, size_t count);

#endif
