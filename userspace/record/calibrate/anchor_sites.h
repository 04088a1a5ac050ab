/* Marks: which sites stay probed while the others go on and off (alternator.h). Pure.
 *
 *     time     ├──┼──┼──┼──┼──┼──┼──┼──┤   slots of the first look, in which all are probed
 *     site a    x     x     x     x        rare, and here and there: a good mark
 *     site b   xx xx xx xx xx xx xx xx     in every slot, and dear
 *     site c                     x  x      rare, but the only one there: a mark
 *
 * Marks are hit in both kinds of stretches, and rare sites are the dear ones: whoever calls them
 * finds all sides cold, and so does what comes after them. What that makes of stretches without other
 * sites can only be estimated (segments.c). So there are none where the work's operations change often
 * enough, which takes no hit to be known. Elsewhere marks together cost next to nothing amid others,
 * and of those that do the ones are taken that leave the least of the time without any. Seen they
 * must be in both: a call out of Python amid no other call is, whatever else is probed; a callback
 * into Python only while what calls it is.
 */
#ifndef RLS_ANCHOR_SITES_H
#define RLS_ANCHOR_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "userspace/record/budget/site_value.h"

#define RLS_MARK_SLOTS 256

struct rls_mark_slots {
	uint64_t words[RLS_MARK_SLOTS / 64];
	uint64_t calls;                 /* amid no other */
};

/* Zeroed: no call seen yet. */
struct rls_marks {
	struct rls_mark_slots *sites;   /* by id: the slots that such a call of it began in */
	size_t count, room;
	/* The slots that operations divide into pieces to compare; none: all zero. */
	uint64_t turned[RLS_MARK_SLOTS / 64];
};

void rls_marks_clear(struct rls_marks *marks);

/* A call of the site, amid no other that is seen, ended in that slot, < RLS_MARK_SLOTS. Sites too
 * many to be counted (RLS_SITES_COUNTED) are no marks. 0 or -ENOMEM. */
int rls_marks_add(struct rls_marks *marks, uint32_t site, size_t slot);

/* chosen[use->count] becomes true where a site is to be a mark: one whose every call is seen,
 * by its hits. hit_ns: where a site has no cost of its own; seconds: how long the look was.
 * 0 or -ENOMEM. */
int rls_marks_choose(const struct rls_marks *marks, const struct rls_site_use *use, double hit_ns,
		     double seconds, bool *chosen);

#endif
