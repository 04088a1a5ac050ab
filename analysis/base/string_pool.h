/* String pool: every string once, known by a small id.
 *
 * Ids are dense, given in order of first appearance; id 0 is "". Strings are bounded
 * (longer ones are cut at a UTF-8 boundary) and always valid UTF-8: what is not is
 * replaced by U+FFFD on the way in, because names come from targets and files; the hash is
 * seeded per pool for the same reason.
 * One thread at a time.
 */
#ifndef RLS_STRING_POOL_H
#define RLS_STRING_POOL_H

#include <stddef.h>
#include <stdint.h>

#define RLS_STRING_BYTES_MAX 4096

typedef uint32_t rls_string_id;

struct rls_string_pool;

/* NULL when out of memory. */
struct rls_string_pool *rls_string_pool_new(void);
void rls_string_pool_free(struct rls_string_pool *pool);

/* Interns length bytes; 0 and *out, or -ENOMEM (*out untouched). */
int rls_string_pool_add(struct rls_string_pool *pool, const char *text, size_t length,
			rls_string_id *out);

/* The id of text that was interned as it is; 0: none was, or it is empty. */
rls_string_id rls_string_pool_find(const struct rls_string_pool *pool, const char *text,
				   size_t length);

/* The text of an id, NUL-terminated, valid until the pool is freed; "" for an unknown id. */
const char *rls_string_pool_get(const struct rls_string_pool *pool, rls_string_id id);

/* Number of ids given, "" included. */
uint32_t rls_string_pool_count(const struct rls_string_pool *pool);

#endif
