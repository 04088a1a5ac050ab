#include "userspace/attach/cookie.h"

#include "analysis/event/event.h"
#include "bpf/wire/cookie.h"
#include "userspace/annotate/foreign_ranges.h"

/* The kernel side knows these numbers by heart. */
_Static_assert(RLS_CATEGORY_UNKNOWN == 0 && RLS_CATEGORY_PYTHON == 1 && RLS_CATEGORY_CUDA_API == 4,
	       "bpf/state.bpf.h");
_Static_assert(RLS_CATEGORY_MAX <= 16 && RLS_SITE_KIND_MAX <= 16 && RLS_SITE_CLASS_MAX <= 4,
	       "cookie fields");
_Static_assert(RLS_SITE_ENTER == 0 && RLS_SITE_ENTER_CALL == 1 && RLS_SITE_LEAVE_RET == 2 &&
		       RLS_SITE_LEAVE_AFTER == 3,
	       "bpf/boundary.bpf.c");

_Static_assert(RLS_RANGE_PUSH_STD_STRING == 1 && RLS_RANGE_PUSH_CSTR == 2 &&
		       RLS_RANGE_PUSH_WCSTR == 3 && RLS_RANGE_PUSH_NVTX_ATTRIBUTES == 4 &&
		       RLS_RANGE_POP == 5,
	       "bpf/operation.bpf.c");

_Static_assert(RLS_MEMORY_TENSOR == 0 && RLS_MEMORY_ARRAY == 1 && RLS_MEMORY_GPU == 4,
	       "bpf/memory.bpf.h");

_Static_assert(RLS_SITE_SLOT_BYTES_MAX == 1024 * 8 && RLS_SITE_ENTER_SLOT_BYTES == 8,
	       "cookie fields");

#define FACTOR_MAX 0xfff
#define EXPONENT_MAX 15

uint16_t rls_cookie_cost(uint32_t cost_ns)
{
	uint64_t factor = cost_ns;
	unsigned int exponent = 0;

	while (factor > FACTOR_MAX && exponent < EXPONENT_MAX) {
		exponent++;
		factor = (cost_ns + (1ULL << exponent >> 1)) >> exponent;
	}
	if (factor > FACTOR_MAX)
		factor = FACTOR_MAX;
	return (uint16_t)(factor << 4 | exponent);
}

uint64_t rls_site_cookie(const struct rls_site *site, uint32_t id, uint32_t cost_ns)
{
	if (site->kind == RLS_SITE_LEAVE_RET)
		return RLS_LEAVE_COOKIE(id, site->kind, site->slot_bytes, rls_cookie_cost(cost_ns));
	return RLS_COOKIE(id, site->category, site->kind, site->from_python, site->site_class,
			  site->exit, site->jumped_to,
			  site->kind == RLS_SITE_ENTER && site->slot_bytes,
			  rls_cookie_cost(cost_ns));
}
