/* Descriptors: how many files may be open, and what to say when they or other resources run out. */
#ifndef RLS_DESCRIPTORS_H
#define RLS_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>

/* So many descriptors will be opened in addition. Raises the limit of this process where it is too low, up to the hard
 * limit, or beyond it where that is permitted. What is still short is reported by whoever fails (rls_reason). One
 * thread. */
void rls_descriptors_allow(size_t more);

/* Whether so many may be open. */
bool rls_descriptors_suffice(size_t count);

/* The reason of a failure, as the end of a sentence: strerror's, or what to do where resources are short.
 * error: errno or -errno. Valid until the thread's next call. */
const char *rls_reason(int error);

/* Whether the reason is this process or this host, and would be the same for anything else that is tried: too many
 * open files, no memory, no permission. error: errno or -errno. */
bool rls_reason_is_ours(int error);

/* Whether it is that a process, and with it the way to its files, has ended. error: errno or -errno. */
bool rls_reason_is_end(int error);

#endif
