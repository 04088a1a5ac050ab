#define RLS_USDT_PROVIDER RLS_CUPTI_PROVIDER

#include "cupti_bridge/site.h"

#include "cupti_bridge/batch.h"
#include "userspace/annotate/usdt.h"

RLS_USDT_SEMAPHORE(rls_cupti_batch_semaphore);

unsigned int rls_site_watchers(void)
{
	return __atomic_load_n(&rls_cupti_batch_semaphore, __ATOMIC_RELAXED);
}

__attribute__((noinline)) void rls_site_send(const void *batch, uint32_t bytes)
{
	RLS_USDT(RLS_CUPTI_PROBE, rls_cupti_batch_semaphore, batch, bytes);
}
