/* What this kernel can do, found by doing it, never by its version. */
#ifndef RLS_FEATURES_H
#define RLS_FEATURES_H

#include <stdbool.h>

/* Whether uprobe_multi links attach. Kernel 6.1 loads such programs and then refuses the
 * link, so only a real link tells. Needs CAP_BPF and CAP_PERFMON. */
bool rls_feature_uprobe_multi(void);

/* File offset of one of our own functions in /proc/self/exe: 0 or -errno. */
int rls_own_file_offset(const void *address, unsigned long *out);

#endif
