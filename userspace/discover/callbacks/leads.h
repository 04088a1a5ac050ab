/* Leads: addresses in a library, each with the function of libpython that it leads to. */
#ifndef RLS_LEADS_H
#define RLS_LEADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A word that holds the function's address, a stub that jumps there, a place that calls it. */
struct rls_lead {
	uint64_t vaddr;
	const char *symbol; /* borrowed */
	bool data; /* of a word: in the library's data, not in its offset table */
	bool jump; /* of a place: a tail jump */
	uint8_t length; /* of a confirmed place's instruction; 0: not confirmed yet */
};

struct rls_leads {
	struct rls_lead *items;
	size_t count, capacity;
};

/* 0, or -ENOMEM. */
int rls_leads_add(struct rls_leads *leads, const struct rls_lead *lead);
/* By address; of several at one address, one is kept. */
void rls_leads_sort(struct rls_leads *leads);
/* In sorted leads; NULL: none is at vaddr. */
const struct rls_lead *rls_leads_find(const struct rls_leads *leads, uint64_t vaddr);
/* In sorted leads the first at or behind vaddr; NULL: none. */
const struct rls_lead *rls_leads_from(const struct rls_leads *leads, uint64_t vaddr);
void rls_leads_clear(struct rls_leads *leads);

#endif
