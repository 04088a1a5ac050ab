/* From a site to the cookie that its probe carries (bpf/wire/). */
#ifndef RLS_ATTACH_COOKIE_H
#define RLS_ATTACH_COOKIE_H

#include <stdint.h>

#include "userspace/machine_code/site.h"

/* A hit's cost as cookies have it, the nearest that fits. */
uint16_t rls_cookie_cost(uint32_t cost_ns);

uint64_t rls_site_cookie(const struct rls_site *site, uint32_t id, uint32_t cost_ns);

#endif
