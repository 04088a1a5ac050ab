#include "userspace/discover/callbacks/leads.h"

#include <stdlib.h>

#include "analysis/base/grow.h"
#include "analysis/base/search.h"

int rls_leads_add(struct rls_leads *leads, const struct rls_lead *lead)
{
	if (rls_grow(&leads->items, &leads->capacity, leads->count))
		return -ENOMEM;
	leads->items[leads->count++] = *lead;
	return 0;
}

static int compare_addresses(const void *left, const void *right)
{
	const struct rls_lead *a = left, *b = right;

	return (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

void rls_leads_sort(struct rls_leads *leads)
{
	size_t kept = 0;

	if (leads->count)
		qsort(leads->items, leads->count, sizeof(*leads->items), compare_addresses);
	for (size_t i = 0; i < leads->count; i++)
		if (!kept || leads->items[kept - 1].vaddr != leads->items[i].vaddr)
			leads->items[kept++] = leads->items[i];
	leads->count = kept;
}

const struct rls_lead *rls_leads_from(const struct rls_leads *leads, uint64_t vaddr)
{
	size_t low = rls_first_not(leads->count, i, leads->items[i].vaddr < vaddr);

	return low < leads->count ? &leads->items[low] : NULL;
}

/* Nearly every question is about an address outside their span. */
const struct rls_lead *rls_leads_find(const struct rls_leads *leads, uint64_t vaddr)
{
	const struct rls_lead *lead;

	if (!leads->count || vaddr < leads->items[0].vaddr ||
	    vaddr > leads->items[leads->count - 1].vaddr)
		return NULL;
	lead = rls_leads_from(leads, vaddr);
	return lead && lead->vaddr == vaddr ? lead : NULL;
}

void rls_leads_clear(struct rls_leads *leads)
{
	free(leads->items);
	*leads = (struct rls_leads){0};
}
