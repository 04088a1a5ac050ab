/* Modest: getting ready takes the time that others leave over, as long as there is patience.
 *
 * A job whose threads wait for each other stands still while one of them waits for a CPU: what
 * we need of the CPUs then is lost to it. So before anything is recorded, work that nobody waits
 * for makes way; when patience ends, it is done with our usual priority after all.
 *
 * Works on the thread that begins, one at a time, and only where priorities can be raised again.
 * Threads that it makes meanwhile are as it is then: make none but where it is RLS_MODEST_NOT.
 */
#ifndef RLS_MODEST_H
#define RLS_MODEST_H

#include <stdint.h>

enum rls_modesty {
	RLS_MODEST_NOT,         /* as always: what targets wait for, like probes being put on */
	RLS_MODEST_POLITE,      /* behind others, but never for long: reading a target's memory takes
	                         * a lock that it may want */
	RLS_MODEST_SPARE,       /* only when a CPU has nothing else to do: work in our own memory */
};

void rls_modest_begin(uint64_t patience_ns);
void rls_modest_end(void);

/* Returns what was set before. No-op outside of begin and end, and on other threads. */
enum rls_modesty rls_modest_set(enum rls_modesty modesty);

/* For the rest of the block: _modest_ = rls_modest_set(RLS_MODEST_SPARE). */
static inline void rls_cleanup_modesty(enum rls_modesty *before)
{
	rls_modest_set(*before);
}
#define _modest_ __attribute__((cleanup(rls_cleanup_modesty), unused)) enum rls_modesty before

#endif
