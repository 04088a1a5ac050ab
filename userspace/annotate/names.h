/* The name table: every distinct name once, at an address that never changes.
 *
 * Readers outside the process follow these addresses at any time, so a name is immutable
 * once published and is never freed. Lookups and inserts take no lock: a signal handler or
 * a forked child can never find one held. Full at RLS_NAMES_MAX; later names are all
 * "(other)", so that a loop which numbers its operations costs memory once.
 */
#ifndef RLS_ANNOTATE_NAMES_H
#define RLS_ANNOTATE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "userspace/annotate/annotate_wire.h"

#define RLS_NAMES_MAX 65536

/* The name of length bytes (cut at a UTF-8 boundary to RLS_NAME_BYTES - 1, and at a NUL);
 * never NULL. */
const struct rls_name *rls_name_intern(const char *text, size_t length);

/* Whether the pointer came from rls_name_intern: for handles that pass through others. */
bool rls_name_is_ours(const void *pointer);

#endif
