/* Whether this host can profile: a table of questions, each answered by trying.
 *
 * The table is the only place that knows the questions; who prints them (check.c) does not.
 */
#ifndef RLS_HOST_H
#define RLS_HOST_H

#include <stdbool.h>
#include <stddef.h>

enum rls_host_need {
	RLS_HOST_REQUIRED, /* without it nothing can be profiled */
	RLS_HOST_BETTER, /* without it something is slower or left out */
	RLS_HOST_REMARK, /* worth knowing; never stands in the way for root */
	RLS_HOST_NEED_MAX,
};

struct rls_host_answer {
	bool yes;
	bool denied; /* no, for want of privileges: nothing is known of the kernel */
	char detail[192]; /* what was seen: a clause, no full stop */
};

struct rls_host_check {
	const char *name; /* stable, for scripts */
	enum rls_host_need need;
	const char *claim; /* what holds when the answer is yes */
	void (*probe)(struct rls_host_answer *answer);
	const char *remedy; /* what to do when it is no */
};

extern const struct rls_host_check rls_host_checks[];
extern const size_t rls_host_check_count;

const char *rls_host_need_name(enum rls_host_need need); /* "required", "better", "remark" */

/* What to do about a no; "" for a yes. */
const char *rls_host_remedy(const struct rls_host_check *check,
			    const struct rls_host_answer *answer);

/* The first required check that says no, of which later ones are consequences; NULL when the host
 * can profile. */
const struct rls_host_check *rls_host_hindrance(const struct rls_host_answer *answers);

/* Asks everything; answers[i] belongs to rls_host_checks[i]. True when every required
 * check says yes. Takes some 100 ms, leaves nothing behind. */
bool rls_host_ask(struct rls_host_answer *answers);

#endif
