/* Cgroup: finds out from the text of /proc/PID/cgroup which container and group a process belongs
 * to. Pure.
 *
 * The text has a line for each hierarchy, "ID:CONTROLLERS:PATH". The line of cgroup v2 has no
 * controllers.
 */
#ifndef RLS_CGROUP_H
#define RLS_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

/* The container id in it, as Docker, containerd, CRI-O, Podman and nerdctl write it: an
 * element of a path that, less ".scope", is 64 hex digits, ends in '-' or ':' and 64 of
 * them, or is an engine's prefix ("docker-") and 12 or more. The last one counts: containers
 * nest. Copies at most out_bytes - 1; "" when there is none. */
void rls_container_of_cgroup(const char *cgroup_text, char *out, size_t out_bytes);

/* The path, *length long, in the hierarchy of this controller ("memory", "name=systemd"; "": cgroup v2); NULL: there is
 * no such hierarchy. Borrowed from the text. */
const char *rls_cgroup_find(const char *cgroup_text, const char *controller, size_t *length);

/* Whether a list of words with commas between them has this one. The empty list has "" alone. */
bool rls_cgroup_lists(const char *list, size_t length, const char *word);

/* Whether its cgroup v2 is path ("/system.slice/job.service") or one below it. */
bool rls_cgroup_is_within(const char *cgroup_text, const char *path);

#endif
