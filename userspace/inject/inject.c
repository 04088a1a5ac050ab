#include "userspace/inject/inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/clock.h"
#include "userspace/inject/carrier.h"
#include "userspace/inject/grounds.h"
#include "userspace/inject/guest.h"
#include "userspace/inject/refuse.h"
#include "userspace/inject/visible.h"

/* By its file's name: what was injected before may have been a copy. */
static const struct rls_mapping *find_library(const struct rls_mappings *mappings, const char *file)
{
	const char *name = strrchr(file, '/');

	for (size_t i = 0; i < mappings->count; i++) {
		const struct rls_mapping *mapping = &mappings->entries[i];
		const char *slash = strrchr(mapping->path, '/');

		if (slash && mapping->executable && !strcmp(slash, name))
			return mapping;
	}
	return NULL;
}

/* Where the process has the library: its function. -ENOENT: it does not have it. */
static int find_start(const struct rls_injection *injection, uint64_t *out)
{
	const struct rls_mapping *mapping;
	struct rls_mappings mappings;
	int r = rls_mappings_read(injection->pid, &mappings);

	if (r)
		return r;
	mapping = find_library(&mappings, injection->library);
	r = mapping ? rls_grounds_function(injection->pid, mapping, injection->start, out)
		    : -ENOENT;
	rls_mappings_release(&mappings);
	return r;
}

static int inject_load(struct rls_guest *guest, const char *path, char why[RLS_INJECT_WHY_BYTES])
{
	int r = rls_guest_call(guest, guest->grounds->dlopen, path, 0, RTLD_NOW | RTLD_LOCAL);

	if (r == -ETIME)
		return rls_refuse(why, r, "did not load %s in time", path);
	return r ? rls_refuse(why, r, "ended, or lost its thread, while it loaded %s", path) : 0;
}

/* The guest is detached first, so that nothing of it is left whenever we are gone. */
static int load_and_start(struct rls_guest *guest, const struct rls_injection *injection,
			  const struct rls_visible *file, char why[RLS_INJECT_WHY_BYTES])
{
	uint64_t start;
	int r = rls_guest_call(guest, guest->grounds->pthread_detach, NULL, rls_guest_self(guest),
			       0);

	if (r)
		return rls_refuse(why, r, "lost the thread that it was given");
	if (find_start(injection, &start)) {
		r = inject_load(guest, file->path, why);
		if (r)
			return r;
		r = find_start(injection, &start);
	}
	if (r) {
		rls_guest_dismiss(guest);
		return rls_refuse(
			why, -ENOEXEC,
			"could not load %s (no access, a C library too old for it, or not ours)",
			file->path);
	}
	r = rls_guest_call(guest, start, NULL, 0, 0);
	if (r)
		return rls_refuse(why, r, "loaded %s but did not start it in time", file->path);
	rls_guest_dismiss(guest);
	return 0;
}

int rls_inject(const struct rls_injection *injection, char why[RLS_INJECT_WHY_BYTES])
{
	uint64_t until_ns = rls_monotonic_ns() + injection->limit_ns;
	struct rls_grounds grounds;
	struct rls_visible file;
	struct rls_guest guest;
	pid_t tid;
	int r = rls_grounds_survey(injection->pid, &grounds, why);

	if (r)
		return r;
	r = rls_visible_make(injection->pid, injection->library, &file);
	if (r)
		return rls_refuse(why, r, "cannot be given a copy of %s: %s", injection->library,
				  strerror(-r));
	r = rls_carrier_make_thread(&grounds, until_ns, &tid, why);
	if (!r) {
		r = rls_guest_receive(&grounds, tid, until_ns, &guest);
		if (r)
			rls_refuse(why, r, "could not be given a thread: %s", strerror(-r));
		else
			r = load_and_start(&guest, injection, &file, why);
	}
	rls_visible_remove(&file);
	return r;
}
