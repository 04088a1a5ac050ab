/* Cookies: all that a probe needs to know about its site, without a map look-up. */
#ifndef RLS_WIRE_COOKIE_H
#define RLS_WIRE_COOKIE_H

#include "bpf/wire/types.h"

/*
 *  bits  0..31 site id   32..35 kind (enum rls_site_kind, machine_code/site.h)   36..39 category
 *  bit   40 from_python  41..42 site class  43..44 exit (enum rls_site_exit)  45 jumped_to
 *  bits 36..45 of a LEAVE_RET, which says nothing of these: how many words above the stack pointer the
 *             return address lies
 *  bit   46 windowed: on only in windows (attach/groups.h)
 *  bit   47 within: of an ENTER, the return address lies one word above the stack pointer
 *  bits 48..63 cost of one hit in ns: 48..51 an exponent of 2, 52..63 what it multiplies.
 *  Up to 4095 ns it is exact, beyond to 1 in 4096, saturated at 134 ms (rls_cookie_cost).
 */
#define RLS_COOKIE_SITE(c) ((RLS_U32)(c))
#define RLS_COOKIE_KIND(c) ((RLS_U8)(((c) >> 32) & 15))
#define RLS_COOKIE_CATEGORY(c) ((RLS_U8)(((c) >> 36) & 15))
#define RLS_COOKIE_SLOT_BYTES(c) ((RLS_U32)(((c) >> 36) & 1023) * 8)
#define RLS_COOKIE_FROM_PYTHON(c) ((RLS_U8)(((c) >> 40) & 1))
#define RLS_COOKIE_CLASS(c) ((RLS_U8)(((c) >> 41) & 3))
#define RLS_COOKIE_EXIT(c) ((RLS_U8)(((c) >> 43) & 3))
#define RLS_COOKIE_JUMPED_TO(c) ((RLS_U8)(((c) >> 45) & 1))
#define RLS_COOKIE_WINDOWED(c) ((RLS_U8)(((c) >> 46) & 1))
#define RLS_COOKIE_WITHIN(c) ((RLS_U8)(((c) >> 47) & 1))
#define RLS_COOKIE_COST_NS(c) ((RLS_U32)((c) >> 52) << ((c) >> 48 & 15))
#define RLS_COOKIE_AS_WINDOWED(c) ((c) | (RLS_U64)1 << 46)
#define RLS_COOKIE(site, category, kind, from_python, site_class, exit, jumped_to, within, cost)   \
	((RLS_U64)(RLS_U32)(site) | (RLS_U64)(kind) << 32 | (RLS_U64)(category) << 36 |            \
	 (RLS_U64)(from_python) << 40 | (RLS_U64)(site_class) << 41 | (RLS_U64)(exit) << 43 |      \
	 (RLS_U64)(jumped_to) << 45 | (RLS_U64)(within) << 47 | (RLS_U64)(cost) << 48)
#define RLS_LEAVE_COOKIE(site, kind, slot_bytes, cost)                                             \
	((RLS_U64)(RLS_U32)(site) | (RLS_U64)(kind) << 32 |                                        \
	 (RLS_U64)((slot_bytes) / 8 & 1023) << 36 | (RLS_U64)(cost) << 48)

/* A range site's cookie: bits 0..7 kind (enum rls_range_kind of
 * userspace/annotate/foreign_ranges.h), 8..15 the argument register with the name, 16..23
 * the one with the token that pairs push and pop (other than 0..5: none), 48..63 as above. */
#define RLS_RANGE_COOKIE(kind, name, token, cost)                                                  \
	((RLS_U64)(kind) | (RLS_U64)(name) << 8 | (RLS_U64)(token) << 16 | (RLS_U64)(cost) << 48)

#endif
