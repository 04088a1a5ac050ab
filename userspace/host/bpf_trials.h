/* BPF trials: small programs that are loaded, attached and hit, to find out what a kernel does.
 *
 * A kernel that accepts a program may still refuse the link (6.1 and uprobe_multi), and a
 * link that is made may never fire, so each trial ends with a hit that must be counted.
 * Every function returns 0 when it works, the kernel's -errno, or -ENODATA when everything was
 * accepted and yet no hit was seen. Nothing stays behind.
 */
#ifndef RLS_BPF_TRIALS_H
#define RLS_BPF_TRIALS_H

/* The bpf() system call itself: a map and a program. */
int rls_trial_bpf(void);
/* State kept per thread, reached from a uprobe program. */
int rls_trial_task_storage(void);
int rls_trial_ring_buffer(void);
/* Whether a cookie can distinguish probes: no before 5.15. */
int rls_trial_cookie(void);
/* A probe on one of our own functions, with a cookie, by perf event and by uprobe_multi. */
int rls_trial_uprobe(void);
int rls_trial_uprobe_multi(void);
/* sched_process_fork through BTF, and a fork. */
int rls_trial_tracepoint(void);
/* A software-clock perf event that runs a program, and 20 ms of work. */
int rls_trial_sampling(void);

#endif
