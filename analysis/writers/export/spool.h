/* Spool: many texts written at once, read back one after the other, in little memory.
 *
 * For formats whose file has one thread after the other while the trace has them side by side.
 * Each text has one block in memory; full blocks go to an unnamed temporary file in TMPDIR
 * (/var/tmp without it: /tmp is often memory).
 */
#ifndef RLS_SPOOL_H
#define RLS_SPOOL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define RLS_SPOOL_BLOCK_BYTES 8192

struct rls_spool;

/* NULL when out of memory. */
struct rls_spool *rls_spool_new(void);
void rls_spool_free(struct rls_spool *spool);

/* Appends to the text of this number; numbers are small. 0, or -errno. */
int rls_spool_put(struct rls_spool *spool, uint32_t number, const char *bytes, size_t count);

/* Copies a text to out, whose failures the caller notices. 0, or -errno from the spool. */
int rls_spool_copy(struct rls_spool *spool, uint32_t number, FILE *out);

#endif
