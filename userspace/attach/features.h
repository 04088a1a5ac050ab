/* What this kernel can do, found by doing it, never by its version. */
#ifndef RLS_FEATURES_H
#define RLS_FEATURES_H

#include <stdbool.h>

/* Whether uprobe_multi links attach. Kernel 6.1 loads such programs and then refuses the
 * link, so only a real link tells. Needs CAP_BPF and CAP_PERFMON. */
bool rls_feature_uprobe_multi(void);

/* Whether return probes kill processes in a sandbox (seccomp). From 6.11 on they return by a
 * system call in the target's name, which no sandbox allows. Kernels without the repair of 6.14
 * (and later 6.12 and 6.13) show it to the filter. Tried in a child with such a filter, in 20 ms;
 * false where there is no uprobe_multi, which is older than that call. */
bool rls_feature_returns_kill(void);

/* Why this kernel refuses BPF programs like ours: the end of a sentence, or NULL when nothing
 * is missing. It explains a refusal whose cause is not permission. */
const char *rls_feature_lacking(void);

/* Whether any program of the probes' type may be loaded: by this kernel, by this user. */
bool rls_feature_probe_programs(void);

/* File offset of one of our own functions in /proc/self/exe: 0 or -errno. */
int rls_own_file_offset(const void *address, unsigned long *out);

#endif
