/* Site: the USDT site through which batches leave, and its semaphore, which shows whether a
 * profiler is attached. Tests use a site of their own instead.
 */
#ifndef RLS_CUPTI_SITE_H
#define RLS_CUPTI_SITE_H

#include <stdint.h>

/* How many probes are attached to the site now. */
unsigned int rls_site_watchers(void);

/* Hands a batch over. It is read before this returns; by nobody when nobody is attached. */
void rls_site_send(const void *batch, uint32_t bytes);

#endif
