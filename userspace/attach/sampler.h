/* Sampler: one software timer event per CPU under a BPF program. Private to attach/.
 *
 * The software clock, because virtual machines have no hardware counters.
 */
#ifndef RLS_SAMPLER_H
#define RLS_SAMPLER_H

struct bpf_program;
struct rls_links;

/* 0 or -errno; links keeps what is attached, also on failure. */
int rls_sampler_attach(struct rls_links *links, const struct bpf_program *program,
		       unsigned int hz);

#endif
