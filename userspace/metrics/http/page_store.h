/* Page store: the page that is served now. The profiling thread stores pages, the server's thread
 * serves them. Neither waits longer for the other than it takes to swap a pointer. A page is freed
 * when its last reader is done. */
#ifndef RLS_PAGE_STORE_H
#define RLS_PAGE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct MHD_Connection;
struct rls_page_store;

/* A store whose page is stale when none has been put in for so long. 0 or -ENOMEM. */
int rls_page_store_new(uint64_t stale_ns, struct rls_page_store **out);
void rls_page_store_free(struct rls_page_store *store);
void rls_page_store_set_stale(struct rls_page_store *store, uint64_t stale_ns);

/* Takes the text, allocated by malloc, in any case. 0 or -ENOMEM (the old page stays). */
int rls_page_store_put(struct rls_page_store *store, char *text, size_t bytes, uint64_t now_ns);

/* The page becomes the connection's answer. False before there is one, or out of memory. */
bool rls_page_store_queue(struct rls_page_store *store, struct MHD_Connection *connection);
bool rls_page_store_is_fresh(struct rls_page_store *store, uint64_t now_ns);

/* What the server did, since the store was made. */
void rls_page_store_count(struct rls_page_store *store, bool served);
void rls_page_store_counts(const struct rls_page_store *store, uint64_t *served, uint64_t *refused);

#endif
