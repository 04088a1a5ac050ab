#include "userspace/metrics/http/page_store.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <microhttpd.h>

struct rls_page_store {
	pthread_mutex_t lock; /* of the next three */
	struct MHD_Response *page;
	uint64_t put_ns, stale_ns;
	atomic_uint_fast64_t served, refused;
};

int rls_page_store_new(uint64_t stale_ns, struct rls_page_store **out)
{
	struct rls_page_store *store = calloc(1, sizeof(*store));

	if (!store)
		return -ENOMEM;
	pthread_mutex_init(&store->lock, NULL);
	store->stale_ns = stale_ns;
	*out = store;
	return 0;
}

void rls_page_store_free(struct rls_page_store *store)
{
	if (!store)
		return;
	if (store->page)
		MHD_destroy_response(store->page);
	pthread_mutex_destroy(&store->lock);
	free(store);
}

void rls_page_store_set_stale(struct rls_page_store *store, uint64_t stale_ns)
{
	pthread_mutex_lock(&store->lock);
	store->stale_ns = stale_ns;
	pthread_mutex_unlock(&store->lock);
}

int rls_page_store_put(struct rls_page_store *store, char *text, size_t bytes, uint64_t now_ns)
{
	struct MHD_Response *page, *before;

	page = MHD_create_response_from_buffer(bytes, text, MHD_RESPMEM_MUST_FREE);
	if (!page) {
		free(text);
		return -ENOMEM;
	}
	if (MHD_add_response_header(page, MHD_HTTP_HEADER_CONTENT_TYPE,
				    "text/plain; version=0.0.4; charset=utf-8") != MHD_YES ||
	    MHD_add_response_header(page, MHD_HTTP_HEADER_CONNECTION, "close") != MHD_YES) {
		MHD_destroy_response(page);
		return -ENOMEM;
	}
	pthread_mutex_lock(&store->lock);
	before = store->page;
	store->page = page;
	store->put_ns = now_ns;
	pthread_mutex_unlock(&store->lock);
	if (before)
		MHD_destroy_response(before);
	return 0;
}

bool rls_page_store_queue(struct rls_page_store *store, struct MHD_Connection *connection)
{
	bool queued = false;

	pthread_mutex_lock(&store->lock);
	if (store->page)
		queued = MHD_queue_response(connection, MHD_HTTP_OK, store->page) == MHD_YES;
	pthread_mutex_unlock(&store->lock);
	return queued;
}

bool rls_page_store_is_fresh(struct rls_page_store *store, uint64_t now_ns)
{
	bool fresh;

	pthread_mutex_lock(&store->lock);
	fresh = store->page && (now_ns < store->put_ns || now_ns - store->put_ns < store->stale_ns);
	pthread_mutex_unlock(&store->lock);
	return fresh;
}

void rls_page_store_count(struct rls_page_store *store, bool served)
{
	atomic_fetch_add(served ? &store->served : &store->refused, 1);
}

void rls_page_store_counts(const struct rls_page_store *store, uint64_t *served, uint64_t *refused)
{
	*served = atomic_load(&store->served);
	*refused = atomic_load(&store->refused);
}
