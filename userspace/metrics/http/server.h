/* Server: the page of a store over HTTP, by a thread of its own at low priority.
 *
 *     GET /metrics    the page; 503 before the first
 *     GET /healthz    200 "ok" while pages come, else 503 "stale"; never asks for a password
 *
 * Clients are assumed to be hostile. Connections in all and for each address, sizes and times are
 * bounded. A connection is for one request and ends when its time is over, however active it is.
 * Nothing here touches the profiling thread.
 */
#ifndef RLS_SERVER_H
#define RLS_SERVER_H

#include <stdint.h>

#include "userspace/metrics/http/page_store.h"

#define RLS_SERVER_CONNECTIONS_MAX 128
#define RLS_SERVER_CONNECTIONS_PER_ADDRESS 32
#define RLS_SERVER_REQUEST_BYTES_MAX (32 * 1024)
#define RLS_SERVER_REQUEST_SECONDS 10
#define RLS_SERVER_CONNECTION_SECONDS 60

struct rls_server_config {
	const char *listen; /* ADDR:PORT */
	const char *tls_cert; /* PEM files; both or neither */
	const char *tls_key;
	const char *auth_file; /* NULL: no password is asked for */
};

struct rls_server;

/* Serves the store, which must outlive it. All files are read here, the config is not kept.
 * `before` may be NULL or a running server. If both listen on the same address, the new one uses the
 * old one's socket, so that no client is rejected in between. The caller frees the old one. 0, or
 * -errno, reported on stderr. */
int rls_server_start(const struct rls_server_config *config, struct rls_page_store *store,
		     const struct rls_server *before, struct rls_server **out);
/* Connections end at once. NULL is fine. */
void rls_server_free(struct rls_server *server);

/* The port that it listens on. */
unsigned int rls_server_port(const struct rls_server *server);

#endif
