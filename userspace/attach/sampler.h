/* Sampler: one software timer event per CPU under a BPF program. Private to attach/.
 *
 * It uses the software clock, because virtual machines have no hardware counters. Periods are
 * redrawn now and then, so that no loop of a target stays in step with them.
 */
#ifndef RLS_SAMPLER_H
#define RLS_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_program;
struct rls_links;

/* Zeroed is none. */
struct rls_sampler {
	unsigned int hz; /* on average */
	int *fds; /* of the events: links keep them alive, these reach them */
	size_t count, capacity;
	uint64_t drawn_ns;
	unsigned int random;
};

/* 0 or -errno; links keeps what is attached, also on failure. */
int rls_sampler_attach(struct rls_sampler *sampler, struct rls_links *links,
		       const struct bpf_program *program);

/* They tick once they are attached; and whether they do from now on. */
void rls_sampler_enable(struct rls_sampler *sampler, bool enabled);

/* Call it often: draws periods when it is time. */
void rls_sampler_draw(struct rls_sampler *sampler, uint64_t time_ns);

/* So many ticks a second from now on. */
void rls_sampler_pace(struct rls_sampler *sampler, unsigned int hz);

/* The longest that two ticks are apart while nothing holds them back. */
uint64_t rls_sampler_apart_ns(const struct rls_sampler *sampler);

void rls_sampler_clear(struct rls_sampler *sampler);

#endif
